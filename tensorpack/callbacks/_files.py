"""Small things done with files so that a crash at any moment leaves a whole one.

Also tells the errors of a disk, which a run survives, from those of the program.
"""

import os
import time
from typing import Optional

from tensorpack.compat import tfv1 as tf

__all__ = ["ERRORS", "disk_trouble", "fsync_directory", "move_aside", "write_atomically"]

ERRORS = (OSError, tf.errors.OpError)  # as what a failing disk may be raised

# As what TensorFlow passes the errors of the system on.
_SYSTEM_ERRORS = (
    tf.errors.AlreadyExistsError,
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnavailableError,
    tf.errors.UnknownError,
)


def disk_trouble(error: Exception, path: str) -> Optional[str]:
    """Returns in one line what the disk has against a file, None if it is not to blame.

    Args:
      error: one of `ERRORS`, raised while the file was written.
      path: the file, or the beginning of its name.
    """
    if isinstance(error, OSError):
        return str(error)
    message = str(getattr(error, "message", error))
    if not isinstance(error, _SYSTEM_ERRORS) and path not in message:
        return None
    # TensorFlow tells its own story around the sentence of the system.
    about = [line for line in message.splitlines() if path in line]
    return about[-1].strip() if about else message.splitlines()[0]


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
