"""One round of callbacks having their turn in a hook, which may be left and finished elsewhere."""

from typing import Dict, List, Sequence

from .base import Callback

__all__ = ["Round", "names_of"]


class Round:
    """Who has a turn in a hook, and how many had it.

    Args:
      hook: name of the method, such as "trigger_epoch".
      members: those who have a turn, in order.
      done_before: names of callbacks that had theirs before these.

    Attributes:
      had_turn: how many of the members did.
    """

    __slots__ = ("done_before", "had_turn", "hook", "members")

    def __init__(
        self, hook: str, members: Sequence[Callback], done_before: Sequence[str] = ()
    ) -> None:
        self.hook = hook
        self.members = members
        self.done_before = done_before
        self.had_turn = 0

    def done(self, names: Dict[int, str], with_current: bool) -> List[str]:
        """Returns the names of all that had their turn.

        Args:
          names: name of each callback, by its id.
          with_current: whether the one whose turn it is counts among them.
        """
        members = self.members[: self.had_turn + int(with_current)]
        return list(self.done_before) + [names[id(each)] for each in members]


def names_of(callbacks: Sequence[Callback]) -> Dict[int, str]:
    """Returns a name of its own for each callback, by its id; the second `X` is `X#2`."""
    counts: Dict[str, int] = {}
    names = {}
    for each in callbacks:
        count = counts[str(each)] = counts.get(str(each), 0) + 1
        names[id(each)] = str(each) if count == 1 else f"{each}#{count}"
    return names
