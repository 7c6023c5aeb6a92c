"""Keeps two runs out of one log directory, where they would overwrite each other's files."""

import errno
import os
from typing import IO, Optional

try:
    import fcntl
except ImportError:  # not on this system: then nobody is kept out
    fcntl = None  # type: ignore[assignment]

__all__ = ["DirectoryInUse", "DirectoryLock"]

_NAME = ".lock"
# What a file system that knows no locks says, as some network file systems do.
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class DirectoryInUse(OSError):
    """Another process that is alive writes to the directory."""


class DirectoryLock:
    """An advisory lock on a directory; a context manager, released at the latest with the process.

    The lock is on a file `.lock` in the directory, which stays there and holds the process id of
    the last owner. It is the system that forgets a lock when its owner dies, so nothing is left
    to be cleaned up after a crash.

    Args:
      dirname: the directory; it exists.

    Raises:
      DirectoryInUse: somebody else has it; names the process.
      OSError: no file can be made in the directory.
    """

    def __init__(self, dirname: str) -> None:
        self._file: Optional[IO[str]] = open(os.path.join(dirname, _NAME), "a+", encoding="utf-8")
        try:
            self._acquire(dirname, self._file)
        except BaseException:
            self.release()
            raise

    def _acquire(self, dirname: str, file: IO[str]) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return
            file.seek(0)
            owner = file.read(20).strip() or "unknown"
            raise DirectoryInUse(
                f"The log directory {dirname} is being used by another run, process {owner}. Stop "
                "it first, or use another directory."
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()

    def release(self) -> None:
        """Lets go of the directory. May be called again."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __enter__(self) -> "DirectoryLock":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()
