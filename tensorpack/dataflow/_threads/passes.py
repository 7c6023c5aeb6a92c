"""The passes that a flow has under way, and who of their threads may use the flow they read."""

import threading
from typing import Any, Callable, Dict, List, Sequence

from ..base import DataFlowTerminated

__all__ = ["Passes"]

_POLL_SECONDS = 0.1


class Passes:
    """Knows the passes of one flow, so that it can end them, and serves them one at a time.

    A pass is anything with `stop()` and `join()`; the latter tells whether its threads have ended.

    Attributes:
      era: another object after every `end`.
    """

    def __init__(self) -> None:
        self.era = object()
        # A dict, for what is done with it needs no lock: garbage collection may come here from a
        # thread that is in the middle of something.
        self._going: Dict[Any, None] = {}
        self._lock: Any = threading.Lock()

    def begin(self, each: Any, era: object) -> None:
        """Takes up a pass that was opened in an era.

        Raises:
          DataFlowTerminated: that era is over.
        """
        self._going[each] = None
        if era is not self.era:
            raise DataFlowTerminated(
                "The flow was closed or reset after this pass was opened and before its first "
                "datapoint. Begin another pass."
            )

    def finish(self, each: Any) -> bool:
        """Ends one pass; returns whether its threads have ended."""
        self._going.pop(each, None)
        each.stop()
        return self.join([each])

    def end(self) -> List[Any]:
        """Tells all passes to stop, also those that are opened but not begun.

        Returns:
          those to join.
        """
        self.era = object()
        going = list(self._going)
        for each in going:
            each.stop()
        return going

    def join(self, passes: Sequence[Any]) -> bool:
        """Waits for the threads of passes; returns whether they have ended."""
        ended = [each.join() for each in passes]
        if not all(ended):
            # A thread that is left behind may have the lock, and must not stop those who follow.
            self._lock = threading.Lock()
        return all(ended)

    def acquire(self, gives_up: Callable[[], bool] = lambda: False) -> Any:
        """Waits until no other thread uses what the passes read.

        Args:
          gives_up: asked now and then; True if it is not worth waiting for any more.

        Returns:
          what to `release()`, or None if it was given up.
        """
        while True:
            lock = self._lock
            if lock.acquire(timeout=_POLL_SECONDS):
                return lock
            if gives_up():
                return None
