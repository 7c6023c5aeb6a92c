"""Looks, from a thread, which callback another thread is in, at no cost to that thread."""

import sys
import threading
from collections import Counter
from typing import Any, Callable, List, Optional

from .base import Callback

__all__ = ["Whereabouts", "callback_at_work"]

_SECONDS = 0.1  # between two looks
_HOOKS = frozenset(
    prefix + hook for prefix in ("", "_") for hook in ("before_run", "after_run", "trigger_step")
)


class Whereabouts:
    """Counts in which callbacks' `trigger_step`, `before_run` or `after_run` the thread is that
    started it.

    `start` and `stop` belong together. The thread needs the interpreter for some microseconds per
    look; a step that runs in TensorFlow does not notice.

    Args:
      counts: says whether what the thread does now is of interest; called by any thread.
    """

    def __init__(self, counts: Callable[[], bool] = lambda: True) -> None:
        self._counts = counts
        self._seen: Counter[str] = Counter()
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        """Begins to look at the calling thread, unless it has begun before."""
        if self._thread is not None:
            return
        self._over.clear()
        self._thread = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), name="Whereabouts", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ends it. May be called again, or without a start."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def look(self, ident: int) -> None:
        """Looks once at a thread. Called by its own."""
        name = callback_at_work(sys._current_frames().get(ident)) if self._counts() else None
        if name is not None:
            self._seen[name] += 1

    def slowest(self) -> str:
        """Returns the name of the callback that was seen most often, "" if none was."""
        seen = dict(self._seen)  # the thread may be counting
        return max(seen, key=seen.__getitem__, default="")

    def forget(self) -> None:
        """Begins to count anew."""
        self._seen.clear()

    def _watch(self, ident: int) -> None:
        while not self._over.wait(_SECONDS):
            self.look(ident)


def callback_at_work(frame: Any) -> Optional[str]:
    """Returns the name of the callback in whose part of a step a frame is, None if in none's.

    A proxy counts, and not what is inside of it; the group of all callbacks does not.

    Args:
      frame: the innermost frame of a thread, or None.
    """
    found: List[Callback] = []
    while frame is not None:
        if frame.f_code.co_name in _HOOKS:
            owner = frame.f_locals.get("self")
            if isinstance(owner, Callback) and not hasattr(owner, "cbs"):
                found.append(owner)
        frame = frame.f_back
    return str(found[-1]) if found else None
