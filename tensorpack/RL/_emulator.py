"""One Atari game on `ALEInterface`, giving the same frames as ale-py's vector interface.

A saved game is restored by ale-py's clone of the machine, which is not exact for every game (Q*bert
and Tetris continue differently, at least up to 0.12.1). So it is compared before it is relied on.
"""

import functools
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.optional import require
from tensorpack.utils.rng import SeedTree, rng_state, set_rng_state

from .rom import load_ale

FRAME_SIZE = 84
_COMPARED = 60  # frames of a game


def open_emulator(rom: str, seed: int) -> Any:
    """Returns an `ALEInterface` with a checked ROM, without its own sticky actions."""
    ale = load_ale().ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", seed)
    ale.loadROM(rom)
    return ale


def clone_machine(ale: Any) -> bytes:
    """Returns the state of an emulator's machine, without its screen."""
    state = ale.cloneState(include_rng=True)
    try:
        return state.serialize()
    except UnicodeDecodeError:  # ale-py 0.8 takes the bytes for text
        return state.__getstate__()[0]


def draw_noops(rng: np.random.RandomState, bound: int) -> int:
    """Draws a number of no-op frames, uniform in [0, bound), as the vector interface does.

    That is, with a Mersenne twister and multiplication with rejection, as the C++ library on Linux.
    """
    if bound <= 1:
        return 0
    too_low = 2**32 % bound
    while True:
        product = int.from_bytes(rng.bytes(4), "little") * bound
        if product % 2**32 >= too_low:
            return product >> 32


class Emulator:
    """One game of a checked ROM, one action at a time; see `AtariPlayers` for the arguments.

    Actions are repeated here, not by ale-py, whose states leave out the action under way.
    """

    def __init__(
        self, rom: str, seed: int, *, frame_skip: int, max_noops: int, sticky: float = 0.0
    ):
        self._rom = rom
        self._frame_skip = frame_skip
        self._max_noops = max_noops
        self._sticky = sticky
        self._cv2 = require("cv2")
        self.seed(seed)
        actions = list(self._ale.getMinimalActionSet())
        self.action_names = [action.name for action in actions]
        self._actions = [*actions, load_ale().Action.NOOP]  # the last one for `_last_action` of -1
        # The last screen and the one before; after a step the first holds the maximum of both.
        self._screens = np.zeros((2, *self._ale.getScreenDims()), dtype=np.uint8)

    def seed(self, seed: int) -> None:
        """Loads the game again; `reset` must follow."""
        self._seed = seed
        self._ale = open_emulator(self._rom, seed)
        self._noop_rng = np.random.RandomState(seed)  # of the no-op frames
        self._sticky_rng = SeedTree(seed).child("sticky").random_state()
        self._last_action = -1  # the action of the last frame; there was none yet

    @property
    def lives(self) -> int:
        return self._ale.lives()

    def reset(self, out: np.ndarray) -> None:
        """Begins a game and writes its first frame, uint8 `[84, 84]`, to `out`."""
        self._last_action = -1
        self._ale.reset_game()
        for _ in range(draw_noops(self._noop_rng, self._max_noops)):
            self._ale.act(0)
            if self._ale.game_over():
                self._ale.reset_game()
        self._screens[1] = 0
        self._ale.getScreenGrayscale(self._screens[0])
        self._write_frame(out)

    def act(self, action: int, out: np.ndarray) -> Tuple[float, bool]:
        """Holds an action, writes the frame that follows, returns the reward and if it is over."""
        reward = 0.0
        if self._frame_skip == 1:
            self._ale.getScreenGrayscale(self._screens[1])
        for left in range(self._frame_skip, 0, -1):
            if not self._sticky or self._sticky_rng.random_sample() >= self._sticky:
                self._last_action = action
            reward += self._ale.act(self._actions[self._last_action])
            if self._ale.game_over():  # as in the vector interface, this screen is left out
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
        """Returns all of the game."""
        return {
            "seed": self._seed,
            "machine": clone_machine(self._ale),
            "screens": self._screens.copy(),
            "noops": rng_state(self._noop_rng),
            "held": self._last_action,
            "repeats": rng_state(self._sticky_rng),
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.seed(state["seed"])
        self._ale.restoreState(load_ale().ALEState(state["machine"]))
        self._screens[:] = state["screens"]
        set_rng_state(self._noop_rng, state["noops"])
        self._last_action = state["held"]
        set_rng_state(self._sticky_rng, state["repeats"])


@functools.lru_cache()
def clones_exactly(rom: str) -> bool:
    """Returns whether an emulator that took another one's state continues alike; warns once if not.

    Some frames of this game and of the next one are compared, by memory and screen.
    """
    ale, clone = open_emulator(rom, 1), open_emulator(rom, 1)
    actions = ale.getMinimalActionSet()
    draws = np.random.RandomState(1).randint(len(actions), size=(3, _COMPARED))
    before, after, next_game = ([actions[i] for i in row] for row in draws)
    ale.reset_game()
    clone.reset_game()
    _play(ale, before)
    clone.restoreState(load_ale().ALEState(clone_machine(ale)))
    for part in (after, next_game):
        if _play(ale, part) != _play(clone, part):
            logger.warning(
                f"ale-py {load_ale().__version__} does not restore {rom} exactly: a run that is "
                "resumed begins new games."
            )
            return False
        ale.reset_game()
        clone.reset_game()
    return True


def _play(ale: Any, actions: Sequence[Any]) -> List[Tuple[Any, ...]]:
    """Returns all that is visible of the machine after each action."""
    return [
        (ale.act(action), ale.lives(), ale.getRAM().tobytes(), ale.getScreenGrayscale().tobytes())
        for action in actions
    ]
