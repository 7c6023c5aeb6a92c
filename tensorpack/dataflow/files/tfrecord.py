"""TFRecord files, written and read without TensorFlow; `utils.serialize` encodes the datapoints.

Such a file is a sequence of records, each with a checksum of its length and one of its bytes, and
nothing else: no header, no index, no mark at the end. It is read from front to back; a file that
ends between two records looks whole unless `size` is given. Reading runs no code.
"""

import os
import struct
from contextlib import contextmanager
from typing import Any, BinaryIO, Iterator, NamedTuple, Optional, Tuple

from tensorpack.utils.checks import as_count_or_none
from tensorpack.utils.optional import require
from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord

from .._flow import check_count, not_a_state
from ..base import DataFlow, ResumableDataFlow, UnknownLength
from . import records
from .records import DamagedFile, ErrorLimit, PathLike, Writing

_HEADER = struct.Struct("<QI")  # the length, and the checksum of its 8 bytes
_CHECKSUM = struct.Struct("<I")
_FRAMING = _HEADER.size + _CHECKSUM.size
_MASK_DELTA = 0xA282EAD8


class _Place(NamedTuple):
    """Where a pass is: the next byte, and how many records were read and how many skipped."""

    offset: int = 0
    records: int = 0
    skipped: int = 0


class TFRecordBytes(ResumableDataFlow):
    """Yields the records of any TFRecord file as `[bytes]`, in the order of the file.

    Its state is a place in the file, so another process that resumes from it reads nothing twice.
    """

    _STATE = dict.fromkeys(["bytes", *_Place._fields])  # the length of the file, and a `_Place`

    def __init__(self, path: PathLike, size: Optional[int] = None, max_errors: int = 0) -> None:
        """
        Args:
          path: of the file.
          size: the number of records in a pass, which stops there; a file of fewer is an error at
            its end. None if the file alone decides.
          max_errors: how many damaged records a pass skips, see `RecordsFlow`. A damaged length is
            always an error: it makes all later records unreadable.
        """
        size = as_count_or_none(self, "size", size, 0)
        require("google_crc32c")
        self.path = records.input_path(path)
        self.max_errors = max_errors
        self._size = size

    def __len__(self) -> int:
        if self._size is None:
            raise UnknownLength(
                f"The length of {type(self).__name__} is not known, for a TFRecord file does not "
                "tell it: give size= if you know the number of records."
            )
        return self._size

    def __iter__(self) -> Iterator[Any]:
        self._position = self._take_loaded() or _Place()
        return self._pass(self._position)

    def _pass(self, place: _Place) -> Iterator[Any]:
        limit = ErrorLimit(self.max_errors, place.skipped)
        with open(self.path, "rb") as file:
            end = os.fstat(file.fileno()).st_size
            file.seek(place.offset)
            while place.offset < end and place.records != self._size:
                where = f"{self.path}: record {place.records} at byte {place.offset}"
                length = self._read_length(file, place, where)
                try:
                    datapoint = self._read(file, length, end - place.offset - _FRAMING, where)
                except DamagedFile as error:
                    limit.skip(error)
                    datapoint = None
                after = end if length is None else min(place.offset + _FRAMING + length, end)
                place = _Place(after, place.records + 1, limit.count)
                if datapoint is not None:
                    self._position = place
                    yield datapoint
        if self._size is not None and place.records < self._size:
            raise DamagedFile(
                f"{self.path} has {place.records} records, but size={self._size}. Was it cut off? "
                "Otherwise give the true size, or none."
            )

    def _read_length(self, file: BinaryIO, place: _Place, where: str) -> Optional[int]:
        """Returns the length of the next record, or None if it is cut off."""
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return None
        length, checksum = _HEADER.unpack(header)
        if masked_crc32c(header[:8]) != checksum:
            records.refuse_gzip(self.path, header if place.offset == 0 else b"")
            advice = "what follows cannot be found." if place.offset else "is this a TFRecord file?"
            raise DamagedFile(f"{where} has a wrong checksum of its length: {advice}")
        return length

    def _read(self, file: BinaryIO, length: Optional[int], left: int, where: str) -> Any:
        """Returns the datapoint of a record, for whose bytes the file has `left`."""
        if length is None:
            raise DamagedFile(f"{where} is cut off in its length: the file ends there.")
        # Before anything is read: a length that is made up must not have memory set aside for it.
        if length > left:
            lengths = f"it has {length} bytes, but the file only {max(left, 0)} for it"
            raise DamagedFile(f"{where} is cut off: {lengths}.")
        data, tail = file.read(length), file.read(_CHECKSUM.size)
        if len(data) + len(tail) < length + _CHECKSUM.size:
            raise DamagedFile(f"{where} is cut off: the file became shorter.")
        if masked_crc32c(data) != _CHECKSUM.unpack(tail)[0]:
            raise DamagedFile(f"{where} has a wrong checksum: its {length} bytes changed.")
        try:
            return self._decode(data)
        except BadRecord as error:
            reason = str(error).rstrip(".")
            raise DamagedFile(
                f"{where} is not a datapoint: {reason}. Records of other programs are read by "
                "TFRecordBytes."
            ) from error
        except RefusedRecord as error:
            raise ValueError(f"{where}: {error}") from error

    def _decode(self, data: bytes) -> Any:
        return [data]

    def _first_position(self) -> Tuple[Any, ...]:
        return _Place()

    def _save_position(self, *place: Any) -> Tuple[Any, ...]:
        return (os.path.getsize(self.path), *place)

    def _restore_position(self, length: Any, *place: Any) -> Tuple[Any, ...]:
        size = os.path.getsize(self.path)
        if length != size:
            raise not_a_state(self, f"its file had {length} bytes, {self.path} has {size}")
        for count, limit in zip(place, (size, size, self.max_errors)):
            check_count(self, count, limit)
        return _Place(*place)


