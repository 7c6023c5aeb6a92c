"""LMDB files: keys and values in one file, read in any order through memory.

The values of datapoints are frames of `tensorpack.utils.serialize`, so each has a checksum, and
reading runs no code. Their keys are numbers, `00000000`, `00000001` and so on, with a list of them
under `__keys__`, as in 2017. liblmdb reads a file as memory, so damage to the tree of its pages may
end the process. A file must not be written to while it is read.
"""

import contextlib
import functools
import os
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from tensorpack.utils import logger
from tensorpack.utils.checks import as_count
from tensorpack.utils.optional import msgpack_codec, require
from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord, decode_old

from .._flow import is_flow
from ..base import DataFlow, ProxyDataFlow
from ..map import DatapointMap, check_function
from . import records
from .records import DamagedFile, ErrorLimit, PathLike, RecordFile, RecordsFlow, Writing

LIST_KEY = b"__keys__"
_HEADER_KEY = b"__tensorpack__"  # of a record that earlier versions wrote
_KEY_FORMAT = "{:08d}"
_KEYS_IN_ORDER = 10**8  # as long as they have 8 digits
_MAP_BYTES = 2**40  # of addresses, which take neither memory nor disk
_TRANSACTION_BYTES = 2**28  # it is in memory

Keys = Union[None, str, Sequence[Union[bytes, str]]]


class OpenFile:
    """An LMDB file, open in this process for all its threads; closed when it is collected."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def read(self, function: Callable[[Any], Any]) -> Any:
        """Returns what a function of a transaction does. The transaction is freed with this call,
        in which the file is held: freed after another thread has closed the file, it crashes.
        """
        with self.env.begin() as transaction:
            return function(transaction)


class _OpenFiles:
    """The files that are open in this process, shared by all flows.

    liblmdb forbids opening a file twice in a process, and using one that a parent process opened.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # reentrant: garbage collection may call `_close` anywhere
        # By device and number of the file. Environments are held here: `_close` has to wait for
        # the end of one before the file can be opened again.
        self._files: Dict[Tuple[int, int], Tuple[Any, Any]] = {}

    def open(self, path: str, readahead: bool) -> OpenFile:
        """Returns the file; opens it, with or without `readahead`, unless it is open already."""
        if self._pid != os.getpid():
            inherited = list(self._files.values())
            self.__init__()  # type: ignore[misc]  # a thread that is not here may hold the lock
            for _, env in inherited:
                env.close()
        with self._lock:
            status = os.stat(path)
            key = status.st_dev, status.st_ino
            reference, env = self._files.pop(key, (lambda: None, None))  # so `_close` leaves it
            file = reference()
            if file is None:
                file = OpenFile(env or _open(path, status.st_size, readahead))
                reference = weakref.ref(file, functools.partial(self._close, key))
            self._files[key] = reference, file.env
            return file

    def _close(self, key: Tuple[int, int], reference: Any) -> None:
        if self._pid == os.getpid():
            with self._lock:
                if key in self._files and self._files[key][0] is reference:
                    self._files.pop(key)[1].close()


_open_shared = _OpenFiles().open


def _open(path: str, size: int, readahead: bool) -> Any:
    lmdb = require("lmdb")
    options = {"subdir": False, "readonly": True, "create": False, "lock": False}
    try:
        env = lmdb.open(path, readahead=readahead, **options)
    except lmdb.Error as error:
        raise DamagedFile(f"{path}: LMDB cannot open its {size} bytes: {error}") from error
    tree = env.stat()
    used = 2 + tree["branch_pages"] + tree["leaf_pages"] + tree["overflow_pages"]
    if size < used * tree["psize"]:
        env.close()
        raise DamagedFile(
            f"{path} is cut off: it has {size} bytes, and at least {used * tree['psize']} are "
            "used. Copy it again."
        )
    return env


class LMDBRecords(RecordFile):
    """The records as `[key, value]`."""

    _keys: Optional[List[bytes]] = None

    def __init__(self, path: Any, keys: Keys, shuffle: bool) -> None:
        require("lmdb")
        path = os.fsdecode(path)
        super().__init__(os.path.join(path, "data.mdb") if os.path.isdir(path) else path)
        self._selection = keys if keys is None or isinstance(keys, str) else list(map(_key, keys))
        self._readahead = not shuffle

    def open(self) -> OpenFile:
        return _open_shared(self.path, self._readahead)

    @property
    def keys(self) -> List[bytes]:
        """The keys of the records, in their order."""
        if self._keys is None:
            try:
                self._keys = self._find_keys()
            except require("lmdb").Error as error:
                raise DamagedFile(f"{self.path}: LMDB cannot read its keys: {error}") from error
            logger.info("%s", f"Found {len(self._keys)} entries in {self.path}")
        return self._keys

    def __len__(self) -> int:
        return len(self.keys)

    def read(self, index: int) -> Any:
        key = self.keys[index]
        try:
            value = self.handle.read(lambda transaction: transaction.get(key))
        except require("lmdb").Error as error:
            raise BadRecord(f"LMDB cannot read it: {error}") from error
        if value is None:
            raise BadRecord("There is no such key in the file.")
        return self._element(key, value)

    def _element(self, key: bytes, value: bytes) -> Any:
        return [key, value]

    def where(self, index: int) -> str:
        return f"key {self.keys[index]!r}"

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_keys": None}  # much memory, and quickly found again

    def _find_keys(self) -> List[bytes]:
        if isinstance(self._selection, list):
            return self._selection
        return self.handle.read(self._keys_in)

    def _keys_in(self, transaction: Any) -> List[bytes]:
        internal = {key: transaction.get(key) for key in (LIST_KEY, _HEADER_KEY)}
        if self._selection is not None:
            count = transaction.stat()["entries"] - sum(map(bool, internal.values()))
            return [self._selection.format(number).encode() for number in range(count)]
        with contextlib.suppress(BadRecord, RefusedRecord, TypeError):
            return list(map(_key, decode_old(internal[LIST_KEY] or b"")))
        what = "has no list of keys that can be read: all its keys are read, in file order."
        logger.warning("%s", f"{self.path} {what}")
        return [key for key in transaction.cursor().iternext(values=False) if key not in internal]


