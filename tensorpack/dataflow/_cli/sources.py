"""The binary formats that the commands read: LMDB, TFRecord, npz and HDF5."""

import json
import os
import struct
import zipfile
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import dumps, loads

from .._files import DamagedFile
from .._hdf5_rows import VERSION_KEY
from .._lmdb.records import HEADER_KEY
from .._lmdb.values import looks_like_msgpack, looks_like_pickle
from ..base import DataFlow
from ..hdf5 import HDF5Data
from ..lmdb import LMDBData, open_old_lmdb
from ..npz import NumpySerializer
from ..tfrecord import TFRecordBytes, TFRecordData, masked_crc32c
from .errors import CommandError
from .source import EVERY, Source, watch_skipped

__all__ = ["HDF5Source", "LMDBSource", "NpzSource", "TFRecordSource"]

_LMDB_MAGIC = struct.pack("=I", 0xBEEFC0DE)
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_HDF5_PLACES = (0, 512, 1024, 2048)
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
_ZIP_BYTES = 1 << 20  # read at a time
_RECORD = struct.Struct("<QI")  # of a TFRecord file: the length, and the checksum of its 8 bytes
_RECORD_TAIL = 4


class LMDBSource(Source):
    """Datapoints that tensorpack wrote, now or earlier; or the records of another program."""

    name = "LMDB"
    suffixes = (".lmdb", ".mdb")
    _version = ""
    _contents = "datapoints of tensorpack"

    @classmethod
    def matches(cls, path: str, start: bytes) -> bool:
        return any(start[place : place + 4] == _LMDB_MAGIC for place in (16, 24))

    def open(self, max_errors: int = 0) -> DataFlow:
        # The file is checked here, and not again by a flow that is made of the same file.
        raw = LMDBData(self.path, shuffle=False, max_errors=max_errors)
        raw.lst._allow_pickle = self.options.allow_pickle
        if raw.lst.is_new():
            self._version = str(loads(raw.lst.file().get(HEADER_KEY))["version"])
            return self._datapoints(max_errors)
        self.has_checksums = False
        first = _first_value(raw)
        if looks_like_pickle(first):
            self._contents = "datapoints of old tensorpack, as pickles"
            self._check_allows_pickle()
            return self._datapoints(max_errors)
        if looks_like_msgpack(first):
            self._contents = "datapoints of tensorpack 0.2, as msgpack"
            return self._datapoints(max_errors)
        self._contents = "keys and values of another program"
        self.is_raw = True
        return raw

    def _datapoints(self, max_errors: int) -> DataFlow:
        return open_old_lmdb(self.path, self.options.allow_pickle, max_errors, probe=False)

    def _check_allows_pickle(self) -> None:
        if not self.options.allow_pickle:
            raise CommandError(
                f"{self.path} was written by an old version of tensorpack, and its values are "
                "pickles. If you trust the file, give --allow-pickle: only lists, dicts, numbers, "
                "text and plain numpy arrays are taken out of them."
            )

    def facts(self, flow: DataFlow) -> List[Tuple[str, str]]:
        return [("contents", self._contents), ("version", self._version or "none")]


def _first_value(raw: LMDBData) -> bytes:
    """The first value that is there, or nothing."""
    for index in range(len(raw.lst)):
        try:
            return raw.lst[index][1]
        except DamagedFile:  # a key in the list that is not in the file
            continue
    return b""


class TFRecordSource(Source):
    """Datapoints that tensorpack wrote, or the records of another program."""

    name = "TFRecord"
    suffixes = (".tfrecord", ".tfrecords")
    _version: Optional[str] = None

    @classmethod
    def matches(cls, path: str, start: bytes) -> bool:
        if len(start) < _RECORD.size:
            return False
        return masked_crc32c(start[:8]) == _RECORD.unpack_from(start)[1]

    def open(self, max_errors: int = 0) -> DataFlow:
        self._version = _version_of_records(self.path)
        self.is_raw = self._version is None
        kind = TFRecordBytes if self.is_raw else TFRecordData
        return kind(self.path, max_errors=max_errors)

    def length(self, flow: DataFlow) -> str:
        count = _number_of_records(self.path)
        return "unknown, for a length is damaged" if count is None else str(count)

    def facts(self, flow: DataFlow) -> List[Tuple[str, str]]:
        contents = "records of another program" if self.is_raw else "datapoints of tensorpack"
        return [("contents", contents), ("version", self._version or "none")]


