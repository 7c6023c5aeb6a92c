"""LMDB files: keys and values in one file, read in any order through memory.

The values of datapoints are frames of `tensorpack.utils.serialize`, so each has a checksum, and
reading runs no code. Their keys are numbers, `00000000`, `00000001` and so on, with a list of them
under `__keys__`, as it was in 2017; a record `__tensorpack__` says how many there are. In files of
other programs all keys are read. A file must not be written to while it is read.
"""

import contextlib
import errno
import functools
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from tensorpack.utils import logger
from tensorpack.utils.checks import as_count
from tensorpack.utils.optional import msgpack_codec, require
from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord, decode_old, kind_of_old
from tensorpack.utils.serialize import dumps

from .._flow import is_flow
from ..base import DataFlow, ProxyDataFlow
from ..map import DatapointMap, checked_function
from . import records
from .lmdb_open import DamagedLMDB, OpenFile, data_file, open_shared
from .records import ErrorLimit, PathLike, RecordFile, RecordsFlow, Writing

HEADER_KEY, LIST_KEY = b"__tensorpack__", b"__keys__"
KEY_FORMAT = "{:08d}"
VERSION, CODEC = 1, "frame"  # of tensorpack.utils.serialize

_FIRST_MAP_BYTES = 2**26  # doubled whenever it is full; no space on the disk is taken by it
_MOST_BATCH_BYTES = 2**28  # of values that wait for their transaction
_KEY_BYTES = 8  # of a key as long as they are in order

WantedKeys = Union[None, str, Sequence[Union[bytes, str]]]


class FormattedKeys(Sequence[bytes]):
    """The keys that a format makes of 0, 1, 2 and so on; takes no memory."""

    def __init__(self, form: str, count: int) -> None:
        self._form, self._numbers = form, range(count)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        return self._form.format(self._numbers[index]).encode()


class LMDBRecords(RecordFile):
    """The records as `[key, value]`; keys of a file that changed while closed are found again."""

    def __init__(
        self, path: Any, keys: WantedKeys, shuffle: bool, allow_pickle: bool = False
    ) -> None:
        require("lmdb")
        super().__init__(data_file(path))
        self._wanted, self._readahead = _check_wanted(keys), not shuffle
        self._allow_pickle = allow_pickle
        self._known: Any = None  # the file whose keys were found: its number, size and time
        self._found: Any = None  # all keys, and whether each value has a checksum

    def open(self) -> OpenFile:
        file, status = open_shared(self.path, self._readahead), os.stat(self.path)
        known = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        if self._found is None or known != self._known:
            count = _read_header(file)
            self._found = self._find_keys(file, count), count is not None
            if known != self._known:
                logger.info("%s", f"Found {len(self._found[0])} entries in {self.path}")
            self._known = known
        return file

    def _contents(self) -> Tuple[OpenFile, Sequence[bytes], bool]:
        return (self.handle, *self._found)  # in this order: opening the file finds the keys

    @property
    def keys(self) -> Sequence[bytes]:
        """The keys of the records, in their order."""
        return self._contents()[1]

    def __len__(self) -> int:
        return len(self.keys)

    def read(self, index: int) -> Any:
        file, keys, is_new = self._contents()
        value = file.get(keys[index])
        if value is not None:
            return self._element(keys[index], value, is_new)
        if self._wanted is None:
            raise BadRecord("There is no such key, though the file itself names it.")
        known = [key for key in file.keys(3) if key not in (HEADER_KEY, LIST_KEY)]
        such = f" The file has keys such as {known[0]!r}." if known else ""
        advice = "Give those, or leave it out if tensorpack wrote the file."
        raise BadRecord(f"There is no such key, which the argument `keys` asks for.{such} {advice}")

    def _element(self, key: bytes, value: bytes, is_new: bool) -> Any:
        return [key, value]

    def where(self, index: int) -> str:
        return f"key {self.keys[index]!r}"

    def damaged(self, index: int, reason: str) -> DamagedLMDB:
        return DamagedLMDB(self.path, reason, self.keys[index])

    def is_new(self) -> bool:
        """Whether the file was written by this version, so that each value has a checksum."""
        return self._contents()[2]

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_found": None}  # much memory, and quickly found again

    def _find_keys(self, file: OpenFile, count: Optional[int]) -> Sequence[bytes]:
        listed = file.get(LIST_KEY)
        if isinstance(self._wanted, str):
            others = (listed is not None) + (count is not None)
            return FormattedKeys(self._wanted, file.entries() - others)
        if self._wanted is not None:
            return self._wanted
        if count is not None:
            return FormattedKeys(KEY_FORMAT, count)
        if file.entries() == 0:
            raise DamagedLMDB(file.path, "There are no records in it.")
        with contextlib.suppress(BadRecord, RefusedRecord):
            keys = _as_keys(decode_old(listed)) if listed and kind_of_old(listed) else None
            if keys is not None:
                return keys
        logger.warning(
            "%s",
            f"{file.path} has no list of keys that can be read: all its keys are read now, in the "
            "order of the file.",
        )
        return [key for key in file.keys() if key not in (HEADER_KEY, LIST_KEY)]


