"""Datapoints in LMDB files: one file of keys and values, read in any order through memory.

`LMDBSerializer` writes the datapoints of a flow and reads them again. The values are frames of
`tensorpack.utils.serialize`, so each has a checksum, and reading runs no code. `LMDBData` reads
keys and values of any LMDB file as they are. A process of its own checks a file first, because a
damaged file can crash liblmdb. A file must not be written to while it is read.
"""

import contextlib
import errno
import os
from typing import Any, Callable, Iterator, List, Optional, Tuple, Union

from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.checks import check_counts
from tensorpack.utils.old_values import BadRecord, RefusedRecord
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import dumps

from .._flow import is_flow
from .._length import length_or_none
from ..base import DataFlow, ProxyDataFlow
from ..map import DatapointMap, checked_function
from . import lmdb_records as records
from .lmdb_open import DamagedLMDB
from .lmdb_records import Datapoints, Records, WantedKeys
from .records import ErrorLimit, PathLike, RecordsFlow, decode_value, encode_datapoint, open_new

_FIRST_MAP_BYTES = 2**26  # doubled whenever it is full; no space on the disk is taken by it
_MOST_BATCH_BYTES = 2**28  # of values that wait for their transaction
_KEY_BYTES = 8  # of a key as long as they are in order


class LMDBData(RecordsFlow):
    """Yields the records of an LMDB file as `[key, value]`, both bytes.

    The file is opened when it is first needed, once in each process, however many flows read it.
    `close` closes it until it is needed again. Named databases in the file are not read.
    """

    def __init__(
        self,
        lmdb_path: PathLike,
        shuffle: bool = True,
        keys: WantedKeys = None,
        max_errors: int = 0,
        probe: bool = True,
    ) -> None:
        """
        Args:
          lmdb_path: the file, or the directory with `data.mdb`.
          shuffle: whether each pass has its own order. If not, records come in the order of `keys`.
          keys: a list of keys; or the format that makes them of 0, 1, 2 and so on, such as
            "{:08d}"; or None for all that tensorpack has written. Where the file does not say
            which these are, all keys are read, with a warning, and come in the order of the
            file.
          max_errors: how many missing records a pass skips, each with a warning; one more is an
            error. `len` counts them.
          probe: whether a process of its own reads the file first: all keys, and the last byte of
            each value. That takes some tenths of a second, and about six seconds per million
            records. It is done once for each flow, and not again in worker processes. False is
            for files that you trust: a damaged one can then crash this process.

        Raises:
          DamagedLMDB: it is damaged.
        """
        found = Records(lmdb_path, keys, readahead=not shuffle, probed=probe)
        super().__init__(found, shuffle, max_errors)


class LMDBDataDecoder(DatapointMap):
    """Applies a function to keys and values, and drops those for which it returns None.

    `len` is that of the wrapped flow, so it is too large if records are dropped.
    """

    def __init__(self, lmdb_data: DataFlow, decoder: Callable[[Any, Any], Any]) -> None:
        """
        Args:
          lmdb_data: a flow of `[key, value]`, such as `LMDBData`.
          decoder: takes a key and a value, and returns a datapoint or None.
        """
        super().__init__(lmdb_data)
        self.decoder: Any = checked_function(self, decoder)

    def _apply(self, datapoint: Any) -> Any:
        key, value = datapoint
        return self.decoder(key, value)


