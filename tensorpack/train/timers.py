"""What a run does later, unless it has ended until then."""

import threading
from typing import Any, Callable, List

__all__ = ["Timers"]

_JOIN_SECONDS = 2.0


class Timers:
    """Calls functions after some seconds, each on a thread, until it is closed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._timers: List[threading.Timer] = []
        self._closed = False

    def after(self, seconds: float, function: Callable[..., Any], *args: Any) -> None:
        """Calls `function(*args)` in so many seconds, or never if `close` comes first."""
        with self._lock:
            if not self._closed:
                timer = threading.Timer(seconds, function, args)
                timer.daemon = True  # as a last resort it may wait for a process that hangs
                timer.start()
                self._timers.append(timer)

    def close(self) -> None:
        """Cancels what has not begun, and waits up to 2 seconds for what has."""
        with self._lock:
            self._closed = True
        for timer in self._timers:
            timer.cancel()
        for timer in self._timers:
            timer.join(_JOIN_SECONDS)
