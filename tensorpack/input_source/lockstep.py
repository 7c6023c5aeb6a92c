"""Lets a thread make datapoints one by one, each only when it is allowed."""

import threading

__all__ = ["Gate"]


class Gate:
    """Stands before the work of a thread: idle -> allowed -> busy -> idle.

    The thread calls `enter` before each datapoint; it is idle when it has come back there. Whoever
    needs datapoints calls `allow`. `close` lets the thread go.

    Attributes:
      granted: how many datapoints have been allowed.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._waiting = False  # the thread is at the gate
        self._entered = 0
        self._closed = False
        self.granted = 0

    @property
    def closed(self) -> bool:
        """Whether nothing will be allowed any more."""
        return self._closed

    def allow(self, number: int) -> None:
        """Allows so many datapoints more; does not wait for them."""
        with self._change:
            self.granted += number
            self._change.notify_all()

    def enter(self) -> bool:
        """Waits until a datapoint is allowed; returns False if the gate was closed instead."""
        with self._change:
            self._waiting = True
            self._change.notify_all()
            self._change.wait_for(lambda: self._closed or self._entered < self.granted)
            if self._closed:
                return False
            self._entered += 1
            self._waiting = False
            return True

    def wait_idle(self, timeout: float) -> bool:
        """Waits until all that was allowed has been made and the thread is at the gate; returns
        whether it is.
        """
        with self._change:
            return self._change.wait_for(
                lambda: self._waiting and self._entered == self.granted, timeout
            )

    def close(self) -> None:
        """Lets the thread leave: at once if it waits here, otherwise when it comes back."""
        with self._change:
            self._closed = True
            self._change.notify_all()
