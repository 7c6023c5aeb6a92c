"""Cases of the DQN example: a game that breaks, or never comes back from a step.

`python -m tests.faults.cases_environment CASE LOGDIR` runs one.
"""

import sys
from functools import partial

from tests.examples import conftest  # noqa: F401  (makes the example importable)
from tests.examples.small_dqn import train
from tests.RL.catch import CatchPlayer

from .data import ignores_everything
from .training import CASES, main

POPULATED = 90  # ticks after which the memory of the small run is full and it trains


class Faulty(CatchPlayer):
    """Does something in step `at` of the game, instead of playing."""

    def __init__(self, at, action):
        super().__init__(cell=2)
        self._at, self._action, self._count = at, action, 0

    def _step(self, actions):
        self._count += 1
        if self._count == self._at:
            self._action()
        return super()._step(actions)


def _play(at, action):
    train(Faulty(at, action), "--max-epoch", "1000")


def breaks():
    raise OSError("the game broke")


def hangs():
    ignores_everything("hangs")


for name, action in (("breaks", breaks), ("hangs", hangs)):
    for place, at in (("in_the_thread", POPULATED + 50), ("at_the_start", 20)):
        CASES[f"game_{name}_{place}"] = partial(_play, at, action)

if __name__ == "__main__":
    main(*sys.argv[1:])
