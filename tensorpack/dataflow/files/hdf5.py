"""HDF5 files: datasets of equal length, whose rows of one index make a datapoint.

`HDF5Data` reads files of any program, by default into memory: each row of a file costs a whole
chunk, so shuffled access is slow. `HDF5Serializer` writes files in which damage is detected: each
chunk has a checksum (Fletcher's, of 32 bits), and so have the structures, as in HDF5 1.10.
"""

from contextlib import contextmanager
from typing import Any, Callable, Dict, Generator, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.optional import require

from ..base import DataFlow
from .hdf5_rows import VERSION, VERSION_KEY, RowsInFile, RowsInMemory
from .records import PathLike, RecordsFlow, Writing, write_records

_LIBVER = ("v110", "v110")  # the first format in which all structures have checksums
_CHUNK_BYTES = 1 << 18  # a quarter of the cache that HDF5 gives a dataset
_CHUNK_ROWS = 1024
_MAX_ROW = (1 << 32) - 1  # bytes of a chunk, the limit of the format
_KINDS = "biufc"  # of the dtypes that come back as they were


class HDF5Data(RecordsFlow):
    """Yields a list of the rows with one index of some datasets, a numpy array or scalar each.

    In memory, arrays are read-only, because all passes share them: copy what you want to change.
    Data in other files (external links, virtual datasets) are not read.
    """

    def __init__(
        self,
        filename: PathLike,
        data_paths: Sequence[str],
        shuffle: bool = True,
        in_memory: bool = True,
        max_errors: int = 0,
    ) -> None:
        """
        Args:
          filename: of the file. Needs h5py.
          data_paths: the names of datasets of one length, such as `["train/image", "train/label"]`.
          shuffle: whether each pass has its own order.
          in_memory: whether to read everything now; False for data larger than the memory.
          max_errors: how many damaged datapoints a pass skips, see `RecordsFlow`. Needs
            `in_memory=False`.

        Raises:
          KeyError: the file has no dataset of one of the names.
          DamagedFile: it is damaged or of a later version, or a dataset lies in other files or
            claims more bytes than the file can hold.
        """
        keys = _names(data_paths)
        if in_memory and max_errors:
            raise ValueError(f"max_errors={max_errors} needs in_memory=False, to read single rows.")
        kind = RowsInMemory if in_memory else RowsInFile
        super().__init__(kind(filename, keys), shuffle, max_errors)


class HDF5Serializer:
    """Writes the datapoints of a flow to an HDF5 file, and makes a flow of such a file."""

    @staticmethod
    def save(df: DataFlow, path: PathLike, data_paths: Sequence[str]) -> None:
        """Writes one pass of a flow; see `write_records`. Only some rows are in memory.

        Datapoints are lists or tuples of numpy arrays or scalars, of one dtype and shape in each
        component, or of Python's bool, int (which becomes int64) and float (float64).
        `data_paths` has the name of a dataset for each component.
        """
        keys = _names(data_paths)
        write_records(df, path, lambda file: _writer(file, keys))

    @staticmethod
    def load(path: PathLike, data_paths: Sequence[str], shuffle: bool = True) -> HDF5Data:
        """Returns a flow over the datapoints of a file; see `HDF5Data`."""
        return HDF5Data(path, data_paths, shuffle)


@contextmanager
def _writer(file: Any, keys: List[str]) -> Writing:
    # HDF5 has the temporary file opened again; it is put on the disk, and renamed, as ours.
    with new_hdf5(file.name, libver=_LIBVER) as (target, check):
        target.attrs[VERSION_KEY] = np.int64(VERSION)
        columns: List[_GrowingDataset] = []

        def write(datapoint: Any, index: int) -> None:
            _check_form(datapoint, index, keys)
            if index == 0:
                columns.extend(_GrowingDataset(target, *each) for each in zip(keys, datapoint))
            for column, value in zip(columns, datapoint):
                column.append(value, index)
            check()

        yield write
        for column in columns:
            column.flush()


def _names(data_paths: Sequence[str]) -> List[str]:
    if isinstance(data_paths, (str, bytes)):
        raise TypeError(f"data_paths is a list of names, but got {data_paths!r}: put it in a list.")
    keys = list(data_paths)
    if not keys or len(set(keys)) != len(keys):
        raise ValueError(f"data_paths has the names of datasets, each once, but got {keys}.")
    return keys


def _check_form(datapoint: Any, index: int, keys: List[str]) -> None:
    if not isinstance(datapoint, (list, tuple)):
        raise TypeError(
            f"Datapoint {index} is a {type(datapoint).__name__}, but needs to be a list or tuple "
            "to be written to datasets. Use SelectComponent to make one of a dict."
        )
    if len(datapoint) != len(keys):
        raise ValueError(
            f"Datapoint {index} has {len(datapoint)} components, but there are {len(keys)} names "
            f"in data_paths: {keys}. Give one for each."
        )


