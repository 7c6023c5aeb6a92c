"""Restores a saved Atari game: from the machine's state or, where that fails, by its actions.

ale-py does not restore every game exactly (Q*bert and Tetris continue differently, at least up to
0.12.1), and does not read states of other versions. Repeating the actions leads to the same place
if the game begins alike, which about two thirds of the games do after any other game. Elevator
Action may begin differently without a visible sign. So both ways are tested with the game before
they are used.
"""

import functools
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from ._emulator import Emulator, clone_machine, open_emulator
from .rom import load_ale

_SEED = 1
_FRAMES = 60
# Frames of the game before the one that is compared. They reveal 29 of the 30 games that are known
# to begin differently (ale-py 0.12.1); the last one, Boxing, is revealed by its memory.
_HISTORIES = (1, 7, 150, 333)


def restore_emulator(state: Dict[str, Any], rom: str, make: Callable[[int], Emulator]) -> Emulator:
    """Returns an emulator, by `make(seed)`, that continues the saved game of this ROM.

    Raises:
      ValueError: neither way is known to give the saved game.
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
    """Returns whether this game continues alike in an emulator that took another one's state.

    Plays some frames on both, begins a new game on both, and compares memory and screens.
    """
    one, other = open_emulator(rom, _SEED), open_emulator(rom, _SEED)
    actions = one.getMinimalActionSet()
    rng = np.random.RandomState(_SEED)
    before, after, again = rng.randint(len(actions), size=(3, _FRAMES)).tolist()
    for ale in (one, other):
        ale.reset_game()
    _observe(one, [actions[i] for i in before])
    other.restoreState(load_ale().ALEState(clone_machine(one)))
    for choices in (after, again):
        chosen = [actions[i] for i in choices]
        if _observe(one, chosen) != _observe(other, chosen):
            return False
        one.reset_game()
        other.reset_game()
    return True


@functools.lru_cache()
def begins_alike(rom: str) -> bool:
    """Returns whether a game that follows others is like the first one after loading."""
    ale = open_emulator(rom, _SEED)
    actions = ale.getMinimalActionSet()
    rng = np.random.RandomState(_SEED)
    compared = [actions[i] for i in rng.randint(len(actions), size=2 * _FRAMES)]
    ale.reset_game()
    first = _observe(ale, compared)
    for frames in _HISTORIES:
        ale.reset_game()
        for i in rng.randint(len(actions), size=frames):
            ale.act(actions[i])
        ale.reset_game()
        if _observe(ale, compared) != first:
            return False
    return True


def _observe(ale: Any, actions: List[Any]) -> List[Tuple[Any, ...]]:
    """Plays actions; returns all that is visible of the machine after each."""
    seen = []
    for action in actions:
        reward = ale.act(action)
        screen = np.array(ale.getScreenGrayscale())
        seen.append((reward, ale.lives(), ale.getRAM().tobytes(), screen.tobytes()))
    return seen
