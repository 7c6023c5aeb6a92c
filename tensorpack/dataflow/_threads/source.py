"""One pass over a flow, read by many threads, of which one at a time reads."""

from typing import Any, Callable, Optional, Tuple

from ..base import StateNotKept
from .passes import Passes

__all__ = ["Source"]


class Source:
    """An open pass over a flow that tells the state of the flow behind every datapoint.

    Attributes:
      first_state: the state of the flow when the pass was opened; None if none is kept.
      last_state: the state when the pass was over; None before that, or if none is kept.
    """

    def __init__(
        self, ds: Any, passes: Passes, state_of_ds: Optional[Callable[[], Any]] = None
    ) -> None:
        """
        Args:
          ds: the flow.
          passes: all passes whose threads use the flow.
          state_of_ds: returns the state of the flow, or raises `StateNotKept`; None if nobody asks
            for states.
        """
        self._passes = passes
        self._state_of_ds = state_of_ds
        self.last_state: Any = None
        lock = passes.acquire()
        try:
            self._datapoints = iter(ds)
            self.first_state = self._state()
        finally:
            lock.release()

    def read(self, gives_up: Callable[[], bool]) -> Optional[Tuple[Any, Any]]:
        """Returns the next datapoint and the state behind it, or None.

        None means that the pass is over, or that `gives_up` was true while it was not this
        thread's turn. It must not be called by two threads at a time.
        """
        lock = self._passes.acquire(gives_up)
        if lock is None:
            return None
        try:
            # No other pass may come between a datapoint and the state: the flow has but one.
            try:
                datapoint = next(self._datapoints)
            except StopIteration:
                self.last_state = self._state()
                return None
            return datapoint, self._state()
        finally:
            lock.release()

    def close(self) -> None:
        """Leaves the pass, when no thread is in `read`."""
        close = getattr(self._datapoints, "close", None)
        if close is not None:
            close()

    def _state(self) -> Any:
        if self._state_of_ds is None:
            return None
        try:
            return self._state_of_ds()
        except StateNotKept:
            self._state_of_ds = None  # it would be asked after every datapoint
            return None
