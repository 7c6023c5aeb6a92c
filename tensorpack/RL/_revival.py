"""Brings a saved Atari game back: by the machine's state or, where that fails, by its actions.

ale-py does not put back every game as it was (Q*bert and Tetris go on differently, up to 0.12.1 at
least), nor read what another version has written. Playing the same actions again leads to the same
place if the game begins alike, which a good two thirds of the games do whatever was played before.
Of Elevator Action it cannot be seen that it began otherwise, until it goes on otherwise. So both
ways are tried out with the game at hand before they are trusted.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from ._emulator import Emulator, clone_machine, open_emulator
from .rom import load_ale

__all__ = ["Revival", "begins_alike", "clones_well"]

_SEED = 1
_FRAMES = 60
# Frames of the game before the one that is compared. They show it of 29 of the 30 games that were
# seen to begin otherwise (ale-py 0.12.1); the last one, Boxing, shows it in its memory.
_HISTORIES = (1, 7, 150, 333)


class Revival:
    """Brings back the games of one player; tries out what it needs once.

    Args:
      rom: path that `check_rom` has passed.
      make: makes an emulator of that game from a seed.
    """

    def __init__(self, rom: str, make: Callable[[int], Emulator]) -> None:
        self._rom = rom
        self._make = make
        self._clones_well: Optional[bool] = None
        self._begins_alike: Optional[bool] = None

    def revive(self, state: Dict[str, Any]) -> Emulator:
        """Returns a new emulator that goes on where `Emulator.state_dict` was called.

        Raises:
          ValueError: neither way is known to lead to what was saved.
        """
        if self._may_restore(state):
            emulator = self._make(state["seed"])
            if emulator.restore(state):
                return emulator
        obstacle = self._obstacle_to_replay(state)
        if not obstacle:
            emulator = self._make(state["seed"])
            if emulator.replay(state):
                return emulator
            obstacle = f"its {len(state['log'])} actions, played again, led to another place"
        here, there = load_ale().__version__, state["ale_py"]
        raise ValueError(
            f"A game that ale-py {there} saved cannot be brought back with ale-py {here}: its "
            f"machine cannot be restored with certainty, and {obstacle}. Begin new games with "
            f"reset(), or install ale-py {there} if that is another version."
        )

    def _may_restore(self, state: Dict[str, Any]) -> bool:
        if state["ale_py"] != load_ale().__version__:
            return False
        if self._clones_well is None:
            self._clones_well = clones_well(self._rom)
        return self._clones_well

    def _obstacle_to_replay(self, state: Dict[str, Any]) -> str:
        """Why the actions cannot be played again; "" if they can."""
        if state["log"] is None:
            return "it was too long to remember its actions"
        if state["games"] == 1:
            return ""
        if self._begins_alike is None:
            self._begins_alike = begins_alike(self._rom)
        return "" if self._begins_alike else "how this game begins depends on the one before"


def clones_well(rom: str) -> bool:
    """Tells if this game goes on alike in an emulator that was given another one's state.

    Plays some frames on both, begins a new game on both, and compares memory and screens.

    Args:
      rom: path that `check_rom` has passed.
    """
    one, other = open_emulator(rom, _SEED), open_emulator(rom, _SEED)
    actions = one.getMinimalActionSet()
    rng = np.random.RandomState(_SEED)
    before, after, anew = rng.randint(len(actions), size=(3, _FRAMES)).tolist()
    for ale in (one, other):
        ale.reset_game()
    _look(one, [actions[i] for i in before])
    other.restoreState(load_ale().ALEState(clone_machine(one)))
    for choices in (after, anew):
        if _look(one, [actions[i] for i in choices]) != _look(other, [actions[i] for i in choices]):
            return False
        one.reset_game()
        other.reset_game()
    return True


def begins_alike(rom: str) -> bool:
    """Tells if a game that follows others goes like the first one after loading.

    Args:
      rom: path that `check_rom` has passed.
    """
    ale = open_emulator(rom, _SEED)
    actions = ale.getMinimalActionSet()
    rng = np.random.RandomState(_SEED)
    compared = [actions[i] for i in rng.randint(len(actions), size=2 * _FRAMES)]
    ale.reset_game()
    first = _look(ale, compared)
    for frames in _HISTORIES:
        ale.reset_game()
        for i in rng.randint(len(actions), size=frames):
            ale.act(actions[i])
        ale.reset_game()
        if _look(ale, compared) != first:
            return False
    return True


def _look(ale: Any, actions: List[Any]) -> List[Tuple[Any, ...]]:
    """Plays actions; returns what can be seen of the machine after each."""
    seen = []
    for action in actions:
        reward = ale.act(action)
        screen = np.array(ale.getScreenGrayscale())
        seen.append((reward, ale.lives(), ale.getRAM().tobytes(), screen.tobytes()))
    return seen
