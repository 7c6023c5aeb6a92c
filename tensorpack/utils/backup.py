"""Keeps a file that is to be replaced, under another name."""

import os
import shutil
import time

from .atomic import open_atomic

__all__ = ["backup_name", "keep_backup", "move_to_backup"]


def move_to_backup(path: str, suffix: str = "") -> str:
    """Renames a file or directory to the name of its backup, and returns that."""
    target = backup_name(path, suffix)
    os.rename(path, target)
    return target


def keep_backup(path: str) -> str:
    """Gives a file a second name, that of its backup, and returns that.

    The file keeps its own name all the time.
    """
    target = backup_name(path)
    try:
        os.link(path, target)
    except OSError:  # not every file system has a second name for a file
        with open(path, "rb") as source, open_atomic(target) as copy:
            shutil.copyfileobj(source, copy)
    return target


def backup_name(path: str, suffix: str = "") -> str:
    """Returns `{path}{suffix}`, by default `{path}.MMDD-HHMMSS`.

    Where that name is taken, the first free one of `-1`, `-2`, ... is appended.
    """
    base = target = path + (suffix or time.strftime(".%m%d-%H%M%S"))
    number = 0
    while os.path.lexists(target):
        number += 1
        target = f"{base}-{number}"
    return target
