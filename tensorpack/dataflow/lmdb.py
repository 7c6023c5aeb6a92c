"""Datapoints in LMDB files: one file of keys and values, read in any order through memory.

`LMDBSerializer` writes the datapoints of a flow and reads them again. The values are frames of
`tensorpack.utils.serialize`, so each has a checksum, and reading runs no code. `LMDBData` reads
keys and values of any LMDB file as they are.

A file is checked before it is opened, in a process of its own, for a damaged one can crash
liblmdb; `probe=False` leaves that out. It must not be written to while it is read.
"""

import inspect
import os
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from tensorpack.utils import logger

from ._files import ErrorLimit, PathLike
from ._lmdb.errors import BadRecord, DamagedLMDB, RefusedRecord
from ._lmdb.keys import WantedKeys
from ._lmdb.records import LMDBFlow, Records
from ._lmdb.values import decode_value
from ._lmdb.write import write_lmdb
from .base import DataFlow, ProxyDataFlow

__all__ = [
    "DamagedLMDB",
    "LMDBData",
    "LMDBDataDecoder",
    "LMDBDataPoint",
    "LMDBSerializer",
    "convert_old_lmdb",
    "dump_dataflow_to_lmdb",
]


class LMDBData(LMDBFlow):
    """Yields the records of an LMDB file as `[key, value]`, both bytes.

    The file is opened when it is first needed, once in each process, however many flows read it.
    `close` lets go of it until it is needed again.
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
          shuffle: whether each pass has an order of its own. If not, records come in the order
            of `keys`.
          keys: a list of keys; or the format that makes them of 0, 1, 2 and so on, such as
            "{:08d}"; or None for all that tensorpack has written. Where the file does not say
            which these are, or only by a pickle, all keys are read, with a warning; then they
            come in the order of the file. `LMDBDataPoint` reads such a pickle if it may.
          max_errors: how many missing records a pass skips, each with a warning; one more is an
            error. `len` counts them.
          probe: whether all pages are checked first, in a process of its own. That reads all
            keys, but not the values that have pages of their own (those of some 2 kB and more):
            it takes a tenth of a second, and about two seconds per million records. (In files of
            LMDB 1.0 it reads all.) It is done once for each flow, and not again in worker
            processes. False is for files that you trust to be whole: a damaged one can then
            crash this process.

        Raises:
          ImportError: lmdb is not installed.
          FileNotFoundError: there is no such file.
          DamagedLMDB: it is damaged.
          TypeError, ValueError: `keys` or `max_errors` is not one.
        """
        records = Records(lmdb_path, keys, readahead=not shuffle, probed=probe)
        super().__init__(records, shuffle, max_errors)


class LMDBDataDecoder(ProxyDataFlow):
    """Applies a function to keys and values, and drops those for which it returns None.

    `len` stays that of the wrapped flow, so it is too large if records are dropped.
    """

    def __init__(self, lmdb_data: DataFlow, decoder: Callable[[Any, Any], Any]) -> None:
        """
        Args:
          lmdb_data: a flow of `[key, value]`, such as `LMDBData`.
          decoder: takes a key and a value, and returns a datapoint or None.

        Raises:
          TypeError: `decoder` cannot be called.
        """
        super().__init__(lmdb_data)
        if not callable(decoder):
            raise TypeError(f"decoder is a function of key and value, but got {decoder!r:.80}.")
        self.decoder = decoder

    def __iter__(self) -> Iterator[Any]:
        return self._pass(iter(self.ds))

    def _pass(self, records: Iterator[Any]) -> Iterator[Any]:
        for key, value in records:
            datapoint = self.decoder(key, value)
            if datapoint is not None:
                yield datapoint

    def iterate_share(
        self, first: int, step: int, before: Callable[[int], Any], block: Optional[int] = 1
    ) -> Iterator[Tuple[int, Any]]:
        for position, record in self._share_of_ds(first, step, before, block):
            yield position, None if record is None else self.decoder(*record)

    state_dict = ProxyDataFlow.state_dict
    load_state_dict = ProxyDataFlow.load_state_dict


class LMDBDataPoint(ProxyDataFlow):
    """Yields the datapoints of an LMDB file that tensorpack wrote.

    Give it what `LMDBData` takes, or a flow of `[key, value]`. Values that were written before
    this version are read as well: those of msgpack as they are, pickles with `allow_pickle=True`.
    """

    def __init__(
        self, *args: Any, max_errors: int = 0, allow_pickle: bool = False, **kwargs: Any
    ) -> None:
        """
        Args:
          *args: as for `LMDBData`; or one flow that yields `[key, value]`.
          max_errors: how many missing or damaged records a pass skips, each with a warning that
            names the key; one more is an error. `len` counts them.
          allow_pickle: whether values, and the list of keys, may be pickles. Only lists, dicts,
            numbers, text and plain numpy arrays are taken out of them; all the same, give it only
            for files that you trust. It makes no difference to files that were written by this
            version.
          **kwargs: as for `LMDBData`.

        Raises:
          ImportError, OSError, ValueError: as for `LMDBData`.
          TypeError: there are other arguments beside the flow, or unknown ones.
        """
        flow = args[0] if args else None
        if hasattr(flow, "reset_state"):
            if len(args) > 1 or kwargs:
                raise TypeError("LMDBDataPoint takes a flow, or what LMDBData takes, but not both.")
            super().__init__(_Decoded(flow, max_errors, allow_pickle))
        else:
            kwargs.update(max_errors=max_errors, allow_pickle=allow_pickle)
            _check_arguments(args, kwargs)
            super().__init__(_open(*args, **kwargs))


