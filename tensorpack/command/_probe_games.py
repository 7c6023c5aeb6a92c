"""Plays a game for a moment, for `tensorpack doctor`, in a process of its own.

An emulator that does not suit its library ends the process, or never returns. Prints one line of
JSON.
"""

import json
import sys
import time
from typing import Any, Dict

import numpy as np

_TICKS = 100
_ENVS = 4


def play(kind: str, name: str) -> Dict[str, Any]:
    """Plays at random; returns how fast, and how several games are stepped.

    Args:
      kind: "atari" or "gym".
      name: a ROM, or the id of an environment.
    """
    from tensorpack.RL import AtariPlayers, GymPlayers

    with AtariPlayers(name, _ENVS) if kind == "atari" else GymPlayers(name) as player:
        player.reset()
        draw = np.random.RandomState(0)
        begin = time.monotonic()
        for _ in range(_TICKS):
            player.step(draw.randint(player.num_actions, size=player.num_envs))
        seconds = time.monotonic() - begin
        backend = getattr(player, "backend", "single")
        return {"backend": backend, "speed": _TICKS * player.num_envs / seconds}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(play(*sys.argv[1:3])) + "\n")
