"""One job at a time on a thread of its own, whose error is heard by who started it."""

import threading
from typing import Callable, Optional

__all__ = ["BackgroundJob"]


class BackgroundJob:
    """Runs functions in the background, never two at once. Used by one thread.

    Args:
      name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: Optional[threading.Thread] = None
        self._error: Optional[BaseException] = None

    def start(self, job: Callable[[], None]) -> None:
        """Starts a job; the one before must have been waited for.

        Raises:
          RuntimeError: it has not been.
        """
        if self._thread is not None:
            raise RuntimeError(f"{self._name} is busy: call wait() before the next start().")

        def run() -> None:
            try:
                job()
            except BaseException as error:  # raised by wait()
                self._error = error

        thread = threading.Thread(target=run, name=self._name, daemon=True)
        thread.start()
        self._thread = thread

    def wait(self) -> None:
        """Waits for the job, if there is one.

        Raises:
          BaseException: what the job raised.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return
        thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error
