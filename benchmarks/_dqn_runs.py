"""Measures DQN trainings, of this project and of others, in processes of their own."""

import re
import tempfile
from pathlib import Path

from _environments import ROOT, output_of, peer_python, rom_path

__all__ = ["bare", "sb3", "tensorpack_011", "whole"]

HERE = Path(__file__).resolve().parent
DQN = ROOT / "examples" / "DeepQNetwork" / "DQN.py"
EPOCH = re.compile(r"Epoch 2 .* finished, time:([0-9.]+) sec")
RATE = re.compile(r"updates/s: ([0-9.]+)")


def bare(seconds, flags=()):
    """Updates per second of the graph alone.

    Args:
      seconds: how long to measure.
      flags: of `bare_update.py`.
    """
    return _rate(output_of(HERE / "bare_update.py", "--seconds", seconds, *flags))


def whole(steps, rom, flags=()):
    """Updates per second of the main job, in its second epoch.

    Args:
      steps: updates in an epoch.
      rom: the game.
      flags: of `DQN.py`, beside the size of the memory and the length of an epoch.
    """
    with tempfile.TemporaryDirectory() as folder:
        text = output_of(
            *[DQN, "--rom", rom, "--logdir", Path(folder) / "log", "--max-epoch", 2],
            *["--steps-per-epoch", steps, "--init-memory-size", 3000, "--memory-size", 20000],
            *flags,
        )
    return steps / float(EPOCH.search(text).group(1))


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
