"""Runs programs of this project and of its peers: any script, or a DQN training for its rate."""

import os
import re
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "bare", "output_of", "peer_python", "rom_path", "sb3", "tensorpack_011", "whole"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RATE = re.compile(r"updates/s: ([0-9.]+)")
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


def bare(seconds, flags=()):
    """Updates per second of the graph alone.

    Args:
      seconds: how long to measure.
      flags: of `bare_update.py`.
    """
    return _rate(output_of(HERE / "bare_update.py", "--seconds", seconds, *flags))


def whole(steps, rom, flags=()):
    """Updates per second of the main job, within its first epoch.

    Args:
      steps: updates that count.
      rom: the game.
      flags: of `dqn_run.py`, or of `DQN.py`.
    """
    return _rate(output_of(HERE / "dqn_run.py", "--rom", rom, "--steps", steps, *flags))


def tensorpack_011(steps, rom):
    """Updates per second of tensorpack 0.11 on TensorFlow 1.15.5."""
    script = HERE / "peers" / "tensorpack_dqn.py"
    python = peer_python("tensorpack-0.11")
    return _rate(output_of(script, "--rom", rom_path(rom), "--steps", steps, python=python))


def sb3(steps, games):
    """Updates per second of stable-baselines3, on Breakout.

    Args:
      steps: updates that count.
      games: played in turns, with one call of the network for all of them.
    """
    script = HERE / "peers" / "sb3_dqn.py"
    python = peer_python("sb3")
    return _rate(output_of(script, "--steps", steps, "--games", games, python=python))


def _rate(text):
    return float(RATE.search(text).group(1))
