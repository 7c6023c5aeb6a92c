"""Says what to do when a process has as many open files as it may have."""

import contextlib
import errno
import resource
from typing import Iterator

__all__ = ["explained"]


@contextlib.contextmanager
def explained(what: str, count: int) -> Iterator[None]:
    """A context in which an error of the system about too many open files is one that helps.

    Args:
      what: what takes descriptors, to begin a sentence with.
      count: about how many.

    Raises:
      OSError: whatever is raised within; with another text where descriptors ran out.
    """
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise OSError(
            errno.EMFILE,
            f"{what} may take {count} open files, besides those that this process has, and it may "
            f"have {limit} in all (ulimit -n). Use fewer processes, or raise the limit before the "
            f"program is started, such as by: ulimit -n {_enough(limit + count)}",
        ) from error


def _enough(count: int) -> int:
    return 1 << (count - 1).bit_length()
