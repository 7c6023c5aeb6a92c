"""Small things done with files so that a crash at any moment leaves a whole one."""

import os
import time

__all__ = ["fsync_directory", "move_aside", "write_atomically"]


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file such that there is the old one or the new one at any moment, also on disk.

    Raises:
      OSError: it could not be written; the old file is as it was.
    """
    temporary = path + ".tmp"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    fsync_directory(os.path.dirname(path) or ".")


def fsync_directory(path: str) -> None:
    """Sees to it that renames in a directory are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move_aside(path: str, suffix: str = "") -> str:
    """Renames a file to `{path}{suffix}`, by default with a dot and the time; returns the name.

    A number is appended where that name is taken.
    """
    base = path + (suffix or time.strftime(".%m%d-%H%M%S"))
    target, count = base, 0
    while os.path.lexists(target):
        count += 1
        target = f"{base}.{count}"
    os.rename(path, target)
    return target
