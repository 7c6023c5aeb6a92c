"""Players for tests: a tiny one without any game, and the ROM that the Atari tests play."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from tensorpack.RL.player import EpisodeTracker, Player
from tensorpack.RL.rom import find_rom
from tensorpack.utils.stopping import StopToken


class CountingPlayer(Player):
    """Environment i ends its games after `lengths[i]` actions; the reward is the action.

    A frame is [actions so far in this game, number of the game, a random number]. Keeps the
    actions it got in `taken`.
    """

    def __init__(self, lengths=(3, 5), num_actions=4):
        self.num_envs, self.num_actions = len(lengths), num_actions
        self.frame_shape = (3,)
        self.taken = []
        self.closed = 0
        self._lengths = np.array(lengths)
        self._tracker = EpisodeTracker(self.num_envs)
        self._rng = np.random.RandomState(0)
        self._games = np.zeros(self.num_envs, dtype=np.int64)
        self._done = np.zeros(self.num_envs, dtype=np.int64)

    def _reset(self, seed):
        if seed is not None:
            self._rng = np.random.RandomState(seed)
            self._games = np.zeros_like(self._games)
        self._games, self._done = self._games + 1, np.zeros_like(self._done)
        self._tracker.begin(self._lives())
        return self._frames()

    def _step(self, actions):
        self.taken.append(actions.tolist())
        begins = self._tracker.ended
        self._games = self._games + begins
        self._done = np.where(begins, 0, self._done + 1)
        over = self._done >= self._lengths
        return self._tracker.record(self._frames(), actions, over, self._lives())

    def _truncate(self, mask):
        self._tracker.ended = self._tracker.ended | mask

    def _state_dict(self):
        keys, position = self._rng.get_state()[1:3]
        return {
            "ledger": self._tracker.state_dict(),
            "rng": (keys.copy(), position),
            "counts": (self._games.copy(), self._done.copy()),
        }

    def _load_state_dict(self, state):
        self._tracker.load_state_dict(state["ledger"])
        self._rng.set_state(("MT19937",) + state["rng"])
        self._games, self._done = state["counts"]

    def _close(self):
        self.closed += 1

    def _lives(self):
        return 3 - self._done // 2

    def _frames(self):
        noise = self._rng.randint(256, size=self.num_envs)
        return np.stack([self._done, self._games, noise], axis=1).astype(np.uint8)


class Unsaved(CountingPlayer):
    _state_dict = Player._state_dict


def play(player, count):
    """The steps of random play, always of the same actions."""
    rng = np.random.RandomState(1)
    return [
        player.step(rng.randint(player.num_actions, size=player.num_envs)) for _ in range(count)
    ]


def any_rom(name):
    """Path of a game, for Breakout `$TENSORPACK_TEST_ROM` if that is set; else skips."""
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")
    if name == "breakout" and os.environ.get("TENSORPACK_TEST_ROM"):
        return os.environ["TENSORPACK_TEST_ROM"]
    try:
        return find_rom(name)
    except FileNotFoundError:
        pytest.skip(f"no {name} here; TENSORPACK_TEST_ROM may name the file of Breakout")


def breakout_rom():
    return any_rom("breakout")


def needs_vector():
    """Skips where ale-py has no vector interface."""
    ale_py = pytest.importorskip("ale_py")
    if not hasattr(ale_py, "ALEVectorInterface"):
        pytest.skip(f"ale-py {ale_py.__version__} has no vector interface")


def read_video(path):
    """All pictures of a video file, blue first."""
    import cv2

    video = cv2.VideoCapture(path)
    pictures = []
    while True:
        more, picture = video.read()
        if not more:
            return pictures
        pictures.append(picture)


class FakeTrainer:
    """As much of a trainer as callbacks of games ask for; keeps scalars."""

    deterministic = True
    global_step = 20

    def __init__(self, predictor):
        self.monitors = self
        self.scalars = {}
        self.stop_token = StopToken()
        self.tower_func = SimpleNamespace(towers=SimpleNamespace(training=list))  # it has none
        self._predictor = predictor

    def get_predictor(self, inputs, outputs):
        assert (inputs, outputs) == (["state"], ["Qvalue"])
        return self._predictor

    def put_scalar(self, name, value):
        self.scalars[name] = value

    def check_stop(self):
        self.stop_token.raise_if_requested()