class LMDBDatapoints(LMDBRecords):
    """The datapoints that the values of a file of tensorpack hold."""

    def _element(self, key: bytes, value: bytes, is_new: bool) -> Any:
        try:
            return records.decode_value(value, is_new, self._allow_pickle)
        except BadRecord as error:
            others = "" if is_new else " Records of other programs are read by LMDBData."
            raise BadRecord(f"{error}{others}") from error


def _read_header(file: OpenFile) -> Optional[int]:
    """Returns the number of datapoints that the header of a file says; None without a header."""
    value = file.get(HEADER_KEY)
    if value is None:
        return None
    try:
        header = records.decode_value(value, is_new=True)
        version, codec, count = (header[name] for name in ("version", "codec", "count"))
        if (version, codec) != (VERSION, CODEC):
            raise ValueError(
                f"{file.path} has version {version} (values: {codec}), but only version {VERSION} "
                f"({CODEC}) is known here. Update tensorpack to read it."
            )
        found = file.entries() - 2  # without this record, and the list of keys
        if found != count:
            raise BadRecord(f"It was written with {count} datapoints, but has {found}.")
    except BadRecord as error:
        raise DamagedLMDB(file.path, str(error), HEADER_KEY) from error
    return count


def _check_wanted(wanted: Any) -> Union[None, str, List[bytes]]:
    """Returns the argument `keys`, with keys as bytes."""
    if isinstance(wanted, str):
        with contextlib.suppress(LookupError, ValueError):
            if wanted.format(0) != wanted.format(1):
                return wanted
        raise ValueError(f"keys is a format for numbers such as {{:08d}}, but got {wanted!r}.")
    is_list = hasattr(wanted, "__iter__") and not isinstance(wanted, (bytes, dict))
    keys = _as_keys(list(wanted) if is_list else None)
    if keys is None and wanted is not None:
        raise TypeError(f"keys is a list of bytes or text, or a format, but got {wanted!r:.80}.")
    return keys


def _as_keys(found: Any) -> Optional[List[bytes]]:
    if not isinstance(found, list):
        return None
    keys = [key.encode() if isinstance(key, str) else key for key in found]
    return keys if all(isinstance(key, bytes) for key in keys) else None


class LMDBData(RecordsFlow):
    """Yields the records of an LMDB file as `[key, value]`, both bytes.

    A process opens it once, however many flows read it. Named databases in it are not read.
    """

    _RECORDS = LMDBRecords

    def __init__(
        self,
        lmdb_path: PathLike,
        shuffle: bool = True,
        keys: WantedKeys = None,
        max_errors: int = 0,
    ) -> None:
        """
        Args:
          lmdb_path: the file, or the directory with `data.mdb`.
          shuffle: whether each pass has its own order. If not, records come in the order of `keys`.
          keys: a list of keys; or the format that makes them of 0, 1, 2 and so on, such as
            "{:08d}"; or None for all that tensorpack has written, or else all there are, which are
            read first, with a warning.
          max_errors: how many missing or damaged records a pass skips, see `RecordsFlow`.
        """
        super().__init__(self._RECORDS(lmdb_path, keys, shuffle), shuffle, max_errors)


class LMDBDataDecoder(DatapointMap):
    """Applies a function to keys and values, and drops those for which it returns None.

    `len` is that of the wrapped flow, so it is too large if records are dropped.
    """

    def __init__(self, lmdb_data: DataFlow, decoder: Callable[[Any, Any], Any]) -> None:
        """Takes a flow of `[key, value]`, and a function that returns a datapoint or None."""
        super().__init__(lmdb_data)
        self.decoder: Any = checked_function(self, decoder)

    def _apply(self, datapoint: Any) -> Any:
        return self.decoder(*datapoint)


class LMDBDataPoint(ProxyDataFlow):
    """Yields the datapoints of an LMDB file that tensorpack wrote, also an old version."""

    def __init__(
        self,
        lmdb_path: Union[PathLike, DataFlow],
        shuffle: bool = True,
        keys: WantedKeys = None,
        max_errors: int = 0,
        allow_pickle: bool = False,
    ) -> None:
        """
        Args:
          lmdb_path, shuffle, keys, max_errors: as for `LMDBData`; or `lmdb_path` is a flow
            of `[key, value]`, and only `max_errors` is given.
          allow_pickle: whether Python unpickles old values that are no lists, dicts, numbers,
            text or numpy arrays, which can run any code: only for files that you trust.
        """
        if is_flow(lmdb_path):
            if (shuffle, keys) != (True, None):
                raise TypeError("LMDBDataPoint takes a flow, or what LMDBData takes, but not both.")
            super().__init__(_Decoded(lmdb_path, max_errors, allow_pickle))
            return
        found = LMDBDatapoints(lmdb_path, keys, shuffle, allow_pickle)
        super().__init__(RecordsFlow(found, shuffle, max_errors))