def _key(key: Union[bytes, str]) -> bytes:
    return key.encode() if isinstance(key, str) else bytes(key)


class LMDBData(RecordsFlow):
    """Yields the records of an LMDB file as `[key, value]`, both bytes.

    A process opens it once, however many flows read it. Named databases in it are not read, but
    come as records of 48 bytes.
    """

    _RECORDS = LMDBRecords

    def __init__(
        self, lmdb_path: PathLike, shuffle: bool = True, keys: Keys = None, max_errors: int = 0
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
        self.decoder: Any = check_function(self, decoder)

    def _apply(self, datapoint: Any) -> Any:
        return self.decoder(*datapoint)


class LMDBDataPoint(ProxyDataFlow):
    """Yields the datapoints of an LMDB file that tensorpack wrote, also an old version."""

    def __init__(
        self,
        lmdb_path: Union[PathLike, DataFlow],
        shuffle: bool = True,
        keys: Keys = None,
        max_errors: int = 0,
        allow_pickle: bool = False,
    ) -> None:
        """
        Args:
          lmdb_path, shuffle, keys, max_errors: as for `LMDBData`; or `lmdb_path` is a flow
            of `[key, value]`, and only `max_errors` is given. Missing and damaged records are
            counted apart.
          allow_pickle: whether Python unpickles old values that are no lists, dicts, numbers,
            text or numpy arrays, which can run any code: only for files that you trust.
        """
        ds: Any = lmdb_path
        if not is_flow(lmdb_path):
            ds = LMDBData(ds, shuffle, keys, max_errors)
        super().__init__(ds)
        self._max_errors, self._allow_pickle = max_errors, allow_pickle

    def _transform(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        limit = ErrorLimit(self._max_errors)
        for key, value in datapoints:
            try:
                datapoint = records.decode_value(value, self._allow_pickle, "LMDBData")
            except (BadRecord, RefusedRecord) as error:
                source = getattr(getattr(self.ds, "lst", None), "path", type(self.ds).__name__)
                limit.skip(error, f"{source}, key {key!r}")
            else:
                yield datapoint


class LMDBSerializer:
    """Saves the datapoints of a flow to an LMDB file, and loads them again."""

    @staticmethod
    def save(df: DataFlow, path: PathLike, write_frequency: int = 5000) -> int:
        """Writes one pass of a flow; see `write_records`.

        `path` may be a directory that exists, to make `data.mdb` in it. A transaction has
        `write_frequency` datapoints, fewer if they have more than 256 MiB.
        """
        write_frequency = as_count("LMDBSerializer", "write_frequency", write_frequency)
        target = os.path.join(path, "data.mdb") if os.path.isdir(path) else os.fsdecode(path)
        writer = functools.partial(_writer, write_frequency)
        count = records.write_records(df, target, writer, least=0)
        logger.info("%s", f"{count} datapoints of {type(df).__name__} are in {target}.")
        return count

    @staticmethod
    def load(
        path: PathLike, shuffle: bool = True, max_errors: int = 0, allow_pickle: bool = False
    ) -> LMDBDataPoint:
        """Returns a flow of the datapoints that `save` wrote; see `LMDBDataPoint`."""
        return LMDBDataPoint(path, shuffle, None, max_errors, allow_pickle)


def dump_dataflow_to_lmdb(df: DataFlow, lmdb_path: PathLike, write_frequency: int = 5000) -> None:
    """Does what `LMDBSerializer.save` does, under its name of 2017."""
    LMDBSerializer.save(df, lmdb_path, write_frequency)


@contextlib.contextmanager
def _writer(write_frequency: int, file: Any) -> Writing:
    # `open_atomic` synchronises the file. No other process knows its name, so nothing is locked.
    options = {"subdir": False, "map_size": _MAP_BYTES, "sync": False, "lock": False}
    keys: List[bytes] = []
    lmdb = require("lmdb")
    try:
        with lmdb.open(file.name, **options) as env:
            transaction, nbytes = env.begin(write=True), 0

            def write(datapoint: Any, index: int) -> None:
                nonlocal transaction, nbytes
                keys.append(_KEY_FORMAT.format(index).encode())
                value = records.encode_datapoint(datapoint, index)
                # What is known to come last needs no search, and fills the pages.
                transaction.put(keys[-1], value, append=index < _KEYS_IN_ORDER)
                nbytes += len(value)
                if len(keys) % write_frequency == 0 or nbytes >= _TRANSACTION_BYTES:
                    transaction.commit()
                    transaction, nbytes = env.begin(write=True), 0

            yield write
            transaction.put(LIST_KEY, msgpack_codec().Packer().pack(keys))
            transaction.commit()
    except lmdb.Error as error:  # a short write is an error of input and output
        raise OSError(f"LMDB cannot write {file.name}: is the disk full? ({error})") from error
