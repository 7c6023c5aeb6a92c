"""Tells disk errors, which a run survives, from programming errors; writes to the log directory."""

import os
from typing import Any, Callable, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.atomic import write_atomic

ERRORS = (OSError, tf.errors.OpError)  # all that a failing disk may raise

# The errors of the system as TensorFlow passes them on.
_SYSTEM_ERRORS = (
    tf.errors.AlreadyExistsError,
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnavailableError,
    tf.errors.UnknownError,
)


def survive(
    action: Callable[[], Any],
    message: str,
    path: str = "",
    log: Callable[[str], None] = logger.warning,
    quiet: bool = False,
) -> Optional[Exception]:
    """Calls what writes files, with names that begin with `path` where that is given; returns None,
    or the error of a failing disk, which is logged behind `message` unless `quiet`. Any other error
    is raised.
    """
    try:
        action()
    except ERRORS as error:
        reason = _disk_trouble(error, path)
        if reason is None:
            raise
        if not quiet:
            log(f"{message}: {reason}")
        return error
    return None


def _disk_trouble(error: Exception, path: str) -> Optional[str]:
    """Returns in one line what is wrong with the disk; None if it is not to blame."""
    if isinstance(error, OSError):
        return str(error)
    message = str(getattr(error, "message", error))
    # TensorFlow adds text of its own around the sentence of the system.
    about = [line.strip() for line in message.splitlines() if path in line]
    if about:
        return about[-1]
    return message.splitlines()[0] if isinstance(error, _SYSTEM_ERRORS) else None


class LogFiles:
    """Writes the files of a callback to the log directory, which must be set. The first one that a
    failing disk does not take is a warning, others are left out in silence.
    """

    def __init__(self, owner: Any) -> None:
        self._owner, self._directory = owner, needed_log_directory(owner)
        self._warned = False

    def write(self, name: str, content: bytes) -> None:
        path = os.path.join(self._directory, name)
        message = f"{self._owner} cannot write {path}, the training continues"
        error = survive(lambda: write_atomic(path, content), message, quiet=self._warned)
        self._warned |= error is not None


def needed_log_directory(owner: Any) -> str:
    """Returns the log directory; a RuntimeError if there is none."""
    directory = logger.get_logger_dir()
    if directory is None:
        raise RuntimeError(f"{owner} needs the log directory: call logger.set_logger_dir() first.")
    return directory
