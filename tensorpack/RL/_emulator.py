"""One Atari game on `ALEInterface`, giving the same frames as ale-py's vector interface."""

from typing import Any, Dict, List, Tuple

import numpy as np

from tensorpack.utils.optional import require

from .rom import load_ale

__all__ = ["Emulator", "FRAME_SIZE", "NoopDraws", "clone_machine", "open_emulator"]

FRAME_SIZE = 84
# Actions of a game that are remembered: half an hour of it, where each is held for four frames.
_LOG_LENGTH = 30000


def open_emulator(rom: str, seed: int) -> Any:
    """Returns an `ALEInterface` with the game loaded, without sticky actions.

    Args:
      rom: path that `check_rom` has passed.
      seed: of the emulator itself, in [1, 2**31).
    """
    ale = load_ale().ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", seed)
    ale.loadROM(rom)
    return ale


def clone_machine(ale: Any) -> bytes:
    """Returns the state of an emulator's machine, its screen excepted."""
    state = ale.cloneState(include_rng=True)
    try:
        return state.serialize()
    except UnicodeDecodeError:  # ale-py 0.8 takes the bytes for text
        return state.__getstate__()[0]


class NoopDraws:
    """The numbers of no-op frames that the vector interface draws for a seed.

    It has a Mersenne twister of its own, and draws by multiplication with rejection, as the C++
    library on Linux does for bounded integers. Elsewhere its draws may be others; then both
    backends are still random and reproducible, but not equal.

    Args:
      seed: in [1, 2**31).
      bound: numbers are uniform in [0, bound).
    """

    def __init__(self, seed: int, bound: int):
        self._bound = bound
        self._rng = np.random.RandomState(seed)

    def draw(self) -> int:
        """Returns the next number."""
        if self._bound <= 1:
            return 0
        too_low = 2**32 % self._bound
        while True:
            product = int.from_bytes(self._rng.bytes(4), "little") * self._bound
            if product % 2**32 >= too_low:
                return product >> 32

    def state_dict(self) -> Dict[str, Any]:
        """Returns the generator's state."""
        state: Any = self._rng.get_state(legacy=False)
        numbers = state["state"]
        return {"keys": np.array(numbers["key"]), "position": int(numbers["pos"])}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores it."""
        self._rng.set_state(("MT19937", state["keys"], state["position"], 0, 0.0))


class Emulator:
    """One game, one action at a time.

    Args:
      rom: path that `check_rom` has passed.
      seed: in [1, 2**31).
      frame_skip: emulator frames for which an action is held.
      max_noops: a new game begins with fewer than so many frames without an action; 0 for none.
    """

    def __init__(self, rom: str, seed: int, *, frame_skip: int, max_noops: int):
        self._rom = rom
        self._frame_skip = frame_skip
        self._max_noops = max_noops
        self._cv2 = require("cv2")
        self.seed(seed)
        self._actions = list(self._ale.getMinimalActionSet())
        # The last screen and the one before; after a step the first holds the maximum of both.
        self._screens = np.zeros((2, *self._ale.getScreenDims()), dtype=np.uint8)

    def seed(self, seed: int) -> None:
        """Loads the game anew; `reset` has to follow."""
        self._seed = seed
        self._ale = open_emulator(self._rom, seed)
        self._noops = NoopDraws(seed, self._max_noops)
        self._games = 0  # begun since it was loaded
        self._begun_with = 0  # frames without an action
        self._log = bytearray()  # the actions since then

    @property
    def action_names(self) -> List[str]:
        """Names of the actions, such as "FIRE"."""
        return [action.name for action in self._actions]

    @property
    def lives(self) -> int:
        """Lives left; 0 in games that have none."""
        return self._ale.lives()

    def reset(self, out: np.ndarray) -> None:
        """Begins a game and writes its first frame, uint8 `[84, 84]`, to `out`."""
        self._begin(self._noops.draw(), out)

    def _begin(self, noops: int, out: np.ndarray) -> None:
        self._games += 1
        self._begun_with, self._log = noops, bytearray()
        self._ale.reset_game()
        for _ in range(noops):
            self._ale.act(0)
            if self._ale.game_over():
                self._ale.reset_game()
        self._screens[1] = 0
        self._ale.getScreenGrayscale(self._screens[0])
        self._write_frame(out)

    def act(self, action: int, out: np.ndarray) -> Tuple[float, bool]:
        """Holds an action, writes the frame that follows, returns the reward and if it is over."""
        reward = 0.0
        if len(self._log) <= _LOG_LENGTH:  # one more tells that it is not complete
            self._log.append(action)
        if self._frame_skip == 1:
            self._ale.getScreenGrayscale(self._screens[1])
        for left in range(self._frame_skip, 0, -1):
            reward += self._ale.act(self._actions[action])
            if self._ale.game_over():  # as in the vector interface, this screen does not count
                self._write_frame(out)
                return reward, True
            if left <= 2:
                self._ale.getScreenGrayscale(self._screens[left - 1])
        self._write_frame(out)
        return reward, False

    def _write_frame(self, out: np.ndarray) -> None:
        np.maximum(self._screens[0], self._screens[1], out=self._screens[0])
        size = (FRAME_SIZE, FRAME_SIZE)
        out[...] = self._cv2.resize(self._screens[0], size, interpolation=self._cv2.INTER_AREA)

    def screen(self) -> np.ndarray:
        """Returns the screen in colour, uint8 `[height, width, 3]`, red first."""
        return np.array(self._ale.getScreenRGB())

    def state_dict(self) -> Dict[str, Any]:
        """Returns the machine's state, the last screens, the no-op generator and the log.

        The log is None for a game that is longer than what is remembered.
        """
        complete = len(self._log) <= _LOG_LENGTH
        return {
            "ale_py": load_ale().__version__,
            "seed": self._seed,
            "machine": clone_machine(self._ale),
            "ram": np.array(self._ale.getRAM()),
            "lives": self._ale.lives(),
            "screens": self._screens.copy(),
            "noops": self._noops.state_dict(),
            "games": self._games,
            "begun_with": self._begun_with,
            "log": np.array(self._log, dtype=np.uint8) if complete else None,
        }

    def restore(self, state: Dict[str, Any]) -> bool:
        """Puts back the machine that `state_dict` returned; tells if it is that one now."""
        self._ale.restoreState(load_ale().ALEState(state["machine"]))
        self._screens[:] = state["screens"]
        self._noops.load_state_dict(state["noops"])
        self._games = state["games"]
        log = state["log"]
        self._log = bytearray(_LOG_LENGTH + 1 if log is None else log.tolist())
        self._begun_with = state["begun_with"]
        # Not by its RAM: ale-py 0.8 reads that anew only with the next action.
        return clone_machine(self._ale) == state["machine"]

    def replay(self, state: Dict[str, Any]) -> bool:
        """Plays the game of a state from its beginning; tells if it came to the same end.

        Call it where the game was loaded anew with the seed of the state, which has a log.
        """
        out = np.empty((FRAME_SIZE, FRAME_SIZE), dtype=np.uint8)
        self._begin(state["begun_with"], out)
        for action in state["log"].tolist():
            self.act(action, out)
        self._noops.load_state_dict(state["noops"])
        self._games = state["games"]
        return (
            self._ale.lives() == state["lives"]
            and np.array_equal(self._ale.getRAM(), state["ram"])
            and np.array_equal(self._screens, state["screens"])
        )
