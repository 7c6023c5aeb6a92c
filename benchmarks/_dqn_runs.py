"""Measures DQN trainings, of this project and of others, in processes of their own."""

import re
from pathlib import Path

from _environments import output_of, peer_python, rom_path

__all__ = ["bare", "sb3", "tensorpack_011", "whole"]

HERE = Path(__file__).resolve().parent
RATE = re.compile(r"updates/s: ([0-9.]+)")


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
