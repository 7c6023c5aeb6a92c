"""File descriptors that travel to worker processes, and memory without a name behind them."""

import errno
import mmap
import os
import tempfile
from multiprocessing import reduction, util
from typing import Any, Callable, Optional, Tuple

import numpy as np

from .file_limit import explained

__all__ = ["Descriptor", "SharedFile", "closed_after_fork"]

_SHM = "/dev/shm"


class Descriptor:
    """Owns a file descriptor; pickled while a process is started, it is valid in that process.

    Args:
      fd: the descriptor; closed by `close`.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def copy(self) -> "Descriptor":
        """Another descriptor of the same file, to be closed for itself."""
        return Descriptor(os.dup(self.fd))

    def close(self) -> None:
        """Closes it; may be called more than once."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return _received, (reduction.DupFd(self.fd),)


def _received(duplicate: Any) -> Descriptor:
    return Descriptor(duplicate.detach())


def closed_after_fork(obj: Any) -> None:
    """Lets every forked worker close its copy of `obj`, by `obj.close()`.

    What stays open there would stay allocated, after its owner has let it go; and whoever waits
    for the end of a pipe would wait for the end of that worker.
    """
    util.register_after_fork(obj, type(obj).close)


class SharedFile:
    """Memory that several processes can map. It has no name, so it is gone with the last of them,
    however they end.

    Args:
      descriptor: of a file in memory; made anew unless given.
    """

    def __init__(self, descriptor: Optional[Descriptor] = None) -> None:
        self._descriptor = descriptor or Descriptor(_nameless_file())
        self._mapped: Optional[mmap.mmap] = None
        self._writable = False

    def copy(self) -> "SharedFile":
        """Another handle of the same memory."""
        return SharedFile(self._descriptor.copy())

    def fileno(self) -> int:
        """Its descriptor; -1 if it was closed."""
        return self._descriptor.fd

    def resize(self, nbytes: int) -> None:
        """Makes it this large, and takes the memory for it now. What fits in it stays.

        Nobody may look at what is cut off: the kernel kills a process that does.

        Raises:
          OSError: there is not so much memory; nothing is left of it then.
        """
        os.ftruncate(self._descriptor.fd, nbytes)
        if not nbytes:
            return
        try:  # without this, a write into a full /dev/shm would be the end of the process
            os.posix_fallocate(self._descriptor.fd, 0, nbytes)
        except OSError as error:
            os.ftruncate(self._descriptor.fd, 0)
            raise OSError(
                error.errno,
                f"No room for {nbytes / 2**20:.1f} MiB of shared memory "
                f"({errno.errorcode.get(error.errno or 0, error.errno)}). Give the machine or the "
                f"container more (docker run --shm-size), or use fewer workers, a smaller hwm or "
                f"a smaller buffer_bytes.",
            ) from error

    def view(self, nbytes: int, writable: bool) -> np.ndarray:
        """The memory as an array that keeps it mapped.

        Args:
          nbytes: how much of it, from the beginning.
          writable: whether the array can be written to. If not, the system sees to that.

        Returns:
          a new array, uint8 `[nbytes]`.

        Raises:
          OSError: it cannot be mapped.
        """
        if self._mapped is None or len(self._mapped) != nbytes or self._writable != writable:
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            # what still views the former mapping keeps it; it is not closed here
            with explained("Shared memory that is sent to this process or from it", 1):
                self._mapped = mmap.mmap(self._descriptor.fd, nbytes, access=access)
            self._writable = writable
        return np.frombuffer(memoryview(self._mapped), np.uint8)

    def close(self) -> None:
        """Lets it go; arrays that view it stay valid."""
        self._mapped = None
        self._descriptor.close()

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return SharedFile, (self._descriptor,)


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):  # Python 3.8, Linux; not limited by the size of /dev/shm
        return os.memfd_create("tensorpack")
    folder = _SHM if os.path.isdir(_SHM) else None
    with tempfile.TemporaryFile(dir=folder, prefix="tensorpack-") as file:
        return os.dup(file.fileno())