class LMDBDataPoint(ProxyDataFlow):
    """Yields the datapoints of an LMDB file that tensorpack wrote.

    Arguments are those of `LMDBData`, or one flow of `[key, value]`, `max_errors` and
    `allow_pickle`. Values of old versions, which are msgpack or pickles, are read as well.
    """

    def __init__(
        self,
        lmdb_path: Union[PathLike, DataFlow],
        shuffle: bool = True,
        keys: WantedKeys = None,
        max_errors: int = 0,
        probe: bool = True,
        allow_pickle: bool = False,
    ) -> None:
        """
        Args:
          lmdb_path: the file, or the directory with `data.mdb`; or a flow of `[key, value]`.
          shuffle, keys, probe: as for `LMDBData`.
          max_errors: how many missing or damaged records a pass skips, each with a warning that
            names the key; one more is an error. `len` counts them.
          allow_pickle: whether Python unpickles old values that are no lists, dicts, numbers,
            text or numpy arrays, which can run any code: only for files that you trust.

        Raises:
          ImportError, OSError, ValueError: as for `LMDBData`.
        """
        if is_flow(lmdb_path):
            if (shuffle, keys, probe) != (True, None, True):
                raise TypeError("LMDBDataPoint takes a flow, or what LMDBData takes, but not both.")
            super().__init__(_Decoded(lmdb_path, max_errors, allow_pickle))
            return
        found = Datapoints(lmdb_path, keys, not shuffle, probe, allow_pickle)  # type: ignore[arg-type]
        super().__init__(RecordsFlow(found, shuffle, max_errors))