def _check_arguments(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
    signature = inspect.signature(_open)
    try:
        signature.bind_partial(*args, **kwargs)  # an unknown one is named before a missing one
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(
            "LMDBDataPoint takes a flow as its first argument, or what LMDBData takes, but got "
            f"something else: {error}."
        ) from error


def _open(
    lmdb_path: PathLike,
    shuffle: bool = True,
    keys: WantedKeys = None,
    max_errors: int = 0,
    probe: bool = True,
    allow_pickle: bool = False,
) -> LMDBFlow:
    records = _Datapoints(lmdb_path, keys, readahead=not shuffle, probed=probe)
    records.allow_pickle = allow_pickle
    return LMDBFlow(records, shuffle, max_errors)


class _Datapoints(Records):
    def _element(self, key: bytes, value: bytes) -> Any:
        return decode_value(value, self.is_new(), self.allow_pickle)


class _Decoded(ProxyDataFlow):
    """Decodes the values of any flow of `[key, value]`."""

    def __init__(self, ds: Any, max_errors: int, allow_pickle: bool) -> None:
        super().__init__(ds)
        self.max_errors = ErrorLimit(max_errors).max_errors
        self.allow_pickle = allow_pickle

    def __iter__(self) -> Iterator[Any]:
        return self._pass(iter(self.ds))

    def _pass(self, records: Iterator[Any]) -> Iterator[Any]:
        limit = ErrorLimit(self.max_errors)
        for record in records:
            datapoint = self._datapoint(record, limit)
            if datapoint is not None:
                yield datapoint

    def iterate_share(
        self, first: int, step: int, before: Callable[[int], Any], block: Optional[int] = 1
    ) -> Iterator[Tuple[int, Any]]:
        """Begins a share of a pass, as in `DataFlow`; `max_errors` holds for each share."""
        limit = ErrorLimit(self.max_errors)
        for position, record in self._share_of_ds(first, step, before, block):
            yield position, None if record is None else self._datapoint(record, limit)

    def _datapoint(self, record: Any, limit: ErrorLimit) -> Optional[Any]:
        key, value = record
        is_new = isinstance(self.ds, LMDBData) and self.ds.lst.is_new()
        try:
            return decode_value(value, is_new, self.allow_pickle)
        except BadRecord as error:
            limit.skip(DamagedLMDB(self._source(), str(error), key))
            return None
        except RefusedRecord as error:
            raise ValueError(f"{self._source()}, key {key!r}: {error}") from error

    def _source(self) -> str:
        return self.ds.lst.path if isinstance(self.ds, LMDBData) else type(self.ds).__name__

    state_dict = ProxyDataFlow.state_dict
    load_state_dict = ProxyDataFlow.load_state_dict


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
        allow_pickle: bool = False,
        probe: bool = True,
    ) -> LMDBDataPoint:
        """Returns a flow of the datapoints that `save` wrote.

        Args:
          path: the file, or the directory with `data.mdb`.
          shuffle: whether each pass has an order of its own.
          max_errors: as for `LMDBDataPoint`.
          allow_pickle: as for `LMDBDataPoint`; for files of old versions.
          probe: as for `LMDBData`.

        Raises:
          ImportError, OSError, ValueError: as for `LMDBData`.
        """
        return LMDBDataPoint(
            path, shuffle, max_errors=max_errors, allow_pickle=allow_pickle, probe=probe
        )


def dump_dataflow_to_lmdb(df: DataFlow, lmdb_path: PathLike, write_frequency: int = 5000) -> None:
    """Writes one pass of a flow to a new LMDB file.

    The file appears under its name when all is in it and on the disk. Before that it has a hidden
    temporary name beside it, which is left behind only by a process that is killed.

    Args:
      df: the flow. Its pass must have an end; its length need not be known. It is reset first.
      lmdb_path: the file to make; or a directory that exists, to make `data.mdb` in it.
      write_frequency: the number of datapoints in a transaction, at least one. They are kept in
        memory until then; fewer are taken if they have more than 256 MiB.

    Raises:
      ImportError: lmdb or msgpack is not installed.
      FileExistsError: the file exists.
      OSError: it cannot be written; the disk may be full. Nothing is left of it.
      TypeError, ValueError: a datapoint has something that cannot be written; it is named.
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
      new_path: as for `dump_dataflow_to_lmdb`.
      allow_pickle: must be True if the old file has pickles; see `LMDBDataPoint`.
      write_frequency: as for `dump_dataflow_to_lmdb`.
      probe: as for `LMDBData`.

    Raises:
      ImportError, OSError, TypeError, ValueError: as for these two.
    """
    datapoints = LMDBDataPoint(old_path, shuffle=False, allow_pickle=allow_pickle, probe=probe)
    try:
        count = write_lmdb(datapoints, new_path, write_frequency)
    finally:
        datapoints.close()
    logger.info("%s", f"{count} datapoints of {os.fspath(old_path)} are in {os.fspath(new_path)}.")
