"""Runs programs in the virtual environments of this project and of its peers."""

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "output_of", "peer_python", "rom_path"]

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600  # seconds, after which a program is taken to hang


def peer_python(name):
    """The interpreter of a peer of `benchmarks/peers`.

    Raises:
      FileNotFoundError: it is not installed.
    """
    python = ROOT / f".venv-peer-{name}" / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"{python} is missing: run make bench-peers.")
    return python


def rom_path(name):
    """The path of a game, also for programs that do not know where ale-py keeps its own."""
    from tensorpack.RL import find_rom

    return find_rom(name)


def output_of(*command, python=sys.executable):
    """What a program prints.

    Args:
      *command: a script and its arguments.
      python: the interpreter.

    Raises:
      RuntimeError: it failed.
      subprocess.TimeoutExpired: it took longer than ten minutes, and was killed.
    """
    # a PYTHONPATH to this project would hide the tensorpack of a peer
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=LIMIT,
        env=inherited if python != sys.executable else None,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout
