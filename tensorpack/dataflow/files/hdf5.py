"""HDF5 files: datasets of equal length, whose rows of one index make a datapoint.

Files of any program are read, by default into memory: each row of a file costs a whole chunk, so
shuffled access is slow. In those that are written here, chunks and structures have checksums.
"""

import shlex
from contextlib import closing, contextmanager
from types import SimpleNamespace
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.optional import require

from .._flow import form_of
from ..base import DataFlow
from . import records
from .records import DamagedFile, PathLike, RecordFile, RecordsFlow, Writing

_LIBVER = ("v110", "v110")  # the first format in which all structures have checksums
_CHUNK_BYTES = 1 << 18  # a quarter of the cache that HDF5 gives a dataset
_CHUNK_ROWS = 1024
# What h5py raises when HDF5 cannot make sense of a file.
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError)


class HDF5Data(RecordsFlow):
    """Yields a list of the rows with one index of some datasets, a numpy array or scalar each.

    In memory, arrays are read-only: copy what you want to change.
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
          filename: of the file.
          data_paths: the names of datasets of one length, such as `["train/image", "train/label"]`.
          shuffle: whether each pass has its own order.
          in_memory: whether to read everything now; False for data larger than the memory.
          max_errors: how many damaged rows a pass skips, without `in_memory`; see `RecordsFlow`.
        """
        super().__init__(_Rows(filename, list(data_paths), in_memory), shuffle, max_errors)


class _Rows(RecordFile):
    """The rows of some datasets, from memory or one by one from the file."""

    def __init__(self, path: PathLike, keys: List[str], in_memory: bool) -> None:
        super().__init__(path)
        self._keys = keys
        self._columns: Optional[List[np.ndarray]] = None
        with closing(self.open()) as opened:
            lengths = [len(dataset) for dataset in opened.datasets]
            if len(set(lengths)) > 1:
                rows = ", ".join(f"{key!r} has {n} rows" for key, n in zip(keys, lengths))
                raise ValueError(f"The datasets of {path} have different lengths: {rows}.")
            self._length = lengths[0]
            if in_memory:
                self._columns = [self._column(*pair) for pair in zip(keys, opened.datasets)]

    def open(self) -> SimpleNamespace:
        h5py = require("h5py")
        try:
            file = h5py.File(self.path, "r")
            datasets = [file.get(key) for key in self._keys]
        except _DAMAGE as error:
            if isinstance(error, OSError) and type(error) is not OSError:
                raise  # it may not be read, or is being written
            raise DamagedFile(f"{self.path} is damaged, or no HDF5 file: {error}.") from error
        for key, dataset in zip(self._keys, datasets):
            if not isinstance(dataset, h5py.Dataset) or not dataset.shape:
                names = f"`h5ls -r {shlex.quote(self.path)}` lists what it has."
                raise KeyError(f"{self.path} has no dataset {key!r} with rows. {names}")
        return SimpleNamespace(datasets=datasets, close=file.close)

    def __len__(self) -> int:
        return self._length

    def read(self, index: int) -> List[Any]:
        if self._columns is not None:
            return [column[index] for column in self._columns]
        return [self._row(*pair, index) for pair in zip(self._keys, self.handle.datasets)]

    def _row(self, key: str, dataset: Any, index: int) -> Any:
        try:
            return dataset[index]
        except _DAMAGE as error:
            raise self.damaged(index, f"dataset {key!r} is damaged: {error}.") from error

    def where(self, index: int) -> str:
        return f"row {index}"

    def _column(self, key: str, dataset: Any) -> np.ndarray:
        """Returns all rows as a read-only array."""
        try:
            column: np.ndarray = dataset[:]
        except _DAMAGE:
            for index in range(len(dataset)):
                self._row(key, dataset, index)  # the error names the first that is damaged
            raise
        column.setflags(write=False)
        return column

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.path, self._keys, self._columns is not None)


class HDF5Serializer:
    """Writes the datapoints of a flow to an HDF5 file, and makes a flow of such a file.

    They are lists or tuples of numpy arrays or scalars, of one dtype and shape in each component,
    or of Python's bool, int (which becomes int64) and float (float64). On a full disk
    HDF5 raises an error, and may crash the process after it.
    """

    @staticmethod
    def save(df: DataFlow, path: PathLike, data_paths: Sequence[str]) -> int:
        """Writes one pass to a dataset of each name; see `write_records`."""
        keys = list(data_paths)
        return records.write_records(df, path, lambda file: _writer(file.name, keys))

    @staticmethod
    def load(path: PathLike, data_paths: Sequence[str], shuffle: bool = True) -> HDF5Data:
        """Returns a flow over the datapoints of a file; see `HDF5Data`."""
        return HDF5Data(path, data_paths, shuffle)


@contextmanager
def _writer(path: str, keys: List[str]) -> Writing:
    columns: List[Tuple[Any, np.ndarray]] = []  # datasets, and a chunk of rows that wait for each
    count = 0

    def write(datapoint: Any, index: int) -> None:
        nonlocal count
        if not isinstance(datapoint, (list, tuple)) or len(datapoint) != len(keys):
            raise TypeError(
                f"Datapoint {index} is {form_of(datapoint)}, but needs to be a list or "
                f"tuple with one component for each of {keys}."
            )
        if any(map(np.ma.isMA, datapoint)):
            raise TypeError(f"Datapoint {index} has a mask, which would be lost: use filled().")
        rows = list(map(np.asarray, datapoint))
        if index == 0:
            columns.extend(_new_column(file, *pair) for pair in zip(keys, rows))
        for key, row, (dataset, chunk) in zip(keys, rows, columns):
            if (row.dtype, row.shape) != (chunk.dtype, chunk.shape[1:]):
                raise ValueError(
                    f"Datapoint {index} ({key!r}) is {row.dtype} {row.shape}, but those before it "
                    f"are {chunk.dtype} {chunk.shape[1:]}. NumpySerializer takes different ones."
                )
            chunk[index % len(chunk)] = row
            if (index + 1) % len(chunk) == 0:
                _append(dataset, chunk)
        count = index + 1

    with require("h5py").File(path, "w", libver=_LIBVER) as file:
        yield write
        for dataset, chunk in columns:
            _append(dataset, chunk[: count - len(dataset)])


def _new_column(file: Any, key: str, row: np.ndarray) -> Tuple[Any, np.ndarray]:
    rows = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // max(1, row.nbytes)))
    chunk = np.empty((rows, *row.shape), row.dtype)
    shapes: Any = {"maxshape": (None, *row.shape), "chunks": chunk.shape}
    return file.create_dataset(key, (0, *row.shape), row.dtype, fletcher32=True, **shapes), chunk


def _append(dataset: Any, rows: np.ndarray) -> None:
    begin = len(dataset)
    dataset.resize(begin + len(rows), axis=0)
    dataset[begin:] = rows
