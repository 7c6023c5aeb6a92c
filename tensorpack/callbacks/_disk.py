"""Tells disk errors, which a run survives, from programming errors."""

from typing import Optional

from tensorpack.compat import tfv1 as tf

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


def disk_trouble(error: Exception, path: str) -> Optional[str]:
    """Returns in one line what is wrong with the disk, None if it is not to blame for an error of
    `ERRORS` that came up while a file was written whose name begins with `path`.
    """
    if isinstance(error, OSError):
        return str(error)
    message = str(getattr(error, "message", error))
    # TensorFlow adds text of its own around the sentence of the system.
    about = [line.strip() for line in message.splitlines() if path in line]
    if about:
        return about[-1]
    return message.splitlines()[0] if isinstance(error, _SYSTEM_ERRORS) else None
