"""One Atari game on `ALEInterface`, giving the same frames as ale-py's vector interface.

A saved game is restored from the machine's state or, where that fails, by its actions. ale-py does
not restore every game exactly (Q*bert and Tetris continue differently, at least up to 0.12.1), and
does not read states of other versions. Repeating the actions leads to the same place if the game
begins alike, which about two thirds of the games do after any other game. Elevator Action may begin
differently without a visible sign. So both ways are tested with the game before they are used.
"""

import functools
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from tensorpack.utils.optional import require
from tensorpack.utils.rng import SeedTree, rng_state, set_rng_state

from .rom import load_ale

FRAME_SIZE = 84
# Actions of a game that are kept: half an hour of play, if each is held for four frames.
_LOG_LENGTH = 30000
# Of the tests of both ways: a seed, how many frames are compared, and frames of the game before.
# These reveal 29 of the 30 games that are known to begin differently (ale-py 0.12.1); the last one,
# Boxing, is revealed by its memory.
_SEED, _FRAMES, _HISTORIES = 1, 60, (1, 7, 150, 333)


def open_emulator(rom: str, seed: int) -> Any:
    """Returns an `ALEInterface` with a checked ROM loaded, without its own sticky actions."""
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

    It uses a Mersenne twister and multiplication with rejection, as the C++ library on Linux does
    for bounded integers. On other systems its draws may differ; then both backends are still random
    and reproducible, but not equal.
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
        self._actions = [*actions, load_ale().Action.NOOP]  # the last one for `_held`
        # The last screen and the one before; after a step the first holds the maximum of both.
        self._screens = np.zeros((2, *self._ale.getScreenDims()), dtype=np.uint8)

    def seed(self, seed: int) -> None:
        """Loads the game again; `reset` must follow."""
        self._seed = seed
        self._ale = open_emulator(self._rom, seed)
        self._rng = np.random.RandomState(seed)  # of the no-op frames
        self._games = 0  # begun since it was loaded
        self._forget_actions()

    def _forget_actions(self) -> None:
        self._log = bytearray()  # those of this game
        self._held = -1  # that of the last frame; there was none yet
        # Each game has a stream of its own, so that it can be played again.
        self._repeats = SeedTree(self._seed).child("sticky", self._games).random_state()

    @property
    def lives(self) -> int:
        return self._ale.lives()

    def reset(self, out: np.ndarray, noops: Optional[int] = None) -> None:
        """Begins a game and writes its first frame, uint8 `[84, 84]`, to `out`.

        `noops` are the frames without an action before it; by default, a random number.
        """
        self._games += 1
        self._begun_with = draw_noops(self._rng, self._max_noops) if noops is None else noops
        self._forget_actions()
        self._ale.reset_game()
        for _ in range(self._begun_with):
            self._ale.act(0)
            if self._ale.game_over():
                self._ale.reset_game()
        self._screens[1] = 0
        self._ale.getScreenGrayscale(self._screens[0])
        self._write_frame(out)

    def act(self, action: int, out: np.ndarray) -> Tuple[float, bool]:
        """Holds an action, writes the frame that follows, returns the reward and if it is over."""
        reward = 0.0
        if len(self._log) <= _LOG_LENGTH:  # one more marks it as incomplete
            self._log.append(action)
        if self._frame_skip == 1:
            self._ale.getScreenGrayscale(self._screens[1])
        for left in range(self._frame_skip, 0, -1):
            if not self._sticky or self._repeats.random_sample() >= self._sticky:
                self._held = action
            reward += self._ale.act(self._actions[self._held])
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
        """Returns all of the game; the log is None where it is longer than `_LOG_LENGTH`."""
        generator: Any = self._rng.get_state()
        return {
            "ale_py": load_ale().__version__,
            "seed": self._seed,
            "machine": clone_machine(self._ale),
            "ram": np.array(self._ale.getRAM()),
            "lives": self._ale.lives(),
            "screens": self._screens.copy(),
            "noops": {"keys": np.array(generator[1]), "position": int(generator[2])},
            "sticky": {"held": self._held, "rng": rng_state(self._repeats)},
            "games": self._games,
            "begun_with": self._begun_with,
            "log": np.array(self._log, np.uint8) if len(self._log) <= _LOG_LENGTH else None,
        }

    def restore(self, state: Dict[str, Any]) -> bool:
        """Restores what `state_dict` returned; returns whether the machine is equal now."""
        self._ale.restoreState(load_ale().ALEState(state["machine"]))
        self._screens[:] = state["screens"]
        self._restore_counts(state)
        if self._sticky:  # states of other versions have none
            self._held = state["sticky"]["held"]
            set_rng_state(self._repeats, state["sticky"]["rng"])
        log = state["log"]
        self._log = bytearray(_LOG_LENGTH + 1 if log is None else log.tolist())
        self._begun_with = state["begun_with"]
        # Its RAM proves nothing: ale-py 0.8 updates that only with the next action.
        return clone_machine(self._ale) == state["machine"]

    def replay(self, state: Dict[str, Any]) -> bool:
        """Repeats the game of a state that has a log, after it was loaded with the state's seed;
        returns whether it ends in that state.
        """
        out = np.empty((FRAME_SIZE, FRAME_SIZE), dtype=np.uint8)
        self._games = state["games"] - 1
        self.reset(out, state["begun_with"])
        for action in state["log"].tolist():
            self.act(action, out)
        self._restore_counts(state)
        return (
            self._ale.lives() == state["lives"]
            and np.array_equal(self._ale.getRAM(), state["ram"])
            and np.array_equal(self._screens, state["screens"])
        )

    def _restore_counts(self, state: Dict[str, Any]) -> None:
        noops = state["noops"]
        self._rng.set_state(("MT19937", noops["keys"], noops["position"], 0, 0.0))
        self._games = state["games"]


