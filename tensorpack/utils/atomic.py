"""Writes files that exist whole or not at all, and are on the disk when the call returns."""

import os
from contextlib import contextmanager, suppress
from typing import BinaryIO, Iterator, Optional

__all__ = ["fsync_path", "open_atomic", "write_atomic"]


def fsync_path(path: str) -> None:
    """Waits until a file, or the list of names in a directory, is on the disk.

    After a rename, call it for the directory: only then the new name survives a crash.

    Raises:
      OSError: it may not be. Write the data again, to another file: the system reports such an
        error once, and a second try on the same data as a success.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_atomic(path: str, temporary: Optional[str] = None) -> Iterator[BinaryIO]:
    """Opens a file for writing bytes that appears under its name, whole, at the end of the block.

    If the block raises, or the machine stops, the previous file is still there. The bytes and the
    name are on the disk when the block is left.

    Args:
      path: of the file.
      temporary: where it is written first, in the same directory; a unique name by default. A
        fixed name lets you remove what a crash has left there. A link of that name is not followed.

    Raises:
      OSError: if the file cannot be written.
    """
    folder, name = os.path.split(os.path.abspath(path))
    own = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    temporary = temporary or own
    try:
        with open(temporary, "wb", opener=_open_no_link) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # the first error is the one to report
            os.unlink(temporary)
        raise
    fsync_path(folder)


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


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
