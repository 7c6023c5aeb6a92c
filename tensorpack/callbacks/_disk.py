"""Tells disk errors, which a run survives, from programming errors; writes to the log directory."""

import os
from typing import Any, Callable, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.atomic import write_atomic


def survive(
    action: Callable[[], Any],
    message: str,
    path: str = "",
    log: Callable[[str], None] = logger.warning,
    quiet: bool = False,
) -> Optional[Exception]:
    """Calls what writes files, with names that begin with `path`; returns None, or the error of a
    failing disk, which is logged behind `message` unless `quiet`. Any other error is raised.
    """
    try:
        action()
    except (OSError, tf.errors.OpError) as error:
        # TensorFlow adds text of its own around the sentence of the system, which names the file.
        lines = str(getattr(error, "message", error)).splitlines()
        about = [line.strip() for line in lines if path in line]
        if not (about or isinstance(error, OSError)):
            raise
        if not quiet:
            log(f"{message}: {about[-1] if about else error}")
        return error
    return None


class LogFiles:
    """Writes the files of a callback to the log directory, which must be set. The first one that a
    failing disk does not take is a warning, others are left out in silence.
    """

    def __init__(self, owner: Any) -> None:
        self._owner, self._directory = owner, require_log_directory(owner)
        self._warned = False

    def write(self, name: str, content: bytes) -> None:
        path = os.path.join(self._directory, name)
        message = f"{self._owner} cannot write {path}, the training continues"
        error = survive(lambda: write_atomic(path, content), message, quiet=self._warned)
        self._warned |= error is not None


def require_log_directory(owner: Any) -> str:
    """Returns the log directory; a RuntimeError if there is none."""
    directory = logger.get_logger_dir()
    if directory is None:
        raise RuntimeError(f"{owner} needs the log directory: call logger.set_logger_dir() first.")
    return directory
