"""What the commands ask of a file of datapoints, whatever its format."""

import contextlib
import logging
import os
import sys
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple, Union

from .._length import length_or_none
from ..base import DataFlow

__all__ = ["EVERY", "InputOptions", "Source", "suffix_of", "watch_skipped"]

EVERY = sys.maxsize  # as many errors as there are
_SKIPPED = "Skipped "  # how the log begins to tell of a record that is left out


class InputOptions(NamedTuple):
    """How the user wants a file to be read.

    Attributes:
      allow_pickle: whether the values of an old LMDB file may be pickles.
      paths: the datasets of an HDF5 file; None for all.
      dtypes: of the columns of a CSV file, one for all or one for each; None for text.
      header: whether a CSV file has names in its first line.
    """

    allow_pickle: bool = False
    paths: Optional[List[str]] = None
    dtypes: Union[None, str, List[str]] = None
    header: bool = True


class Source:
    """A file of datapoints.

    Attributes:
      name: of the format.
      suffixes: that names of such files have, in small letters.
      has_checksums: whether damage inside of a datapoint is found; right after `open`.
      is_raw: whether a datapoint is a record of another program, as bytes; right after `open`.
      path: of the file.
    """

    name = ""
    suffixes: Tuple[str, ...] = ()
    has_checksums = True
    is_raw = False

    def __init__(self, path: str, options: InputOptions) -> None:
        """
        Args:
          path: of a file that exists.
          options: the user's wishes; those that are for other formats are not looked at.
        """
        self.path = path
        self.options = options

    @classmethod
    def matches(cls, path: str, start: bytes) -> bool:
        """Whether a file is of this format by what it holds.

        Args:
          path: of the file.
          start: its first bytes.
        """
        return False

    def open(self, max_errors: int = 0) -> DataFlow:
        """Returns a flow of the datapoints in the order of the file.

        Args:
          max_errors: how many damaged records it goes past, each with a line in the log.

        Raises:
          CommandError: it cannot be read without something that the user did not give.
          ImportError: a package for the format is not installed.
          OSError, ValueError: the file cannot be read, or is damaged.
        """
        raise NotImplementedError(f"Define {type(self).__name__}.open().")

    def damage(self) -> List[str]:
        """Returns what is wrong with the file where `open` would tell only the first of it."""
        return []

    def length(self, flow: DataFlow) -> str:
        """Returns how many datapoints there are, in words where it is not known."""
        length = length_or_none(flow)
        return "unknown" if length is None else str(length)

    def facts(self, flow: DataFlow) -> List[Tuple[str, str]]:
        """Returns what there is to say of this file beside its size and length, as name and text.

        Args:
          flow: what `open` returned.
        """
        return []


def suffix_of(path: str) -> str:
    """Returns how the name of a file ends, in small letters, such as `.npz`."""
    return os.path.splitext(path.rstrip(os.sep))[1].lower()


@contextlib.contextmanager
def watch_skipped(quiet: bool) -> Iterator[List[str]]:
    """Collects what the log says of records that are skipped.

    All readers of files tell it through the log, and only there.

    Args:
      quiet: whether the lines are to be kept out of the log.

    Yields:
      a list that what is wrong with each record is added to.
    """
    watching = _Watching(quiet)
    target = logging.getLogger("tensorpack")
    target.addFilter(watching)
    try:
        yield watching.found
    finally:
        target.removeFilter(watching)


class _Watching(logging.Filter):
    """Hears what `ErrorLimit.skip` logs: "Skipped 1 of at most 5: " and what is wrong."""

    def __init__(self, quiet: bool) -> None:
        super().__init__()
        self.found: List[str] = []
        self._quiet = quiet

    def filter(self, record: Any) -> bool:
        text = record.getMessage()
        if record.levelno != logging.WARNING or not text.startswith(_SKIPPED):
            return True
        self.found.append(text.partition(": ")[2])
        return not self._quiet
