"""Writes of files that are on the disk when they return, not only on their way to it."""

import os
import shutil
from typing import List

from tensorpack.utils.fs import fsync_path

__all__ = ["discard", "names_with_prefix", "write_durably"]


def write_durably(path: str, data: bytes, temporary: str) -> None:
    """Puts a new file in the place of an old one, such that either is there at any moment.

    Args:
      path: of the file.
      data: its new content.
      temporary: where it is written first, in the same directory; gone afterwards.

    Raises:
      OSError: the new one may not be on the disk; the old one is still there, if it failed before
        the exchange.
    """
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        discard(temporary)
        raise
    fsync_path(os.path.dirname(path) or ".")


def names_with_prefix(prefix: str) -> List[str]:
    """Returns the paths that begin with a prefix, sorted.

    Raises:
      OSError: the directory cannot be read. (`glob` would find nothing there.)
    """
    directory, begin = os.path.split(prefix)
    names = [name for name in os.listdir(directory or ".") if name.startswith(begin)]
    return [os.path.join(directory, name) for name in sorted(names)]


def discard(prefix: str) -> None:
    """Removes what begins with a prefix, as far as that is possible."""
    try:
        paths = names_with_prefix(prefix)
    except OSError:
        paths = []
    for path in paths:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
            continue
        try:
            os.remove(path)
        except OSError:
            pass  # it is of no use to anybody, and the next start tries again
