"""A token through which any thread can request or check the end of a run, with a reason.

A `StopToken` belongs to one run. A signal, a failing producer or the end of the data calls
`request`. Code that blocks registers a waker with `on_request`; code that loops checks `requested`.
"""

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable, List, Optional, Union

from . import logger


@dataclass(frozen=True)
class Interrupted:
    """A signal asked for the end."""

    signum: int


@dataclass(frozen=True)
class Failed:
    """Something broke; `where` names the thread, process or callback."""

    error: BaseException
    where: str


@dataclass(frozen=True)
class EndOfData:
    """A source that is declared finite has given its last datapoint."""

    where: str


@dataclass(frozen=True)
class Finished:
    """The main loop is over: what runs beside it may leave."""


StopReason = Union[Interrupted, Failed, EndOfData, Finished]


class StopRequested(BaseException):
    """Unwinds a long loop on the main thread after a stop was requested; not an error."""


class StopToken:
    """The shared answer to "should this run end, and why?". Thread-safe.

    Wakers run on the thread that makes the request: they must be quick and must not block.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._wakers: List[Callable[[], None]] = []
        self._reasons: List[StopReason] = []

    @property
    def requested(self) -> bool:
        """Whether the run has been asked to end."""
        return bool(self._reasons)

    @property
    def reason(self) -> Optional[StopReason]:
        """The first reason given, or None."""
        return self._reasons[0] if self._reasons else None

    @property
    def late_reasons(self) -> List[StopReason]:
        """Reasons that came after the first one, in order, so that no failure is lost."""
        return self._reasons[1:]

    def request(self, reason: StopReason) -> bool:
        """Asks the run to end. Returns whether this reason is the one that counts."""
        with self._lock:
            self._reasons.append(reason)
            if len(self._reasons) > 1:
                return False
            wakers, self._wakers = self._wakers, []
        self._event.set()
        for waker in wakers:
            self._wake(waker)
        return True

    def on_request(self, waker: Callable[[], None]) -> Callable[[], None]:
        """Calls `waker` once when the stop is requested, at once if it was already.

        Returns:
          a function that takes the waker back.
        """
        with self._lock:
            if not self._reasons:
                self._wakers.append(waker)
                return lambda: self._forget(waker)
        self._wake(waker)
        return lambda: None

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Blocks until a stop is requested or `timeout` seconds passed; returns `requested`."""
        return self._event.wait(timeout)

    def raise_if_requested(self) -> None:
        """Raises StopRequested if the run has been asked to end."""
        if self._reasons:
            raise StopRequested(self._reasons[0])

    def _forget(self, waker: Callable[[], None]) -> None:
        with self._lock, suppress(ValueError):  # taken back or called before
            self._wakers.remove(waker)

    @staticmethod
    def _wake(waker: Callable[[], None]) -> None:
        try:
            waker()
        except Exception:  # the other wakers must still run, or their threads hang
            logger.exception("A function that should wake a waiting part of the run failed.")
