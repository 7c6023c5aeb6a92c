"""Catch: a game so small that a DQN solves it in minutes, seen as an Atari game is."""

import numpy as np

from tensorpack.RL import Player, PlayerStep
from tensorpack.utils.rng import rng_state, set_rng_state

BOARD = 7  # cells in each direction
_PLACES = ("_row", "_ball", "_paddle", "_over")


class CatchPlayer(Player):
    """A ball falls from the top, one cell a step; the paddle at the bottom is to be under it.

    Actions: 0 left, 1 stay, 2 right. A game lasts six steps. The last one has reward 1 if the ball
    was caught, else -1; chance alone gets -0.7 on the average.

    Args:
      num_envs: games at the same time.
      seed: of where balls and paddles start.
      cell: pixels of a cell in each direction; by default a frame has 84 x 84.
    """

    num_actions = 3

    def __init__(self, num_envs=1, seed=0, cell=12):
        self.num_envs = num_envs
        self.frame_shape = (BOARD * cell, BOARD * cell)
        self._cell = cell
        self._rng = np.random.RandomState(seed)
        self._row = np.zeros(num_envs, int)
        self._ball = np.zeros(num_envs, int)
        self._paddle = np.zeros(num_envs, int)
        self._over = np.zeros(num_envs, bool)

    def _reset(self, seed):
        if seed is not None:
            self._rng = np.random.RandomState(seed)
        self._over[:] = False
        self._begin(np.ones(self.num_envs, bool))
        return self._frames()

    def _step(self, actions):
        begins, plays = self._over, ~self._over
        self._begin(begins)
        self._row[plays] += 1
        self._paddle[plays] = np.clip(self._paddle + actions - 1, 0, BOARD - 1)[plays]
        self._over = plays & (self._row == BOARD - 1)
        over = self._over.copy()
        reward = np.where(self._ball == self._paddle, 1.0, -1.0)
        nothing = np.zeros(self.num_envs, bool)
        return PlayerStep(
            frames=self._frames(),
            reward=np.where(over, reward, 0).astype(np.float32),
            terminated=over,
            truncated=nothing,
            life_lost=nothing.copy(),
            reset=begins,
            episode_score=np.where(over, reward, np.nan),
        )

    def _truncate(self, mask):
        self._over |= mask

    def _state_dict(self):
        places = {name: getattr(self, name).copy() for name in _PLACES}
        return {"rng": rng_state(self._rng), **places}

    def _load_state_dict(self, state):
        set_rng_state(self._rng, state["rng"])
        for name in _PLACES:
            setattr(self, name, np.array(state[name]))

    def _begin(self, which):
        count = np.count_nonzero(which)
        self._row[which] = 0
        self._ball[which] = self._rng.randint(BOARD, size=count)
        self._paddle[which] = self._rng.randint(BOARD, size=count)

    def _frames(self):
        cells = np.zeros((self.num_envs, BOARD, BOARD), np.uint8)
        envs = np.arange(self.num_envs)
        cells[envs, BOARD - 1, self._paddle] = 128
        cells[envs, self._row, self._ball] = 255
        return cells.repeat(self._cell, 1).repeat(self._cell, 2)


class CountingCatch(CatchPlayer):
    """Counts, in its state too, how many transitions were played, before the step is over."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.resets = self.played = 0
        self.during_step = lambda: None

    def _reset(self, seed):
        self.resets += 1
        return super()._reset(seed)

    def _step(self, actions):
        self.played += np.count_nonzero(~self._over)
        self.during_step()
        return super()._step(actions)

    def _state_dict(self):
        return {**super()._state_dict(), "played": self.played}

    def _load_state_dict(self, state):
        super()._load_state_dict(state)
        self.played = state["played"]


def small_catch(num_envs=1, kind=CatchPlayer):
    """A game of catch with frames of 14 x 14, so that the network is small."""
    return kind(num_envs, cell=2)