class TFRecordData(TFRecordBytes):
    """Yields the datapoints of a file that `TFRecordSerializer.save` wrote, also an old version.

    See `TFRecordBytes`, and `LMDBDataPoint` for `allow_pickle`.
    """

    def __init__(
        self,
        path: PathLike,
        size: Optional[int] = None,
        max_errors: int = 0,
        allow_pickle: bool = False,
    ) -> None:
        super().__init__(path, size, max_errors)
        self._allow_pickle = allow_pickle

    def _decode(self, data: bytes) -> Any:
        return records.decode_value(data, False, self._allow_pickle)


class TFRecordSerializer:
    """Writes the datapoints of a flow to a TFRecord file, and makes a flow of such a file."""

    @staticmethod
    def save(df: DataFlow, path: PathLike) -> int:
        """Writes one pass of a flow; see `write_records`."""
        return records.write_records(df, path, _writer)

    @staticmethod
    def load(
        path: PathLike, size: Optional[int] = None, max_errors: int = 0, allow_pickle: bool = False
    ) -> TFRecordData:
        """Returns a flow over the datapoints of a file; see `TFRecordData`."""
        return TFRecordData(path, size, max_errors, allow_pickle)


dump_dataflow_to_tfrecord = TFRecordSerializer.save  # its name of 2017


def masked_crc32c(data: bytes) -> int:
    """Returns the checksum that TFRecord files have: CRC-32C turned by 15 bits, plus a constant."""
    crc = require("google_crc32c").value(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


@contextmanager
def _writer(file: BinaryIO) -> Writing:
    def write(datapoint: Any, index: int) -> None:
        data = records.encode_datapoint(datapoint, index)
        length = struct.pack("<Q", len(data))
        file.write(length + _CHECKSUM.pack(masked_crc32c(length)))
        file.write(data)
        file.write(_CHECKSUM.pack(masked_crc32c(data)))

    yield write
