"""A lock between processes and their threads that is free again when its holder dies."""

import contextlib
import fcntl
import threading
import time
from multiprocessing import sharedctypes, util
from typing import Any, Dict, Iterator

from .descriptor import SharedFile

__all__ = ["Turn"]

_RETRY_SECONDS = 0.001


class Turn:
    """A lock of the kernel, which belongs to a process and ends with it, and one for its threads.

    It goes to processes while they are started, and not otherwise.
    """

    def __init__(self) -> None:
        self._file = SharedFile()
        self._at_work: Any = sharedctypes.RawValue("b", 0)
        self._set_up()

    def _set_up(self) -> None:
        self._threads = threading.Lock()
        # Another thread may hold it while this process is forked, and is not there in the copy.
        util.register_after_fork(self, Turn._renew)

    def _renew(self) -> None:
        self._threads = threading.Lock()

    @property
    def broken(self) -> bool:
        """Whether somebody was at work and never came to the end; asked by who has the turn."""
        return bool(self._at_work.value)

    @contextlib.contextmanager
    def taken(self, deadline: float) -> Iterator[bool]:
        """A context that yields whether it is this thread's turn, and ends that.

        Args:
          deadline: until when to wait for it, by `time.monotonic`.
        """
        if not self._threads.acquire(timeout=max(0.0, deadline - time.monotonic())):
            yield False
            return
        try:
            has_it = self._lock_file(deadline)
            try:
                yield has_it
            finally:
                if has_it:
                    fcntl.lockf(self._file.fileno(), fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def begins(self) -> None:
        """To be called before what must be done as a whole."""
        self._at_work.value = 1

    def ends(self) -> None:
        """To be called when that is done."""
        self._at_work.value = 0

    def close(self) -> None:
        """Lets the file go in this process."""
        self._file.close()

    def _lock_file(self, deadline: float) -> bool:
        # Looking again is the only way to wait no longer than until a given time.
        while True:
            try:
                fcntl.lockf(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except (BlockingIOError, PermissionError):
                if time.monotonic() >= deadline:
                    return False
            time.sleep(_RETRY_SECONDS)

    def __getstate__(self) -> Dict[str, Any]:
        return {"_file": self._file, "_at_work": self._at_work}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()