class _GrowingDataset:
    """A dataset that grows by whole chunks; rows wait in memory until there are enough."""

    def __init__(self, target: Any, key: str, first: Any) -> None:
        row = _as_array(first, f"Datapoint 0 ({key!r})")
        if row.size == 0 or row.nbytes > _MAX_ROW:
            raise ValueError(
                f"Datapoint 0 ({key!r}) has {row.nbytes} bytes, shape {row.shape}. A row of a "
                f"dataset has at least one element and at most {_MAX_ROW} bytes."
            )
        self._key = key
        self._rows = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // row.nbytes))
        self._block = np.empty((self._rows,) + row.shape, row.dtype)
        self._waiting = 0
        options: Dict[str, Any] = {"chunks": self._block.shape, "fletcher32": True}
        self._dataset = target.create_dataset(
            key, (0,) + row.shape, row.dtype, maxshape=(None,) + row.shape, **options
        )

    def append(self, value: Any, index: int) -> None:
        what = f"Datapoint {index} ({self._key!r})"
        row = _as_array(value, what)
        expected = self._block
        if row.shape != expected.shape[1:] or row.dtype != expected.dtype:
            raise ValueError(
                f"{what} is {row.dtype} {row.shape}, but those before it are {expected.dtype} "
                f"{expected.shape[1:]}. All rows of a dataset are alike: make them so by "
                "MapDataComponent, or use NumpySerializer."
            )
        self._block[self._waiting] = row
        self._waiting += 1
        if self._waiting == self._rows:
            self.flush()

    def flush(self) -> None:
        """Writes the rows that wait."""
        if self._waiting:
            begin = len(self._dataset)
            self._dataset.resize(begin + self._waiting, axis=0)
            self._dataset[begin:] = self._block[: self._waiting]
            self._waiting = 0


def _as_array(value: Any, what: str) -> np.ndarray:
    dtype: Optional[Any] = {bool: np.bool_, int: np.int64, float: np.float64}.get(type(value))
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"{what} is a masked array, whose mask a dataset would lose. Yield "
            "array.filled(value), or the mask as a component of its own."
        )
    found = f"a {type(value).__name__}"
    if dtype is not None or isinstance(value, (np.ndarray, np.generic)):
        try:
            array = np.asarray(value, dtype)
        except OverflowError as error:
            raise ValueError(f"{what} is {value}, which is too large for int64.") from error
        if array.dtype.kind in _KINDS:
            return array
        found = f"an array of {array.dtype}"
    raise TypeError(
        f"{what} is {found}, but HDF5Serializer writes numbers: numpy arrays and scalars, bool, "
        "int and float. Use NumpySerializer for other things."
    )


@contextmanager
def new_hdf5(path: str, **options: Any) -> Iterator[Tuple[Any, Callable[[], None]]]:
    """Opens an HDF5 file for writing, empty, and closes it at the end of the block.

    Yields the `h5py.File`, and a function that raises the error of a failed write; call it now and
    then, because all that is written after the error is lost. `options` are those of `h5py.File`.
    """
    h5py = require("h5py")
    # HDF5 reads what it has written. Without a buffer an error comes from the write that it is of.
    with open(path, "w+b", buffering=0) as file:
        unfailing = _Unfailing(file, path)
        try:
            with h5py.File(unfailing, "w", **options) as target:
                yield target, unfailing.check
        except Exception:  # HDF5 may fail later, on what it cannot read again
            unfailing.check()
            raise
        unfailing.check()


class _Unfailing:
    """A file whose `write` and `truncate` never fail; the first error is kept.

    libhdf5 writes at close what it still holds. If that fails, it is left with objects of a half
    closed file, and freeing the next one crashes the process (seen with 1.10, 1.14 and 2.0).
    """

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path
        self._error: Optional[BaseException] = None
        self.seek, self.tell, self.flush = file.seek, file.tell, file.flush
        self.read, self.readinto = file.read, file.readinto
        self.write, self.truncate = self._kept(self._write), self._kept(file.truncate)

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def _kept(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Returns a function that does the same as long as there is no error.

        A generator waits within `try` for each call: a signal handler may raise at the begin of a
        function, before any `try` in it, and KeyboardInterrupt is an error as well.
        """
        calls = self._calls(function)
        next(calls)
        return calls.send

    def _calls(self, function: Callable[[Any], Any]) -> Generator[None, Any, None]:
        while True:
            try:
                while True:
                    argument = yield
                    if self._error is None:
                        function(argument)
            except GeneratorExit:
                return
            except BaseException as error:
                if isinstance(error, OSError) and error.filename is None:
                    error.filename = self._path
                self._error = self._error or error

    def _write(self, data: Any) -> None:
        left = memoryview(data)
        while len(left):
            left = left[self._file.write(left) :]  # the last bytes before the end fit in part