class _Decoded(DatapointMap):
    """Decodes the values of any flow of `[key, value]`; counts damaged ones for each pass."""

    def __init__(self, ds: Any, max_errors: int, allow_pickle: bool) -> None:
        super().__init__(ds)
        self._limit, self._allow_pickle = ErrorLimit(max_errors), allow_pickle

    def _transform(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        self._limit = ErrorLimit(self._limit.max_errors)
        return super()._transform(datapoints)

    def _apply(self, datapoint: Any) -> Any:
        key, value = datapoint
        known = self.ds.lst if isinstance(self.ds, LMDBData) else None
        source = type(self.ds).__name__ if known is None else known.path
        try:
            return records.decode_value(value, bool(known and known.is_new()), self._allow_pickle)
        except BadRecord as error:
            self._limit.skip(DamagedLMDB(source, str(error), key))
            return None
        except RefusedRecord as error:
            raise ValueError(f"{source}, key {key!r}: {error}") from error


class LMDBSerializer:
    """Saves the datapoints of a flow to an LMDB file, and loads them again."""

    @staticmethod
    def save(df: DataFlow, path: PathLike, write_frequency: int = 5000) -> int:
        """Writes one pass of a flow; see `write_records`.

        `path` may be a directory that exists, to make `data.mdb` in it. A transaction has
        `write_frequency` datapoints, which wait in memory; fewer if they have more than 256 MiB.
        """
        return _write(df, path, write_frequency, type(df).__name__)

    @staticmethod
    def load(
        path: PathLike,
        shuffle: bool = True,
        max_errors: int = 0,
        allow_pickle: bool = False,
    ) -> LMDBDataPoint:
        """Returns a flow of the datapoints that `save` wrote; see `LMDBDataPoint`."""
        return LMDBDataPoint(path, shuffle, None, max_errors, allow_pickle)


def dump_dataflow_to_lmdb(df: DataFlow, lmdb_path: PathLike, write_frequency: int = 5000) -> None:
    """Does what `LMDBSerializer.save` does, under its name of 2017."""
    LMDBSerializer.save(df, lmdb_path, write_frequency)


def convert_old_lmdb(
    old_path: PathLike,
    new_path: PathLike,
    allow_pickle: bool = False,
    write_frequency: int = 5000,
) -> None:
    """Writes the datapoints of an old LMDB file to a new one, with checksums, without pickles."""
    old = LMDBDataPoint(old_path, shuffle=False, allow_pickle=allow_pickle)
    with contextlib.closing(old):
        _write(old, new_path, write_frequency, os.fsdecode(old_path))


def _write(df: DataFlow, path: PathLike, write_frequency: int, source: str) -> int:
    write_frequency = as_count("dump_dataflow_to_lmdb", "write_frequency", write_frequency)
    target = os.path.join(path, "data.mdb") if os.path.isdir(path) else os.fsdecode(path)
    write_to = functools.partial(_writer, target, write_frequency)
    count = records.write_records(df, target, write_to, least=0)
    logger.info("%s", f"{count} datapoints of {source} are in {os.fsdecode(path)}.")
    return count


@contextlib.contextmanager
def _writer(target: str, write_frequency: int, file: Any) -> Writing:
    lmdb = require("lmdb")
    # Synchronised once, at the end. No other process knows its name, so nothing is locked.
    options = {"subdir": False, "sync": False, "lock": False, "max_dbs": 0}
    batch: List[Tuple[bytes, bytes]] = []
    count = size = 0

    def write(datapoint: Any, index: int) -> None:
        nonlocal count, size
        value = records.encode_datapoint(datapoint, index)
        batch.append((KEY_FORMAT.format(index).encode(), value))
        count, size = index + 1, size + len(value)
        if len(batch) == write_frequency or size >= _MOST_BATCH_BYTES:
            _write_batch(env, batch)
            batch.clear()
            size = 0

    try:
        with lmdb.open(file.name, map_size=_FIRST_MAP_BYTES, **options) as env:
            yield write
            keys = list(FormattedKeys(KEY_FORMAT, count))
            listed = LIST_KEY, msgpack_codec().Packer().pack(keys)
            header = HEADER_KEY, dumps({"version": VERSION, "codec": CODEC, "count": count})
            _write_batch(env, [*batch, listed, header])
            # LMDB keeps the last two states of a file, and takes that of the higher number. Now
            # both are whole, so damage to such a number does not hide data.
            _write_batch(env, [header])
            env.sync(True)
    except lmdb.Error as error:
        is_full = isinstance(error, lmdb.DiskError)  # nearly always
        code, why = (errno.ENOSPC, "the disk is full") if is_full else (errno.EIO, "LMDB failed")
        raise OSError(code, f"Nothing was written, for {why} ({error})", target) from error


def _write_batch(env: Any, batch: List[Tuple[bytes, bytes]]) -> None:
    """Writes some records in one transaction; makes the map larger until they fit."""
    while True:
        try:
            with env.begin(write=True) as transaction:
                for key, value in batch:
                    # What is known to come last needs no search, and fills the pages.
                    transaction.put(key, value, append=len(key) == _KEY_BYTES)
            return
        except require("lmdb").MapFullError:
            env.set_mapsize(2 * env.info()["map_size"])