class _Decoded(DatapointMap):
    """Decodes the values of any flow of `[key, value]`; counts damaged ones for each pass."""

    def __init__(self, ds: Any, max_errors: int, allow_pickle: bool) -> None:
        super().__init__(ds)
        self._limit = ErrorLimit(max_errors)
        self._allow_pickle = allow_pickle

    def _transform(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        self._limit = ErrorLimit(self._limit.max_errors)
        return super()._transform(datapoints)

    def iterate_share(
        self, first: int, step: int, before: Callable[[int], Any], block: Optional[int] = 1
    ) -> Iterator[Tuple[int, Any]]:
        """Begins a share of a pass, as in `DataFlow`; `max_errors` holds for each share."""
        self._limit = ErrorLimit(self._limit.max_errors)
        return super().iterate_share(first, step, before, block)

    def _apply(self, datapoint: Any) -> Any:
        key, value = datapoint
        known = self.ds.lst if isinstance(self.ds, LMDBData) else None
        source = type(self.ds).__name__ if known is None else known.path
        try:
            is_new = known is not None and known.is_new()
            return decode_value(value, is_new, self._allow_pickle)
        except BadRecord as error:
            self._limit.skip(DamagedLMDB(source, str(error), key))
            return None
        except RefusedRecord as error:
            raise ValueError(f"{source}, key {key!r}: {error}") from error


class LMDBSerializer:
    """Saves the datapoints of a flow to an LMDB file, and loads them again."""

    @staticmethod
    def save(df: DataFlow, path: PathLike, write_frequency: int = 5000) -> None:
        """Writes one pass of a flow; see `dump_dataflow_to_lmdb`."""
        dump_dataflow_to_lmdb(df, path, write_frequency)

    @staticmethod
    def load(
        path: PathLike,
        shuffle: bool = True,
        max_errors: int = 0,
        probe: bool = True,
        allow_pickle: bool = False,
    ) -> LMDBDataPoint:
        """Returns a flow of the datapoints that `save` wrote; see `LMDBDataPoint`."""
        options = {"max_errors": max_errors, "probe": probe, "allow_pickle": allow_pickle}
        return LMDBDataPoint(path, shuffle, **options)  # type: ignore[arg-type]


def dump_dataflow_to_lmdb(df: DataFlow, lmdb_path: PathLike, write_frequency: int = 5000) -> None:
    """Writes one pass of a flow to a new LMDB file.

    The file appears under its name when it is complete and on the disk. Until then it has a hidden
    temporary name beside it. What a killed process left there is removed after a day.

    Args:
      df: the flow. Its pass must have an end; its length need not be known. It is reset first.
      lmdb_path: the file to make; or a directory that exists, to make `data.mdb` in it.
      write_frequency: the number of datapoints in a transaction, at least one. They are kept in
        memory until then; fewer are taken if they have more than 256 MiB.

    Raises:
      FileExistsError: the file exists.
    """
    count = write_lmdb(df, lmdb_path, write_frequency)
    logger.info("%s", f"{count} datapoints of {type(df).__name__} are in {os.fspath(lmdb_path)}.")


def convert_old_lmdb(
    old_path: PathLike,
    new_path: PathLike,
    allow_pickle: bool = False,
    write_frequency: int = 5000,
    probe: bool = True,
) -> None:
    """Writes the datapoints of an old LMDB file to a new one, which has checksums and no pickles.

    Args:
      old_path: a file that an earlier version of tensorpack wrote, or its directory.
      new_path, write_frequency: as for `dump_dataflow_to_lmdb`.
      allow_pickle: as for `LMDBDataPoint`.
      probe: as for `LMDBData`.

    Raises:
      ImportError, OSError, TypeError, ValueError: as for these two.
    """
    with contextlib.closing(open_old_lmdb(old_path, allow_pickle, probe=probe)) as datapoints:
        count = write_lmdb(datapoints, new_path, write_frequency)
    logger.info("%s", f"{count} datapoints of {os.fspath(old_path)} are in {os.fspath(new_path)}.")


def open_old_lmdb(
    path: PathLike, allow_pickle: bool, max_errors: int = 0, probe: bool = True
) -> RecordsFlow:
    """Returns a flow of the datapoints of an old file in their order; see `convert_old_lmdb`."""
    found = Datapoints(path, probed=probe, allow_pickle=allow_pickle)
    return RecordsFlow(found, shuffle=False, max_errors=max_errors)


def write_lmdb(df: DataFlow, path: PathLike, write_frequency: int = 5000) -> int:
    """Returns the number of datapoints written, see `dump_dataflow_to_lmdb`."""
    check_counts("dump_dataflow_to_lmdb", write_frequency=write_frequency)
    lmdb = require("lmdb")
    target = os.fspath(path)
    if os.path.isdir(target):
        target = os.path.join(target, "data.mdb")
    # Synchronised once, at the end: the file is of no use before. No other process knows its name,
    # so nothing is locked.
    options = {"subdir": False, "sync": False, "lock": False, "max_dbs": 0}
    with open_new(target) as file:
        df.reset_state()
        try:
            with lmdb.open(file.name, map_size=_FIRST_MAP_BYTES, **options) as env:
                count = _write_all(env, df, write_frequency)
                env.sync(True)
        except lmdb.Error as error:
            raise _as_os_error(error, target) from error
    return count


def _write_all(env: Any, df: DataFlow, write_frequency: int) -> int:
    count = size = 0
    batch: List[Tuple[bytes, bytes]] = []
    with get_tqdm(total=length_or_none(df), desc="Writing") as bar:
        for datapoint in df:
            value = encode_datapoint(datapoint, count)
            batch.append((records.KEY_FORMAT.format(count).encode(), value))
            count += 1
            size += len(value)
            if len(batch) == write_frequency or size >= _MOST_BATCH_BYTES:
                _write_batch(env, batch)
                batch, size = [], 0
            bar.update()
    keys = list(records.FormattedKeys(records.KEY_FORMAT, count))
    listed = records.LIST_KEY, require("msgpack").packb(keys, use_bin_type=True)
    fields = {"version": records.VERSION, "codec": records.CODEC, "count": count}
    header = records.HEADER_KEY, dumps(fields)
    _write_batch(env, [*batch, listed, header])
    # LMDB keeps the last two states of a file, and takes that of the higher number. Now both are
    # whole, so damage to such a number does not hide data.
    _write_batch(env, [header])
    return count


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


def _as_os_error(error: Any, path: str) -> OSError:
    """Returns an error of liblmdb as one of the system; nearly always the disk is full."""
    is_full = isinstance(error, require("lmdb").DiskError)
    code, reason = (errno.ENOSPC, "the disk is full") if is_full else (errno.EIO, "LMDB failed")
    return OSError(code, f"Nothing was written, for {reason} ({error})", path)
