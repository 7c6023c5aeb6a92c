"""The buffer between threads that make datapoints and whoever consumes them.

It is bounded in items and in bytes. A thread finds room **before** it makes a datapoint, so that
what was made never waits to get in: where order matters, nothing can stand in the way of the next.

Waiting and waking is done by queues that keep what was put, so a wake-up cannot be lost. `close`
takes no lock, because garbage collection may call it in any thread at any point.
"""

import queue
import threading
from typing import Any, List, Tuple

from ..base import DataFlowTerminated

__all__ = ["Buffer"]


class Buffer:
    """First in, first out; several threads may use either end.

    Attributes:
      closed: whether nothing goes in or out any more.
    """

    def __init__(self, name: str, max_items: int, max_bytes: int) -> None:
        """
        Args:
          name: of the flow, for messages.
          max_items: how many items may be reserved and not yet released.
          max_bytes: no room is given while the items that were put and are not yet released have
            as many bytes or more. One item fits, however large it is, and those that threads are
            making are not known yet, so the limit is exceeded by at most these.
        """
        self.closed = False
        self._name = name
        self._max_bytes = max_bytes
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(max_items):
            self._room.put(None)
        self._bytes = 0
        self._bytes_lock = threading.Lock()
        self._errors: List[BaseException] = []

    @property
    def failed(self) -> bool:
        """Whether it was closed by `fail`."""
        return bool(self._errors)

    def reserve(self) -> bool:
        """Waits for room for one more item; returns False if the buffer is closed."""
        spare = -1
        while True:
            self._room.get()
            spare += 1
            if self.closed:
                self._room.put(None)  # for the next one who waits
                return False
            if self._bytes < self._max_bytes:
                break
            # Too many bytes. Somebody's `release` comes with room for one more: wait for that.
        for _ in range(spare):
            self._room.put(None)
        return True

    def put(self, item: Any, nbytes: int) -> None:
        """Puts an item for which there is room; never waits."""
        with self._bytes_lock:
            self._bytes += nbytes
        self._items.put((item, nbytes))

    def get(self) -> Tuple[Any, int]:
        """Waits for an item; returns it and its bytes, which are still to be released.

        Raises:
          DataFlowTerminated: the buffer is closed.
          BaseException: what `fail` was called with.
        """
        self.check()
        item = self._items.get()
        if self.closed:
            self._items.put(item)  # for the next one who waits
        self.check()
        return item

    def release(self, nbytes: int) -> None:
        """Makes room for another item, now that one has been used or will never be put."""
        with self._bytes_lock:
            self._bytes -= nbytes
        self._room.put(None)

    def check(self) -> None:
        """Raises what `get` raises if the buffer is closed, and waits for nothing."""
        if self._errors:
            raise self._errors[0]
        if self.closed:
            raise DataFlowTerminated(
                f"{self._name} was closed or reset while this pass was under way. "
                "Begin another pass to go on."
            )

    def fail(self, error: BaseException) -> None:
        """Closes the buffer, and lets `get` raise an error at once.

        The first error counts. One that comes when nobody wants datapoints any more is dropped.
        """
        if not self.closed:
            self._errors.append(error)
        self.close()

    def close(self) -> None:
        """Ends every wait, and all that come. Takes no lock, and may be called by anybody."""
        self.closed = True
        self._room.put(None)
        self._items.put((None, 0))
