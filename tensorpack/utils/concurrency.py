"""The public address of thread and process helpers, and a container that restores order."""

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
    """Marks the end of the data in a queue."""


class OrderedContainer:
    """Accepts results in any order and returns them by number, without gaps.

    Args:
      start: the first number.
    """

    def __init__(self, start: int = 0):
        self._next = start
        self._waiting: Dict[int, Any] = {}

    def put(self, rank: int, val: Any) -> None:
        """Adds the result with a number.

        Raises:
          ValueError: the number was added before.
        """
        if rank < self._next or rank in self._waiting:
            raise ValueError(f"Number {rank} was added before; the next to return is {self._next}.")
        self._waiting[rank] = val

    def has_next(self) -> bool:
        """Returns whether the next number is available."""
        return self._next in self._waiting

    def get(self) -> Tuple[int, Any]:
        """Returns the next number and its result.

        Raises:
          RuntimeError: it is not available yet.
        """
        if not self.has_next():
            raise RuntimeError(f"Number {self._next} is not available yet: check has_next() first.")
        rank = self._next
        self._next += 1
        return rank, self._waiting.pop(rank)
