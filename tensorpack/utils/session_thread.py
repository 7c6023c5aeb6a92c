"""Threads that share the TensorFlow session of the thread that starts them."""

import sys
import threading
from contextlib import contextmanager
from typing import Any, Iterator, Optional

from . import logger
from .threads import StoppableThread

__all__ = ["ShareSessionThread"]


class ShareSessionThread(StoppableThread):
    """Runs under the default TensorFlow session of the thread that calls `start()`.

    TensorFlow's default session and graph belong to a thread; a new thread has neither. Wrap a
    thread in this class and start the wrapper, or derive from it and override `run`: both run with
    the session and its graph as the defaults.

    Args:
      th: the thread whose `run` is to be executed; its `stop`, if it has one, is forwarded.
    """

    def __init__(self, th: Optional[threading.Thread] = None):
        super().__init__()
        self.daemon = True
        self._th = th
        self._sess: Any = None
        if th is not None:
            self.name = th.name

    def start(self) -> None:
        """Captures the default session and starts the thread."""
        self._sess = _default_session()
        original = self.run

        def run_in_session() -> None:
            with self.default_sess():
                original()

        self.run = run_in_session  # type: ignore[method-assign]
        super().start()

    def run(self) -> None:
        """Runs the wrapped thread's `run`. Override it if there is none."""
        if self._th is not None:
            self._th.run()

    def stop(self) -> None:
        """Asks this thread and the wrapped one to stop."""
        super().stop()
        forward = getattr(self._th, "stop", None)
        if forward is not None:
            forward()

    @contextmanager
    def default_sess(self) -> Iterator[Any]:
        """Makes the captured session and its graph the defaults of this block; yields the session.

        Warns and yields None if there was no default session at `start()`.
        """
        if self._sess is None:
            logger.warning(
                f"{self.name} was started without a default TensorFlow session: start it inside "
                "`with sess.as_default()`."
            )
            yield None
            return
        with self._sess.graph.as_default(), self._sess.as_default():
            yield self._sess


def _default_session() -> Any:
    # A default session exists only if TensorFlow is already imported.
    tensorflow = sys.modules.get("tensorflow")
    return None if tensorflow is None else tensorflow.compat.v1.get_default_session()
