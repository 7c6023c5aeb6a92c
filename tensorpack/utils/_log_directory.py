"""Finding or making room in the file system for a run's log directory."""

import os
import shutil

__all__ = ["delete", "has_files", "make_numbered"]


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


def delete(dirname: str) -> None:
    """Deletes a directory with all that is in it.

    Raises:
      ValueError: if the working directory is in it.
    """
    doomed, here = os.path.realpath(dirname), os.path.realpath(os.getcwd())
    if os.path.commonpath([doomed, here]) == doomed:
        raise ValueError(f"The program runs inside {dirname}, which is therefore not deleted.")
    shutil.rmtree(dirname)
