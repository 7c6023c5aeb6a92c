"""Files that are there whole or not at all, and on the disk when the call returns."""

import os
from contextlib import contextmanager, suppress
from typing import BinaryIO, Iterator, Optional

__all__ = ["fsync_path", "open_atomic", "write_atomic"]


def fsync_path(path: str) -> None:
    """Waits until a file, or the list of names in a directory, is on the disk.

    After a rename it is the directory that has to be: only then the new name outlives a crash.

    Raises:
      OSError: it may not be. What was written has to be written anew, to another file: the system
        tells of such an error once, and calls a second try on the same data a success.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_atomic(path: str, temporary: Optional[str] = None) -> Iterator[BinaryIO]:
    """Opens a file for writing bytes that appears under its name, whole, at the end of the block.

    If the block raises, or the machine stops, what was there before is still there. The bytes and
    the name are on the disk when the block is left.

    Args:
      path: of the file.
      temporary: where it is written first, in the same directory; by default a name that nobody
        else has. A name of your own lets you clear away what a crash has left there.

    Raises:
      OSError: if the file cannot be written.
    """
    folder, name = os.path.split(os.path.abspath(path))
    own = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    temporary = temporary or own
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is what counts
            os.unlink(temporary)
        raise
    fsync_path(folder)


def write_atomic(path: str, data: bytes, temporary: Optional[str] = None) -> None:
    """Writes a file so that at any moment it has either the old content or the new one.

    Args:
      path: of the file.
      data: its new content.
      temporary: as in `open_atomic`.

    Raises:
      OSError: if the file cannot be written; the new content may be there nevertheless, if only
        its name could not be brought to the disk.
    """
    with open_atomic(path, temporary) as file:
        file.write(data)
