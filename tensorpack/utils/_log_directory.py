"""Making way in the file system for a run's log directory and its log file."""

import os
import shutil
import time

__all__ = ["delete", "has_files", "make_numbered", "set_aside"]


def has_files(dirname: str) -> bool:
    """Tells whether a directory holds anything; names with a leading dot do not count.

    Raises:
      NotADirectoryError: if there is something else at that path.
    """
    try:
        return any(not name.startswith(".") for name in os.listdir(dirname))
    except FileNotFoundError:
        return False


def make_numbered(dirname: str) -> str:
    """Makes and returns the first free one of `{dirname}-1`, `{dirname}-2`, ..."""
    number = 1
    while True:
        candidate = f"{dirname}-{number}"
        try:
            os.mkdir(candidate)  # fails if another run was faster
            return candidate
        except FileExistsError:
            number += 1


def set_aside(path: str) -> str:
    """Renames a file or directory to `{path}.MMDD-HHMMSS`, over nothing; returns the new path."""
    stamped = candidate = f"{path}.{time.strftime('%m%d-%H%M%S')}"
    number = 1
    while os.path.lexists(candidate):
        candidate, number = f"{stamped}-{number}", number + 1
    os.rename(path, candidate)
    return candidate


def delete(dirname: str) -> None:
    """Deletes a directory with all that is in it.

    Raises:
      ValueError: if the working directory is in it.
    """
    doomed, here = os.path.realpath(dirname), os.path.realpath(os.getcwd())
    if os.path.commonpath([doomed, here]) == doomed:
        raise ValueError(f"The program runs inside {dirname}, which is therefore not deleted.")
    shutil.rmtree(dirname)
