"""TFRecord files, written and read without TensorFlow; `utils.serialize` encodes the datapoints.

Such a file is a sequence of records, each with a checksum of its length and one of its bytes, and
nothing else: a file that ends between two records looks whole unless `size` is given.
"""

import functools
import gzip
import io
import os
import struct
import zlib
from contextlib import contextmanager
from typing import Any, BinaryIO, Iterator, Optional, Tuple

from tensorpack.utils.checks import as_count_or_none
from tensorpack.utils.optional import Lazy, require
from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord

from .._flow import not_a_state
from ..base import DataFlow, ResumableDataFlow, UnknownLength
from . import records
from .records import DamagedFile, ErrorLimit, PathLike, Writing

_HEADER = struct.Struct("<QI")  # the length, and the checksum of its 8 bytes
_CHECKSUM = struct.Struct("<I")
_BUFFER_BYTES = 1 << 18
_google_crc32c: Any = Lazy("google_crc32c")
_GZIP_ERRORS = (EOFError, zlib.error, getattr(gzip, "BadGzipFile", OSError))  # from Python 3.8 on


class TFRecordBytes(ResumableDataFlow):
    """Yields the records of any TFRecord file as `[bytes]`, in the order of the file.

    Its state is a place in the file, so another process that resumes from it decodes nothing twice.
    """

    # The length of the file; in `_position`: the next byte of what is in it, and how many records
    # were read and how many skipped.
    _STATE = dict.fromkeys(["bytes", "offset", "records", "skipped"])

    def __init__(self, path: PathLike, size: Optional[int] = None, max_errors: int = 0) -> None:
        """
        Args:
          path: of the file.
          size: the number of records in a pass, which stops there; a file of fewer is an error at
            its end. None if the file alone decides.
          max_errors: how many damaged records a pass skips, see `RecordsFlow`. A damaged length, or
            damage to a compressed file, is always an error: it makes later records unreadable.
        """
        size = as_count_or_none(self, "size", size, 0)
        require("google_crc32c")
        self.path = records.input_path(path)
        self.max_errors = max_errors
        self._size = size

    def __len__(self) -> int:
        if self._size is None:
            raise UnknownLength("A TFRecord file does not tell its length: give size= if you know.")
        return self._size

    def __iter__(self) -> Iterator[Any]:
        self._position = self._take_loaded() or self._first_position()
        return self._pass(*self._position)

    def _pass(self, offset: int, count: int, skipped: int) -> Iterator[Any]:
        limit = ErrorLimit(self.max_errors, skipped)
        with _open(self.path) as file:
            file.seek(offset)
            while count != self._size:
                datapoint = None
                try:
                    data = _read_record(file)
                    if data is None:
                        break
                    datapoint = self._decode(data)
                    offset += _HEADER.size + len(data) + _CHECKSUM.size
                except (BadRecord, RefusedRecord, *_GZIP_ERRORS) as error:
                    limit.skip(error, f"{self.path}: record {count} at byte {offset}")
                    offset = file.tell()
                count += 1
                if datapoint is not None:
                    self._position = offset, count, limit.count
                    yield datapoint
        if self._size is not None and count < self._size:
            raise DamagedFile(
                f"{self.path} has {count} records, but size={self._size}. Was it cut off? "
                "Otherwise give the true size, or none."
            )

    def _decode(self, data: bytes) -> Any:
        return [data]

    def _first_position(self) -> Tuple[Any, ...]:
        return 0, 0, 0

    def _save_position(self, *place: Any) -> Tuple[Any, ...]:
        return (os.path.getsize(self.path), *place)

    def _restore_position(self, nbytes: Any, *place: Any) -> Tuple[Any, ...]:
        size = os.path.getsize(self.path)
        if nbytes != size:
            raise not_a_state(self, f"its file had {nbytes} bytes, {self.path} has {size}")
        return place


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
        return records.decode_value(data, self._allow_pickle, "TFRecordBytes")


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


def _crc(data: bytes) -> int:
    """Returns the checksum that TFRecord files have: CRC-32C turned by 15 bits, plus a constant."""
    crc = _google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _open(path: str) -> BinaryIO:
    file = open(path, "rb", _BUFFER_BYTES)
    header = file.read(_HEADER.size)
    file.seek(0)
    # A record of some lengths begins as a file of gzip does.
    if header[:2] != b"\x1f\x8b" or header[8:] == _CHECKSUM.pack(_crc(header[:8])):
        return file
    file.close()
    return io.BufferedReader(gzip.open(path), _BUFFER_BYTES)  # type: ignore[arg-type]


def _read_record(file: BinaryIO) -> Optional[bytes]:
    """Returns the next record, or None at the end; a `RefusedRecord` if what follows is lost."""
    header = file.read(_HEADER.size)
    if not header:
        return None
    if len(header) == _HEADER.size:
        data, tail = file.read(_length_of(header)), file.read(_CHECKSUM.size)
        if len(tail) == _CHECKSUM.size:
            if _crc(data) != _CHECKSUM.unpack(tail)[0]:
                raise BadRecord(f"A wrong checksum: its {len(data)} bytes changed.")
            return data
    raise BadRecord("It is cut off: the file ends in it.")


@functools.lru_cache(1024)  # most records of a file have one of few lengths
def _length_of(header: bytes) -> int:
    length, checksum = _HEADER.unpack(header)
    if _crc(header[:8]) != checksum:
        raise RefusedRecord(
            "A wrong checksum of its length, so what follows cannot be found. Is this a TFRecord "
            "file?"
        )
    return length


@contextmanager
def _writer(file: BinaryIO) -> Writing:
    def write(datapoint: Any, index: int) -> None:
        data = records.encode_datapoint(datapoint, index)
        length = struct.pack("<Q", len(data))
        file.write(length + _CHECKSUM.pack(_crc(length)))
        file.write(data)
        file.write(_CHECKSUM.pack(_crc(data)))

    yield write
