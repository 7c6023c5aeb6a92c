"""Reads the log directory of a run, and writes the page about it."""

import errno
import os
from typing import Optional

from tensorpack.utils.atomic import write_atomic

from ._page import page_of
from ._read import read_run

FILENAME = "report.html"


def write_report(directory: str, out: Optional[str] = None) -> str:
    """Writes what a log directory has to tell as one page of HTML, which needs no other file.

    It has the result and the circumstances of the run, curves of all scalars, the time report, the
    table of parameters, images, the end of the log, and links to the files of the directory. What
    is missing or damaged there is left out, and said.

    Args:
      directory: the log directory.
      out: path of the page; `report.html` in the directory by default.

    Returns:
      the path of the page.

    Raises:
      ValueError: there is no such directory, or it has no file of a run.
      OSError: the page cannot be written.
    """
    path = os.path.join(directory, FILENAME) if out is None else out
    run = read_run(directory)
    links_from = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(links_from):
        raise FileNotFoundError(errno.ENOENT, "No such folder", links_from)
    write_atomic(path, page_of(run, links_from).encode("utf-8", "backslashreplace"))
    return path
