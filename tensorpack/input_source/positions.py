"""Remembers where a dataflow was at each datapoint that is still on its way to the training."""

import threading
from collections import deque
from typing import Any, Deque, Dict, Optional, Tuple

__all__ = ["Positions"]


class Positions:
    """States of a dataflow by the number of datapoints, written by one thread, read by another.

    Args:
      room: how many are kept, the latest; None for all that were not forgotten.
    """

    def __init__(self, room: Optional[int]) -> None:
        self._lock = threading.Lock()
        self._states: Deque[Tuple[int, Optional[Dict[str, Any]]]] = deque(maxlen=room)

    def record(self, count: int, state: Optional[Dict[str, Any]]) -> None:
        """Remembers the state behind the datapoint of this number; numbers go up by one."""
        with self._lock:
            self._states.append((count, state))

    def at(self, count: int) -> Optional[Dict[str, Any]]:
        """Returns the state behind the datapoint of this number, and forgets earlier ones.

        Raises:
          KeyError: it is not known.
        """
        self.forget(count)
        with self._lock:
            if not self._states or self._states[0][0] != count:
                raise KeyError(count)
            return self._states[0][1]

    def forget(self, before: int) -> None:
        """Forgets what belongs to datapoints before this number."""
        with self._lock:
            while self._states and self._states[0][0] < before:
                self._states.popleft()
