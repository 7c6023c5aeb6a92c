"""Writes the datapoints of a flow to a new LMDB file, which appears when it is whole."""

import contextlib
import errno
import os
from typing import Any, List, Tuple

from tensorpack.utils import get_tqdm
from tensorpack.utils.checks import check_counts
from tensorpack.utils.optional import require

from .._files import PathLike, encode_datapoint, open_new
from .._length import length_or_none
from ..base import DataFlow
from .records import HEADER_KEY, KEY_FORMAT, LIST_KEY, make_header, make_list

_FIRST_MAP_BYTES = 2**26  # doubled whenever it is full; no space on the disk is taken by it
_MOST_BATCH_BYTES = 2**28  # of values that wait for their transaction
_KEY_BYTES = 8  # of a key as long as they are in order

_Record = Tuple[bytes, bytes]


def write_lmdb(df: DataFlow, path: PathLike, write_frequency: int = 5000) -> int:
    """Returns the number of datapoints written, see `dump_dataflow_to_lmdb`."""
    check_counts("dump_dataflow_to_lmdb", write_frequency=write_frequency)
    lmdb = require("lmdb")
    target = os.fspath(path)
    if os.path.isdir(target):
        target = os.path.join(target, "data.mdb")
    with open_new(target) as file:
        df.reset_state()
        try:
            writer = _Writer(file.name)
            with contextlib.closing(writer.env):
                count = _write_all(writer, df, write_frequency)
                writer.env.sync(True)
        except lmdb.Error as error:
            raise _as_os_error(error, target) from error
    return count


def _write_all(writer: "_Writer", df: DataFlow, write_frequency: int) -> int:
    count = size = 0
    batch: List[_Record] = []
    with get_tqdm(total=length_or_none(df)) as bar:
        for datapoint in df:
            value = encode_datapoint(datapoint, count)
            batch.append((KEY_FORMAT.format(count).encode(), value))
            count += 1
            size += len(value)
            if len(batch) == write_frequency or size >= _MOST_BATCH_BYTES:
                writer.write(batch)
                batch, size = [], 0
            bar.update()
    header = HEADER_KEY, make_header(count)
    writer.write([*batch, (LIST_KEY, make_list(count)), header])
    # LMDB keeps the last two states of a file, and takes that of the higher number. Now both are
    # whole, so damage to such a number does not hide data.
    writer.write([header])
    return count


class _Writer:
    """A new LMDB file, which no other object uses."""

    def __init__(self, path: str) -> None:
        self._lmdb = require("lmdb")
        self._map_bytes = _FIRST_MAP_BYTES
        # Synchronised once, at the end: the file is of no use before. No other process knows its
        # name, so nothing is locked.
        self.env = self._lmdb.open(
            path, subdir=False, map_size=self._map_bytes, sync=False, lock=False, max_dbs=0
        )

    def write(self, records: List[_Record]) -> None:
        """Writes records in one transaction."""
        while True:
            try:
                with self.env.begin(write=True) as transaction:
                    for key, value in records:
                        # What is known to come last needs no search, and fills the pages.
                        transaction.put(key, value, append=len(key) == _KEY_BYTES)
                return
            except self._lmdb.MapFullError:
                self._map_bytes *= 2
                self.env.set_mapsize(self._map_bytes)


def _as_os_error(error: Any, path: str) -> OSError:
    """Returns an error of liblmdb as one of the system; nearly always the disk is full."""
    is_full = isinstance(error, require("lmdb").DiskError)
    code, reason = (errno.ENOSPC, "the disk is full") if is_full else (errno.EIO, "LMDB failed")
    return OSError(code, f"Nothing was written, for {reason} ({error})", path)