def _version_of_records(path: str) -> Optional[str]:
    """The version of the datapoints in a file; None if the records are something else."""
    with watch_skipped(quiet=True):
        try:
            first = next(_records(path), None)
        except DamagedFile:
            first = None
    if first is None:  # no record is whole
        return "unknown"
    # A frame begins with four bytes that all of them have, and then its version.
    return str(first[4]) if first[:4] == dumps(None)[:4] else None


def _records(path: str) -> Iterator[bytes]:
    for (record,) in TFRecordBytes(path, max_errors=EVERY):
        yield record


def _number_of_records(path: str) -> Optional[int]:
    """Counts records by their lengths, without reading them; None if a length is damaged."""
    count = offset = 0
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while offset < size:
            header = file.read(_RECORD.size)
            if len(header) < _RECORD.size:
                return None
            length, checksum = _RECORD.unpack(header)
            offset += _RECORD.size + length + _RECORD_TAIL
            if masked_crc32c(header[:8]) != checksum or offset > size:
                return None
            file.seek(offset)
            count += 1
    return count


class NpzSource(Source):
    """Datapoints that `NumpySerializer` wrote; they are all read at once."""

    name = "npz"
    suffixes = (".npz",)

    @classmethod
    def matches(cls, path: str, start: bytes) -> bool:
        return start.startswith(_ZIP_MAGICS)

    def open(self, max_errors: int = 0) -> DataFlow:
        if max_errors not in (0, EVERY):
            logger.warning(
                "%s",
                f"{self.path} is read as a whole or not at all, so --max-errors {max_errors} makes "
                "no difference.",
            )
        return NumpySerializer.load(self.path, shuffle=False)

    def damage(self) -> List[str]:
        try:
            archive = zipfile.ZipFile(self.path)
        except Exception:  # `open` says what is wrong
            return []
        found = []
        with archive:
            for info in archive.infolist():
                try:
                    with archive.open(info) as member:
                        while member.read(_ZIP_BYTES):
                            pass
                except Exception as error:  # whatever damaged bytes lead `zipfile` to
                    place = f"member {info.filename} at byte {info.header_offset}"
                    found.append(f"{self.path}: {place}: {error}")
        return found

    def facts(self, flow: DataFlow) -> List[Tuple[str, str]]:
        # The header was checked when the flow was made.
        with zipfile.ZipFile(self.path) as archive, archive.open("header.npy") as member:
            header = np.lib.format.read_array(member, allow_pickle=False)
        version = json.loads(header.tobytes().decode("utf-8"))["version"]
        return [("contents", "datapoints of tensorpack"), ("version", str(version))]


class HDF5Source(Source):
    """Datasets of anybody; the rows of one index are a datapoint.

    Attributes:
      paths: the names of the datasets; right after `open`.
    """

    name = "HDF5"
    suffixes = (".h5", ".hdf5")
    paths: List[str] = []
    _version = ""

    @classmethod
    def matches(cls, path: str, start: bytes) -> bool:
        return any(start[place : place + 8] == _HDF5_MAGIC for place in _HDF5_PLACES)

    def open(self, max_errors: int = 0) -> DataFlow:
        names = self._look()
        self.paths = self.options.paths or names
        if not self.paths:
            raise CommandError(f"{self.path} has no dataset whose rows could be datapoints.")
        return HDF5Data(
            self.path, self.paths, shuffle=False, in_memory=False, max_errors=max_errors
        )

    def facts(self, flow: DataFlow) -> List[Tuple[str, str]]:
        return [("version", self._version or "none"), ("datasets", ", ".join(self.paths))]

    def _look(self) -> List[str]:
        """Returns the names of all datasets that have rows; notes the version, and checksums."""
        h5py = require("h5py")
        names: List[str] = []
        checked: List[bool] = []

        def note(name: str, found: Any) -> None:
            if isinstance(found, h5py.Dataset) and found.shape:
                names.append(name)
                checked.append(bool(found.fletcher32))

        try:
            with h5py.File(self.path, "r") as file:
                version = file.attrs.get(VERSION_KEY)
                file.visititems(note)
        except (OSError, RuntimeError, KeyError, ValueError) as error:
            if isinstance(error, OSError) and type(error) is not OSError:
                raise  # it may not be read
            raise DamagedFile(f"{self.path} is no whole HDF5 file: {error}.") from error
        self._version = "" if version is None else str(version)
        self.has_checksums = all(checked)
        return names
