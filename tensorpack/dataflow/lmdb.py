"""Datapoints in LMDB files: one file of keys and values, read in any order through memory.

`LMDBSerializer` writes the datapoints of a flow and reads them again. The values are frames of
`tensorpack.utils.serialize`, so each has a checksum, and reading runs no code. `LMDBData` reads
keys and values of any LMDB file as they are.

A process of its own reads a file first, because a damaged file can crash liblmdb; `probe=False`
leaves that out. A file must not be written to while it is read.
"""

import os
from typing import Any, Callable, Iterator, Optional, Tuple, Union

from tensorpack.utils import logger

from ._files import ErrorLimit, PathLike
from ._flow import is_flow
from ._lmdb.file import BadRecord, DamagedLMDB, RefusedRecord
from ._lmdb.records import Datapoints, LMDBFlow, Records, WantedKeys
from ._lmdb.values import decode_value
from ._lmdb.write import write_lmdb
from .base import DataFlow, ProxyDataFlow
from .map import DatapointMap

__all__ = [
    "DamagedLMDB",
    "LMDBData",
    "LMDBDataDecoder",
    "LMDBDataPoint",
    "LMDBSerializer",
    "convert_old_lmdb",
    "dump_dataflow_to_lmdb",
    "open_old_lmdb",
]


class LMDBData(LMDBFlow):
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
            which these are, or only by a pickle, all keys are read, with a warning, and come in
            the order of the file.
          max_errors: how many missing records a pass skips, each with a warning; one more is an
            error. `len` counts them.
          probe: whether a process of its own reads the file first: all keys, and the last byte of
            each value. That takes some tenths of a second, and about six seconds per million
            records. It is done once for each flow, and not again in worker processes. False is
            for files that you trust: a damaged one can then crash this process.

        Raises:
          ImportError: lmdb is not installed.
          FileNotFoundError: there is no such file.
          DamagedLMDB: it is damaged.
          TypeError, ValueError: `keys` or `max_errors` is not one.
        """
        records = Records(lmdb_path, keys, readahead=not shuffle, probed=probe)
        super().__init__(records, shuffle, max_errors)


class LMDBDataDecoder(DatapointMap):
    """Applies a function to keys and values, and drops those for which it returns None.

    `len` is that of the wrapped flow, so it is too large if records are dropped.
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

    def _apply(self, datapoint: Any) -> Any:
        key, value = datapoint
        return self.decoder(key, value)


class LMDBDataPoint(ProxyDataFlow):
    """Yields the datapoints of an LMDB file that tensorpack wrote.

    Arguments are those of `LMDBData`, or one flow of `[key, value]` and `max_errors`. Values of
    msgpack, as tensorpack wrote them in 2017, are read as well. Files with pickles are converted by
    `convert_old_lmdb`.
    """

    def __init__(
        self,
        lmdb_path: Union[PathLike, DataFlow],
        shuffle: bool = True,
        keys: WantedKeys = None,
        max_errors: int = 0,
        probe: bool = True,
    ) -> None:
        """
        Args:
          lmdb_path: the file, or the directory with `data.mdb`; or a flow of `[key, value]`.
          shuffle, keys, probe: as for `LMDBData`.
          max_errors: how many missing or damaged records a pass skips, each with a warning that
            names the key; one more is an error. `len` counts them.

        Raises:
          ImportError, OSError, ValueError: as for `LMDBData`.
          TypeError: there are other arguments beside a flow.
        """
        if is_flow(lmdb_path):
            if (shuffle, keys, probe) != (True, None, True):
                raise TypeError("LMDBDataPoint takes a flow, or what LMDBData takes, but not both.")
            super().__init__(_Decoded(lmdb_path, max_errors))
            return
        records = Datapoints(lmdb_path, keys, readahead=not shuffle, probed=probe)  # type: ignore[arg-type]
        super().__init__(LMDBFlow(records, shuffle, max_errors))


class _Decoded(DatapointMap):
    """Decodes the values of any flow of `[key, value]`; counts damaged ones for each pass."""

    def __init__(self, ds: Any, max_errors: int) -> None:
        super().__init__(ds)
        self.max_errors = max_errors
        self._limit = ErrorLimit(max_errors)

    def __iter__(self) -> Iterator[Any]:
        self._limit = ErrorLimit(self.max_errors)
        return super().__iter__()

    def iterate_share(
        self, first: int, step: int, before: Callable[[int], Any], block: Optional[int] = 1
    ) -> Iterator[Tuple[int, Any]]:
        """Begins a share of a pass, as in `DataFlow`; `max_errors` holds for each share."""
        self._limit = ErrorLimit(self.max_errors)
        return super().iterate_share(first, step, before, block)

    def _apply(self, datapoint: Any) -> Any:
        key, value = datapoint
        records = self.ds.lst if isinstance(self.ds, LMDBData) else None
        source = type(self.ds).__name__ if records is None else records.path
        try:
            return decode_value(value, records is not None and records.is_new())
        except BadRecord as error:
            self._limit.skip(DamagedLMDB(source, str(error), key))
            return None
        except RefusedRecord as error:
            raise ValueError(f"{source}, key {key!r}: {error}") from error

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
        path: PathLike, shuffle: bool = True, max_errors: int = 0, probe: bool = True
    ) -> LMDBDataPoint:
        """Returns a flow of the datapoints that `save` wrote; see `LMDBDataPoint`."""
        return LMDBDataPoint(path, shuffle, max_errors=max_errors, probe=probe)


def dump_dataflow_to_lmdb(df: DataFlow, lmdb_path: PathLike, write_frequency: int = 5000) -> None:
    """Writes one pass of a flow to a new LMDB file.

    The file appears under its name when it is complete and on the disk. Until then it has a hidden
    temporary name beside it, which only a killed process leaves behind.

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
      new_path, write_frequency: as for `dump_dataflow_to_lmdb`.
      allow_pickle: whether values, and the list of keys, may be pickles. Only lists, dicts,
        numbers, text and plain numpy arrays are taken out of them; still, give it only for files
        that you trust.
      probe: as for `LMDBData`.

    Raises:
      ImportError, OSError, TypeError, ValueError: as for these two.
    """
    datapoints = open_old_lmdb(old_path, allow_pickle, probe=probe)
    try:
        count = write_lmdb(datapoints, new_path, write_frequency)
    finally:
        datapoints.close()
    logger.info("%s", f"{count} datapoints of {os.fspath(old_path)} are in {os.fspath(new_path)}.")


def open_old_lmdb(
    path: PathLike, allow_pickle: bool, max_errors: int = 0, probe: bool = True
) -> LMDBFlow:
    """Returns a flow of the datapoints of an old file in their order; see `convert_old_lmdb`."""
    records = Datapoints(path, probed=probe, allow_pickle=allow_pickle)
    return LMDBFlow(records, shuffle=False, max_errors=max_errors)
