"""What readers and writers of files share: errors that name the place, and how many are skipped."""

import os
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from tensorpack.utils import logger
from tensorpack.utils.atomic import open_atomic, remove_temporaries
from tensorpack.utils.old_values import BadRecord, decode_old, kind_of_old
from tensorpack.utils.serialize import FrameError, dumps, load_frame

from .._flow import call_optional
from ..raw import DataFromList, share_positions

PathLike = Union[str, "os.PathLike[str]"]


class DamagedFile(ValueError):
    """What a file holds cannot be used; the message names the file, the record and the place."""


_collected: ContextVar[Optional[List[str]]] = ContextVar("collected_damage", default=None)


@contextmanager
def collected_damage() -> Iterator[List[str]]:
    """Yields a list that gets the text of each damaged record that is skipped inside the block.

    They are not logged then. It holds for the thread that enters the block.
    """
    found: List[str] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


class ErrorLimit:
    """Lets a pass skip some damaged records, each with a line in the log, but no more."""

    def __init__(self, max_errors: int, count: int = 0) -> None:
        """Takes how many records may be skipped, and how many the pass has skipped already."""
        if max_errors < 0:
            raise ValueError(f"max_errors is a number of damaged records, but got {max_errors}.")
        self.max_errors = max_errors
        self.count = count

    def skip(self, error: DamagedFile, records: int = 1) -> None:
        """Logs an error by which so many records are lost; raises it if they are too many."""
        if self.max_errors == 0:
            raise error
        if self.count + records > self.max_errors:
            more = f"and these are {records} more, which is beyond what"
            raise DamagedFile(
                f"{error} This pass has skipped {self.count} already, "
                f"{more if records > 1 else 'which is all that'} max_errors={self.max_errors} "
                "allows."
            ) from error
        self.count += records
        found = _collected.get()
        if found is None:
            logger.warning("%s", f"Skipped {self.count} of at most {self.max_errors}: {error}")
        else:
            found.append(str(error))


class RecordsFlow(DataFromList):
    """A `DataFromList` over records that are read one by one, and may be damaged.

    `records` has a length, and raises `DamagedFile` for records that it cannot give. A pass skips
    `max_errors` of them, each with a warning in the log; one more is an error. `len` counts damaged
    records as well. A pass that is resumed from a state counts those that it skips from there.
    """

    _last = 0  # the index of the record that was read last

    def __init__(self, records: Any, shuffle: bool, max_errors: int = 0) -> None:
        super().__init__(records, shuffle)
        self.max_errors = ErrorLimit(max_errors).max_errors

    @property
    def last_file(self) -> Optional[str]:
        """The file of the record that was read last; None if `records` has no `file_of`."""
        file_of = getattr(self.lst, "file_of", None)
        return None if file_of is None else file_of(self._last)

    def _pass(self, begin: Dict[str, Any], order: Sequence[int], first: int) -> Iterator[Any]:
        limit = ErrorLimit(self.max_errors)
        for count, index in enumerate(order[first:], first + 1):
            self._last = index
            try:
                datapoint = self.lst[index]
            except DamagedFile as error:
                limit.skip(error)
                continue
            self._position = begin, count
            yield datapoint

    def iterate_share(
        self, first: int, step: int, before: Callable[[int], Any], block: Optional[int] = 1
    ) -> Iterator[Tuple[int, Any]]:
        """Begins a share of a pass, as in `DataFlow`; `max_errors` holds for each share."""
        limit = ErrorLimit(self.max_errors)
        begin, order = self._begin()
        for position in share_positions(len(order), first, step, block):
            before(position)
            self._last = order[position]
            try:
                datapoint = self.lst[self._last]
            except DamagedFile as error:
                limit.skip(error)
                datapoint = None
            yield position, datapoint
        self._position, self._loaded = (begin, len(order)), None

    def close(self) -> None:
        """Closes the file that has the records; it is opened again when one is needed."""
        call_optional(self.lst, "close")


def input_path(path: PathLike) -> str:
    """Returns the absolute path of a file to read; raises OSError if there is no such file."""
    path = os.fspath(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder. Give the path of one file in it.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"There is no file {path} (seen from {os.getcwd()}).")
    return os.path.abspath(path)


@contextmanager
def open_new(path: PathLike) -> Iterator[BinaryIO]:
    """Opens a file for writing that appears under its name, whole, at the end of the block.

    Until then it has a temporary name in the same folder, which is `name` of what is yielded. A
    file of this name is left as it is, and is an error. What killed processes left is removed.
    """
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"Cannot write {path}: there is no folder {folder}. Make it first.")
    _refuse_existing(path)
    remove_temporaries(folder)
    with open_atomic(path) as file:
        yield file
        _refuse_existing(path)  # another process may have been faster


def encode_datapoint(datapoint: Any, index: int, problem: str = " cannot be written") -> bytes:
    """Returns a datapoint as a frame, or raises a TypeError or ValueError that names `index`."""
    try:
        return dumps(datapoint)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Datapoint {index}{problem}: {error}") from error


def decode_value(value: bytes, is_new: bool, allow_pickle: bool = False) -> Any:
    """Returns the datapoint in a value of a file: a frame, or msgpack or a pickle of old versions.

    Args:
      value: the bytes; the first ones tell which of these they are.
      is_new: whether the file is of this version, so that anything but a frame is damage.
      allow_pickle: whether pickles are read that can run code.

    Raises:
      BadRecord: it is damaged, or not of tensorpack.
      RefusedRecord: it needs more than plain data.
    """
    if not is_new and kind_of_old(value):
        return decode_old(value, allow_pickle)
    try:
        return load_frame(value)
    except FrameError as error:
        raise BadRecord(str(error)) from error


def is_gzip(start: bytes) -> bool:
    """Whether a file that begins with these bytes is compressed by gzip."""
    return start[:2] == b"\x1f\x8b"


def _refuse_existing(path: str) -> None:
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists already. Remove it, or write to another name.")
