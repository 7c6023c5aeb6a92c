"""Tells the errors of a disk, which a run survives, from those of the program.

Also keeps what lies where a file is to be written, under another name.
"""

import os
import shutil
import time
from typing import Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.fs import open_atomic

__all__ = ["ERRORS", "disk_trouble", "keep_aside", "move_aside", "name_aside"]

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
    target = name_aside(path, suffix)
    os.rename(path, target)
    return target


def keep_aside(path: str) -> str:
    """Gives a file, which is to be replaced, a second name as `move_aside` does; returns it.

    The file is under its own name all the time.
    """
    target = name_aside(path)
    try:
        os.link(path, target)
    except OSError:  # not every file system has a second name for a file
        with open(path, "rb") as source, open_atomic(target) as copy:
            shutil.copyfileobj(source, copy)
    return target


def name_aside(path: str, suffix: str = "") -> str:
    """Returns `{path}{suffix}`, by default with a dot and the time; with a number, if that name is
    taken.
    """
    base = path + (suffix or time.strftime(".%m%d-%H%M%S"))
    target, count = base, 0
    while os.path.lexists(target):
        count += 1
        target = f"{base}.{count}"
    return target
