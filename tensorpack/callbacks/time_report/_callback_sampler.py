"""Samples which callback a thread is executing, at no cost to that thread."""

import sys
import threading
from collections import Counter
from typing import Any, Callable, Optional

from ..base import Callback

_SECONDS = 0.1  # between two samples
_HOOKS = frozenset(
    prefix + hook for prefix in ("", "_") for hook in ("before_run", "after_run", "trigger_step")
)


class CallbackSampler:
    """Counts in which callback's `trigger_step`, `before_run` or `after_run` a thread is.

    It samples the thread that called `start`, from a thread of its own, until `stop`. A sample
    takes the interpreter for some microseconds; a step inside TensorFlow is not slowed down. It
    counts if `counts()` says so at that moment.
    """

    def __init__(self, counts: Callable[[], bool]) -> None:
        self._counts = counts
        self._seen: Counter[str] = Counter()
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        """Starts to sample the calling thread, unless it has been started."""
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(
                target=self._run, args=(threading.get_ident(),), name="CallbackSampler", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread, if there is one."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def sample(self, ident: int) -> None:
        """Takes one sample of a thread."""
        name = running_callback(sys._current_frames().get(ident)) if self._counts() else None
        if name is not None:
            self._seen[name] += 1

    def slowest(self) -> str:
        """Returns the name of the callback that was sampled most often, "" if none was."""
        seen = dict(self._seen)  # the thread may be counting
        return max(seen, key=seen.__getitem__, default="")

    def reset(self) -> None:
        """Sets all counts to zero."""
        self._seen.clear()

    def _run(self, ident: int) -> None:
        while not self._over.wait(_SECONDS):
            self.sample(ident)


def running_callback(frame: Any) -> Optional[str]:
    """Returns the name of the callback to which the innermost frame of a thread belongs, or None.

    A proxy is named instead of the callback inside; the group of all callbacks is not.
    """
    found = None
    while frame is not None:
        if frame.f_code.co_name in _HOOKS:
            owner = frame.f_locals.get("self")
            if isinstance(owner, Callback) and not hasattr(owner, "cbs"):
                found = owner
        frame = frame.f_back
    return None if found is None else str(found)
