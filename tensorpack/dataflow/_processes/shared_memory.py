"""Shared memory without a name, and file descriptors that travel to worker processes."""

import contextlib
import errno
import mmap
import os
import select
import tempfile
from multiprocessing import reduction
from typing import Any, Iterator, Optional

_SHM = "/dev/shm"


class Descriptor:
    """Owns a file descriptor; pickled while a process is started, it is valid in that process."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        # Another thread may fork meanwhile; its worker is not to close the number once more.
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __getstate__(self) -> Any:
        return reduction.DupFd(self.fd)

    def __setstate__(self, duplicate: Any) -> None:
        self.__init__(duplicate.detach())  # type: ignore[misc]


class SharedFile(Descriptor):
    """Memory that several processes can map; freed with the last of them, however they end."""

    def __init__(self, fd: Optional[int] = None) -> None:
        """Makes a new file in memory, or takes over the descriptor of one."""
        super().__init__(_nameless_file() if fd is None else fd)

    def resize(self, nbytes: int) -> None:
        """Changes its size, and allocates the memory now; what fits in it stays.

        No process may read what is cut off: the kernel would kill it.
        """
        os.ftruncate(self.fd, nbytes)
        if nbytes and hasattr(os, "posix_fallocate"):  # which macOS does not have
            # otherwise a write into a full /dev/shm would kill the process
            with explain_shortage(f"{nbytes / 2**20:.1f} MiB of shared memory"):
                os.posix_fallocate(self.fd, 0, nbytes)

    def view(self, nbytes: int, writable: bool) -> memoryview:
        """Returns its first bytes, which stay mapped while they are viewed, also when it is closed.

        If they are not to be writable, the kernel forbids to write to them.
        """
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        with explain_shortage("shared memory"):
            return memoryview(mmap.mmap(self.fd, nbytes, access=access))


def poll_of(*fds: int) -> Any:
    """Returns a `select.poll` for reading."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return poll


@contextlib.contextmanager
def explain_shortage(what: str) -> Iterator[None]:
    """Adds advice to an error where there is no room for `what`, or a limit of open files."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENOSPC, errno.ENOMEM):
            raise
        raise OSError(
            error.errno,
            f"No room for {what} ({errno.errorcode[error.errno]}). Use fewer processes, a smaller "
            "hwm or a smaller buffer_bytes. Or raise the limit: of memory by docker run --shm-size "
            "for a container, of open files by ulimit -n before the program is started.",
        ) from error


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):  # Python 3.8, Linux; not limited by the size of /dev/shm
        return os.memfd_create("tensorpack")
    folder = _SHM if os.path.isdir(_SHM) else None
    with tempfile.TemporaryFile(dir=folder, prefix="tensorpack-") as file:
        return os.dup(file.fileno())
