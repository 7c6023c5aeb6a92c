"""Shared memory without a name, and file descriptors that travel to worker processes."""

import contextlib
import errno
import mmap
import os
import resource
import select
import tempfile
from multiprocessing import reduction, util
from typing import Any, Callable, Iterator, Optional, Tuple

import numpy as np

_SHM = "/dev/shm"


def close_after_fork(obj: Any) -> None:
    """Makes every forked worker close its copy of `obj`, by `obj.close()`.

    An open copy would keep memory allocated, and the reader of a pipe would not see its end.
    """
    util.register_after_fork(obj, type(obj).close)


class ToClose:
    """Closes things, each once, also in a worker that is forked meanwhile by another thread.

    A connection that is being closed has given its descriptor back before it knows that it is
    closed. The worker would close that number again, which may be of a pipe of its own by then.
    """

    def __init__(self, *things: Any) -> None:
        self._things = list(things)

    def close(self) -> None:
        while self._things:
            self._things.pop().close()


def poll_of(*fds: int) -> Any:
    """Returns a `select.poll` for reading."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return poll


@contextlib.contextmanager
def explain_file_limit(what: str, count: int) -> Iterator[None]:
    """Raises an error with advice where this process has too many open files.

    `what` takes about `count` descriptors, and begins a sentence.
    """
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise OSError(
            errno.EMFILE,
            f"{what} may take {count} open files, besides those that this process has, and it may "
            f"have {limit} in all (ulimit -n). Use fewer processes, or raise the limit before the "
            f"program is started, such as by: ulimit -n {1 << (limit + count - 1).bit_length()}",
        ) from error


class SharedFile:
    """Memory that several processes can map; freed with the last of them, however they end.

    Pickled while a process is started, it is valid in that process.
    """

    def __init__(self, fd: int = -1) -> None:
        """Makes a new file in memory, or takes over the descriptor of one."""
        self._fd = fd if fd >= 0 else _nameless_file()
        self._mapped: Optional[mmap.mmap] = None
        self._writable = False

    def copy(self) -> "SharedFile":
        return SharedFile(os.dup(self._fd))

    def resize(self, nbytes: int) -> None:
        """Changes its size, and allocates the memory now; what fits in it stays.

        No process may read what is cut off: the kernel would kill it. If it fails, the size is 0.
        """
        os.ftruncate(self._fd, nbytes)
        if not nbytes or not hasattr(os, "posix_fallocate"):  # which macOS does not have
            return
        try:  # otherwise a write into a full /dev/shm would kill the process
            os.posix_fallocate(self._fd, 0, nbytes)
        except OSError as error:
            os.ftruncate(self._fd, 0)
            raise OSError(
                error.errno,
                f"No room for {nbytes / 2**20:.1f} MiB of shared memory "
                f"({errno.errorcode.get(error.errno or 0, error.errno)}). Give the machine or the "
                "container more (docker run --shm-size), or use fewer workers, a smaller hwm or "
                "a smaller buffer_bytes.",
            ) from error

    def view(self, nbytes: int, writable: bool) -> np.ndarray:
        """Returns its first bytes as an array, uint8 `[nbytes]`, that keeps them mapped.

        If it is not to be writable, the kernel forbids to write to it.
        """
        if self._mapped is None or len(self._mapped) != nbytes or self._writable != writable:
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            # what still views the former mapping keeps it; it is not closed here
            with explain_file_limit("Shared memory that is sent to this process or from it", 1):
                self._mapped = mmap.mmap(self._fd, nbytes, access=access)
            self._writable = writable
        return np.frombuffer(memoryview(self._mapped), np.uint8)

    def close(self) -> None:
        """Closes it; arrays that view it stay valid."""
        self._mapped = None
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return _received, (reduction.DupFd(self._fd),)


def _received(duplicate: Any) -> SharedFile:
    return SharedFile(duplicate.detach())


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):  # Python 3.8, Linux; not limited by the size of /dev/shm
        return os.memfd_create("tensorpack")
    folder = _SHM if os.path.isdir(_SHM) else None
    with tempfile.TemporaryFile(dir=folder, prefix="tensorpack-") as file:
        return os.dup(file.fileno())
