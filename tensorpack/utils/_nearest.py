"""What to say to a user who has mistyped a name."""

import os
from difflib import get_close_matches
from typing import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a sentence to append to an error, with a space before it; "" if nothing is near."""
    names = sorted(set(known))
    near = get_close_matches(name, names, 3)
    if not near:  # a part of a long name, such as one without its scope
        near = [each for each in names if name and name.lower() in each.lower()][:3]
    return f" Did you mean {' or '.join(near)}?" if near else ""


def did_you_mean_file(path: str, ending: str = "") -> str:
    """Returns the same about a path that does not exist: the nearest names in its folder.

    Args:
      path: what was given.
      ending: only files with this ending count, and are named without it.
    """
    folder, name = os.path.split(path.rstrip(os.sep))
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return f" There is no folder {folder}." if folder and not os.path.exists(folder) else ""
    known = [each[: len(each) - len(ending)] for each in names if each.endswith(ending)]
    return did_you_mean(name, known)
