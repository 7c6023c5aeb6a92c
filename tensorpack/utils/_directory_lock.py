"""The directory of a run, and the lock that keeps two runs from overwriting each other's files."""

import fcntl
import os
from multiprocessing import util
from typing import Optional, Union

LOCK = ".lock"


def absolute_directory(dirname: "Union[None, str, os.PathLike[str]]") -> str:
    """Returns the absolute path of a directory that a run will write to, "" for none; raises
    ValueError if that is not UTF-8.
    """
    path = os.path.abspath(os.fsdecode(dirname)) if dirname else ""
    if path.encode("utf-8", "ignore").decode("utf-8") != path:
        raise ValueError(
            f"The path {os.fsencode(path)!r} is not UTF-8, so TensorFlow cannot write to it. Give "
            "a directory of another name."
        )
    return path


class DirectoryInUse(OSError):
    """Another running process writes to the directory."""


class DirectoryLock:
    """An advisory lock on a directory; a context manager, released at the latest with the process.

    The lock is on a file `.lock` in the directory, which exists. The file stays there and holds the
    process id of the last owner. The system releases the lock when its owner dies, so nothing is
    left after a crash. What `multiprocessing` forks does not get it, what `os.fork` does. On a file
    system without locks it does nothing.

    Raises:
      DirectoryInUse: another process has it; names the process.
    """

    def __init__(self, dirname: str) -> None:
        self._file: Optional[int] = os.open(
            os.path.join(dirname, LOCK), os.O_RDWR | os.O_CREAT, 0o666
        )
        util.register_after_fork(self, DirectoryLock.release)  # the parent still has it
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.read(self._file, 20).decode().strip() or "unknown"
            self.release()
            raise DirectoryInUse(
                f"The log directory {dirname} is being used by another run, process {owner} or one "
                "that it started. Stop it first, or use another directory."
            ) from error
        except OSError:  # there are no locks
            return
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode("ascii"))

    def release(self) -> None:
        """Releases the lock. May be called again."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __enter__(self) -> "DirectoryLock":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.release()


def is_locked(dirname: str) -> bool:
    """Returns whether a running process has the lock of a directory."""
    try:
        with open(os.path.join(dirname, LOCK), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False
