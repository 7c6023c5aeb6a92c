"""Address of the thread and process helpers, and the order of what they produce."""

from typing import Any, Dict, Tuple

from .processes import (
    ProcessGroup,
    ensure_proc_terminate,
    mask_sigint,
    set_parent_death_signal,
    start_proc_mask_signal,
    subproc_call,
)
from .session_thread import ShareSessionThread
from .threads import LoopThread, StoppableThread, guard_thread

__all__ = [
    "DIE",
    "LoopThread",
    "OrderedContainer",
    "ProcessGroup",
    "ShareSessionThread",
    "StoppableThread",
    "ensure_proc_terminate",
    "guard_thread",
    "mask_sigint",
    "set_parent_death_signal",
    "start_proc_mask_signal",
    "subproc_call",
]


class DIE:
    """Put into a queue, tells whoever reads it that nothing follows."""


class OrderedContainer:
    """Takes results in any order and gives them out by their number, without a gap.

    Args:
      start: the first number.
    """

    def __init__(self, start: int = 0):
        self._next = start
        self._waiting: Dict[int, Any] = {}

    def put(self, rank: int, val: Any) -> None:
        """Adds the result with a number.

        Raises:
          ValueError: if that number was added before.
        """
        if rank < self._next or rank in self._waiting:
            raise ValueError(f"Number {rank} was put before; the next to give out is {self._next}.")
        self._waiting[rank] = val

    def has_next(self) -> bool:
        """Tells whether the next number is there."""
        return self._next in self._waiting

    def get(self) -> Tuple[int, Any]:
        """Returns the next number and its result.

        Raises:
          RuntimeError: if it is not there yet.
        """
        if not self.has_next():
            raise RuntimeError(f"Number {self._next} is not there yet: ask has_next() first.")
        rank = self._next
        self._next += 1
        return rank, self._waiting.pop(rank)
