"""What all formats share: the file by record, its flow, its writer, damage and how much is skipped.

A format is a `RecordFile` that opens a file and reads a record, a `RecordsFlow` of it, and a writer
for `write_records`.
"""

import operator
import os
import typing
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Union

from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.atomic import open_atomic, remove_temporaries
from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord, decode_old, kind_of_old
from tensorpack.utils.serialize import FrameError, dumps, load_frame

from .._flow import ProcessLocal, call_optional, length_or_none
from .._read_ahead import parts_of
from ..base import DataFlow
from ..raw import DataFromList

PathLike = Union[str, "os.PathLike[str]"]
Writing = Iterator[Callable[[Any, int], None]]  # of the function that a writer yields, see below
Writer = Callable[[Any], typing.ContextManager[Callable[[Any, int], None]]]


class DamagedFile(ValueError):
    """What a file holds cannot be used; the message names the file, the record and the place."""


class ErrorLimit:
    """Lets a pass skip `max_errors` damaged records, each with a line in the log, but no more."""

    def __init__(self, max_errors: int, count: int = 0) -> None:
        self.max_errors, self.count = max_errors, count  # of those skipped

    def skip(self, error: Exception, where: str = "") -> None:
        """Logs an error by which a record is lost; raises it if they are too many, or if it is
        neither `DamagedFile` nor `BadRecord`. `where` is the file and the record.
        """
        message = f"{where}: {error}" if where else str(error)
        if not isinstance(error, (DamagedFile, BadRecord)):
            raise DamagedFile(message) from error
        if self.count >= self.max_errors:
            advice = "max_errors=N skips N of them."
            if self.count:
                advice = f"This pass has skipped {self.count} already."
            raise DamagedFile(f"{message} {advice}") from error
        self.count += 1
        logger.warning("%s", f"Skipped {self.count} of at most {self.max_errors}: {message}")


class RecordFile:
    """The datapoints of a file by number; a subclass for each format.

    It defines `open()`, which returns what reads the file, and whose `close` is called if there is
    one; `__len__()`; `read(index)`, which returns a datapoint or raises `self.damaged(index, why)`;
    and `where(index)` if it can say more than the number. The file, of which `path` is absolute, is
    opened when `handle` is first needed, once in each process: a copy in another process, forked or
    unpickled, opens it again.
    """

    open: Callable[[], Any]
    read: Callable[[int], Any]

    def __init__(self, path: PathLike) -> None:
        """Raises OSError if there is no such file."""
        self.path = input_path(path)
        self._opened = ProcessLocal(operator.methodcaller("open"))

    def where(self, index: int) -> str:
        """Returns what an error calls a record, beside the path of the file."""
        return f"record {index}"

    @property
    def handle(self) -> Any:
        """What `open` returned in this process."""
        return self._opened.get(self)

    def __getitem__(self, index: int) -> Any:
        try:
            return self.read(index)
        except (BadRecord, FrameError) as error:
            raise self.damaged(index, str(error)) from error
        except RefusedRecord as error:
            raise ValueError(f"{self.path}, {self.where(index)}: {error}") from error

    def damaged(self, index: int, reason: str) -> DamagedFile:
        """Returns the error about a record."""
        return DamagedFile(f"{self.path}, {self.where(index)}: {reason}")

    def close(self) -> None:
        """Closes the file in this process; it is opened again when it is needed."""
        call_optional(self._opened.take(), "close")


class RecordsFlow(DataFromList):
    """A `DataFromList` over a `RecordFile`, or other records that may be damaged.

    A record that raises `DamagedFile` is skipped: `max_errors` of them in a pass, each with a
    warning in the log; one more is an error. `len` counts them. A pass that is resumed counts those
    that it skips from there.
    """

    _last = 0  # the index of the record that was read last

    def __init__(self, records: Any, shuffle: bool, max_errors: int = 0) -> None:
        super().__init__(records, shuffle)
        self.max_errors = max_errors

    @property
    def last_file(self) -> Optional[str]:
        """The file of the record that was read last; None if all are in one, without `files`."""
        files = getattr(self.lst, "files", None)
        return None if files is None else files[self._last]

    def _pass(self, begin: Dict[str, Any], order: Sequence[int], first: int) -> Iterator[Any]:
        limit, read = ErrorLimit(self.max_errors), self.lst.__getitem__
        for count, index in enumerate(order[first:], first + 1):
            self._last = index
            try:
                datapoint = read(index)
            except DamagedFile as error:
                limit.skip(error)
                datapoint = None
            self._position = begin, count
            if datapoint is not None:
                yield datapoint

    def close(self) -> None:
        """Closes the file that has the records; it is opened again when one is needed."""
        call_optional(self.lst, "close")


def input_path(path: PathLike) -> str:
    """Returns the absolute path of a file to read; raises OSError if there is no such file."""
    os.stat(path)
    return os.path.abspath(os.fsdecode(path))


def write_records(df: DataFlow, path: PathLike, writer: Writer, least: int = 1) -> int:
    """Writes one pass of a flow, which is reset first, to a new file; returns its length.

    The file appears under its name when it is complete and on the disk. A FileExistsError is raised
    if there is one, a ValueError if the flow has fewer than `least` datapoints, or a pass of it is
    a mixture.

    `writer` takes the file, open for bytes, and returns a context that yields a function of a
    datapoint and its number, from 0. What the context does at its end completes the file.
    """
    for part in parts_of(df):
        workers = getattr(part, "_mixed", 1)
        if workers > 1:
            raise ValueError(
                f"A pass of {type(part).__name__} with {workers} workers is a mixture: it has some "
                "datapoints twice and lacks others. Give it one worker, or let MultiProcessMapData "
                "do the work, which has each datapoint once."
            )
    path = os.fsdecode(path)
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists already. Remove it, or write to another name.")
    remove_temporaries(os.path.dirname(os.path.abspath(path)))  # of killed processes
    with open_atomic(path) as file:
        df.reset_state()
        total, count = length_or_none(df), 0
        with writer(file) as write, get_tqdm(df, total=total, desc=os.path.basename(path)) as bar:
            for count, datapoint in enumerate(bar, 1):
                write(datapoint, count - 1)
            if count < least:
                raise ValueError("The flow has no datapoints: nothing to write.")
    return count


def encode_datapoint(datapoint: Any, index: int, problem: str = " cannot be written") -> bytes:
    """Returns a datapoint as a frame, or raises a TypeError or ValueError that names `index`."""
    try:
        return dumps(datapoint)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Datapoint {index}{problem}: {error}") from error


def decode_value(value: bytes, allow_pickle: bool, reader: str) -> Any:
    """Returns the datapoint in a record: a frame, or msgpack or a pickle of old versions.

    Raises `BadRecord`, which names the `reader` of other records; and `RefusedRecord` for a pickle
    that can run code, unless `allow_pickle`.
    """
    try:
        return load_frame(value)
    except FrameError as error:
        if kind_of_old(value):
            return decode_old(value, allow_pickle)
        reason = str(error).rstrip(".")
        raise BadRecord(
            f"It is not a datapoint: {reason}. Records of other programs are read by {reader}."
        ) from error
