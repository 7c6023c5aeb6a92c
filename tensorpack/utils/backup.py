"""Keeps what lies where something is to be written, under another name."""

import os
import shutil
import time

from .atomic import open_atomic

__all__ = ["keep_aside", "move_aside", "name_aside"]


def move_aside(path: str, suffix: str = "") -> str:
    """Renames a file or directory to what `name_aside` returns, and returns that."""
    target = name_aside(path, suffix)
    os.rename(path, target)
    return target


def keep_aside(path: str) -> str:
    """Gives a file, which is to be replaced, a second name as `name_aside` does; returns it.

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
    """Returns `{path}{suffix}`, by default `{path}.MMDD-HHMMSS`.

    Where that name is taken, the first free one of `-1`, `-2`, ... is appended.
    """
    base = target = path + (suffix or time.strftime(".%m%d-%H%M%S"))
    number = 0
    while os.path.lexists(target):
        number += 1
        target = f"{base}-{number}"
    return target