def restore_emulator(state: Dict[str, Any], rom: str, make: Callable[[int], Emulator]) -> Emulator:
    """Returns an emulator, by `make(seed)`, that continues the saved game of this ROM.

    ValueError if neither way is known to give that game.
    """
    here, there = load_ale().__version__, state["ale_py"]
    if here == there and clones_well(rom):
        emulator = make(state["seed"])
        if emulator.restore(state):
            return emulator
    if state["log"] is None:
        obstacle = "it was too long for its actions to be kept"
    elif state["games"] > 1 and not begins_alike(rom):
        obstacle = "how this game begins depends on the one before"
    else:
        emulator = make(state["seed"])
        if emulator.replay(state):
            return emulator
        obstacle = f"its {len(state['log'])} actions, repeated, gave another game"
    raise ValueError(
        f"A game saved by ale-py {there} cannot be restored with ale-py {here}: its machine "
        f"state is not restored exactly, and {obstacle}. Start new games with reset(), or "
        f"install ale-py {there} if that is another version."
    )


@functools.lru_cache()
def clones_well(rom: str) -> bool:
    """Returns whether an emulator that took another one's state continues alike: some frames of
    this game and of the next one are compared, by memory and screen.
    """
    one, other = open_emulator(rom, _SEED), open_emulator(rom, _SEED)
    rng, num_actions = np.random.RandomState(_SEED), len(one.getMinimalActionSet())
    before, after, again = rng.randint(num_actions, size=(3, _FRAMES))
    for ale in (one, other):
        ale.reset_game()
    _observe(one, before)
    other.restoreState(load_ale().ALEState(clone_machine(one)))
    for actions in (after, again):
        if _observe(one, actions) != _observe(other, actions):
            return False
        one.reset_game()
        other.reset_game()
    return True


@functools.lru_cache()
def begins_alike(rom: str) -> bool:
    """Returns whether a game that follows others is like the first one after loading."""
    ale = open_emulator(rom, _SEED)
    rng, num_actions = np.random.RandomState(_SEED), len(ale.getMinimalActionSet())
    compared = rng.randint(num_actions, size=2 * _FRAMES)
    ale.reset_game()
    first = _observe(ale, compared)
    for frames in _HISTORIES:
        ale.reset_game()
        _observe(ale, rng.randint(num_actions, size=frames))
        ale.reset_game()
        if _observe(ale, compared) != first:
            return False
    return True


def _observe(ale: Any, actions: np.ndarray) -> List[Tuple[Any, ...]]:
    """Plays actions, by number; returns all that is visible of the machine after each."""
    seen, actions_of_game = [], ale.getMinimalActionSet()
    for action in actions:
        reward = ale.act(actions_of_game[action])
        screen = np.array(ale.getScreenGrayscale())
        seen.append((reward, ale.lives(), ale.getRAM().tobytes(), screen.tobytes()))
    return seen
