"""Cases of the DQN example: a game that breaks, or never comes back from a step.

`python -m tests.faults.cases_environment CASE LOGDIR` runs one.
"""

import sys
import time

from tests.examples import conftest  # noqa: F401  (makes the example importable)
from tests.examples.catch import CatchPlayer
from tests.examples.running import train

from .child import case, main
from .marks import mark

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


def breaks():
    raise OSError("the game broke")


def hangs():
    mark("hangs")
    while True:
        try:
            time.sleep(0.05)
        except BaseException:  # this is the case: a game that does not let go
            continue


def _play(at, action):
    train(Faulty(at, action), "--max-epoch", "1000")


@case
def game_breaks_in_the_thread():
    _play(POPULATED + 50, breaks)


@case
def game_breaks_at_the_start():
    _play(20, breaks)


@case
def game_hangs_in_the_thread():
    _play(POPULATED + 50, hangs)


@case
def game_hangs_at_the_start():
    _play(20, hangs)


if __name__ == "__main__":
    main(*sys.argv[1:])
