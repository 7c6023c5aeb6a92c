"""Files whose names begin alike: what belongs to one checkpoint."""

import os
import shutil
from typing import List

__all__ = ["discard", "names_with_prefix"]


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
