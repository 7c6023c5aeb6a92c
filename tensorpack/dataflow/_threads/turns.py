"""Lets threads do one after another what only one of them may do at a time, until it is over.

A lock would do as well, but whoever waits for a lock cannot be told that it is over.
"""

import queue

__all__ = ["Turns"]


class Turns:
    """Hands a turn from thread to thread."""

    def __init__(self) -> None:
        # The turn lies in this queue while nobody has it. What was put there stays until somebody
        # takes it, so no thread sleeps through the end.
        self._queue: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._queue.put(None)
        self._ended = False

    def wait(self) -> bool:
        """Waits for a turn.

        Returns:
          True if it is this thread's, which has to pass it on; False if it is over.
        """
        self._queue.get()
        if self._ended:
            self._queue.put(None)  # for the next one who waits
            return False
        return True

    def pass_on(self) -> None:
        """Gives the turn to another thread, or back to the same one."""
        self._queue.put(None)

    def end(self) -> None:
        """Lets nobody have a turn any more. Takes no lock, and may be called by anybody."""
        self._ended = True
        self._queue.put(None)
