"""Tells the errors of a disk, which a run survives, from those of the program.

Also makes way for a file without deleting the one that is there.
"""

import os
import time
from typing import Optional

from tensorpack.compat import tfv1 as tf

__all__ = ["ERRORS", "disk_trouble", "move_aside"]

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
