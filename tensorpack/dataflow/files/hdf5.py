"""HDF5 files: datasets of equal length, whose rows of one index make a datapoint.

Files of any program are read, by default into memory: each row of a file costs a whole chunk, so
shuffled access is slow. In those that are written here, each chunk has a checksum (Fletcher's, of
32 bits), and so have the structures, as in HDF5 1.10.
"""

import os
from contextlib import ExitStack, closing, contextmanager
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils import get_tqdm
from tensorpack.utils.optional import require

from ..base import DataFlow, DataFlowTerminated
from . import records
from .hdf5_writing import new_hdf5
from .records import DamagedFile, PathLike, RecordFile, RecordsFlow, Writing

_VERSION, _VERSION_KEY = 1, "tensorpack_version"
_LIBVER = ("v110", "v110")  # the first format in which all structures have checksums
_CHUNK_BYTES = 1 << 18  # a quarter of the cache that HDF5 gives a dataset
_CHUNK_ROWS = 1024
_MAX_ROW = (1 << 32) - 1  # bytes of a chunk, the limit of the format
_KINDS = "biufc"  # of the dtypes that come back as they were
_BLOCK_BYTES = 1 << 22  # read at a time
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
        if in_memory and max_errors:
            raise ValueError(f"max_errors={max_errors} needs in_memory=False, to read single rows.")
        super().__init__(_Rows(filename, _names(data_paths), in_memory), shuffle, max_errors)


class _Rows(RecordFile):
    """The rows of some datasets, from memory or one by one from the file."""

    _length: Optional[int] = None

    def __init__(self, path: PathLike, keys: List[str], in_memory: bool) -> None:
        super().__init__(path)
        self.keys, self._columns = keys, []
        with closing(self.open()) as opened:
            self._length = rows = len(opened.datasets[0].rows)
            if not in_memory:
                return
            total = rows * len(keys)
            with get_tqdm(total=total, desc=os.path.basename(self.path), unit="row") as bar:
                self._columns = [each.read_all(bar) for each in opened.datasets]

    def open(self) -> SimpleNamespace:
        with ExitStack() as stack:
            file = stack.enter_context(_open(self.path))
            with _damage(f"{self.path}: its attributes cannot be read"):
                version = file.attrs.get(_VERSION_KEY, _VERSION)
            if not np.array_equal(version, _VERSION):
                problem = f"is of version {version}, but this tensorpack reads {_VERSION}"
                raise DamagedFile(f"{self.path} {problem}.")
            datasets = [_Dataset(file, self.path, key) for key in self.keys]
            lengths = [len(each.rows) for each in datasets]
            if len(set(lengths)) > 1:
                found = ", ".join(f"{key!r} has {n} rows" for key, n in zip(self.keys, lengths))
                raise ValueError(f"The datasets of {self.path} have different lengths: {found}.")
            stack.pop_all()
            return SimpleNamespace(datasets=datasets, close=file.close)

    def __len__(self) -> int:
        return self._length or 0

    def read(self, index: int) -> List[Any]:
        if self._columns:
            return [column[index] for column in self._columns]
        return [dataset.read(index) for dataset in self.handle.datasets]

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.path, self.keys, bool(self._columns))


class _Dataset:
    """A dataset, with errors that name it."""

    def __init__(self, file: Any, path: str, key: str) -> None:
        h5py = require("h5py")
        self._path, self._name = path, f"{path}: dataset {key!r}"
        with _damage(f"{self._name} cannot be opened"):
            self.rows: Any = file[key] if key in file else None
        if not isinstance(self.rows, h5py.Dataset):
            found: List[str] = []
            file.visititems(lambda at, it: found.append(at) if hasattr(it, "chunks") else None)
            raise KeyError(f"{path} has no dataset {key!r}. It has {sorted(found)[:20]}.")
        self.in_chunk = self.rows.chunks[0] if self.rows.chunks else 1

    def read_all(self, bar: Any) -> np.ndarray:
        """Returns all rows as a read-only array."""
        rows = len(self.rows)
        column = np.empty(self.rows.shape, self.rows.dtype)
        in_block = _BLOCK_BYTES * rows // max(1, column.nbytes)
        step = max(1, in_block // self.in_chunk) * self.in_chunk
        for begin in range(0, rows, step):
            end = min(begin + step, rows)
            column[begin:end] = self.read(begin, end)
            bar.update(end - begin)
        column.setflags(write=False)
        return column

    def read(self, begin: int, end: Optional[int] = None) -> Any:
        try:
            return self.rows[begin] if end is None else self.rows[begin:end]
        except _DAMAGE as error:
            if not self.rows:
                closed = f"{self._path} was closed while row {begin} was read."
                raise DataFlowTerminated(closed) from error
            if end is None:
                raise DamagedFile(f"{self._name} is damaged in row {begin}: {error}.") from error
            step = self.in_chunk if self.rows.chunks else end - begin
            if end - begin > step:  # one chunk after another, to name the one
                for first in range(begin, end, step):
                    self.read(first, min(first + step, end))
            raise DamagedFile(
                f"{self._name} is damaged in rows {begin} to {end - 1}: {error}. To skip single "
                "rows, use in_memory=False and max_errors."
            ) from error


def _open(path: str) -> Any:
    h5py = require("h5py")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        if type(error) is not OSError:  # it may not be read, or is being written
            raise
        size = os.path.getsize(path)
        raise DamagedFile(f"{path} is not a whole HDF5 file ({size} bytes): {error}.") from error


@contextmanager
def _damage(problem: str) -> Iterator[None]:
    """Raises what HDF5 raises inside the block as a `DamagedFile`."""
    try:
        yield
    except DamagedFile:
        raise
    except _DAMAGE as error:
        raise DamagedFile(f"{problem}: {error}.") from error


class HDF5Serializer:
    """Writes the datapoints of a flow to an HDF5 file, and makes a flow of such a file.

    They are lists or tuples of numpy arrays or scalars, of one dtype and shape in each component,
    or of Python's bool, int (which becomes int64) and float (float64).
    """

    @staticmethod
    def save(df: DataFlow, path: PathLike, data_paths: Sequence[str]) -> int:
        """Writes one pass to a dataset of each name; see `write_records`."""
        keys = _names(data_paths)
        return records.write_records(df, path, lambda file: _writer(file, keys))

    @staticmethod
    def load(path: PathLike, data_paths: Sequence[str], shuffle: bool = True) -> HDF5Data:
        """Returns a flow over the datapoints of a file; see `HDF5Data`."""
        return HDF5Data(path, data_paths, shuffle)


@contextmanager
def _writer(file: Any, keys: List[str]) -> Writing:
    # HDF5 opens the temporary file again; it is put on the disk, and renamed, as ours.
    with new_hdf5(file.name, libver=_LIBVER) as (target, check):
        target.attrs[_VERSION_KEY] = np.int64(_VERSION)
        columns: List[_GrowingDataset] = []

        def write(datapoint: Any, index: int) -> None:
            _check_row(datapoint, index, keys)
            if index == 0:
                columns.extend(_GrowingDataset(target, *each) for each in zip(keys, datapoint))
            for column, value in zip(columns, datapoint):
                column.append(value, index)
            check()

        yield write
        for column in columns:
            column.flush()


def _check_row(datapoint: Any, index: int, names: Sequence[str]) -> None:
    """Raises unless a datapoint is a list or tuple with a component for each name."""
    is_row = isinstance(datapoint, (list, tuple))
    if not is_row or len(datapoint) != len(names):
        raise (ValueError if is_row else TypeError)(
            f"Datapoint {index} is {records.form_of(datapoint)}, but needs to be a list or tuple "
            f"with one component for each of {list(names)}."
        )


def _names(data_paths: Sequence[str]) -> List[str]:
    if isinstance(data_paths, (str, bytes)):
        raise TypeError(f"data_paths is a list of names, but got {data_paths!r}: put it in a list.")
    return list(data_paths)


class _GrowingDataset:
    """A dataset that grows by whole chunks, for which rows wait in memory."""

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
        shape, dtype = self._block.shape[1:], self._block.dtype
        if row.shape != shape or row.dtype != dtype:
            raise ValueError(
                f"{what} is {row.dtype} {row.shape}, but those before it are {dtype} {shape}. All "
                "rows of a dataset are alike: make them so by MapDataComponent, or use "
                "NumpySerializer."
            )
        self._block[self._waiting] = row
        self._waiting += 1
        if self._waiting == self._rows:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            begin = len(self._dataset)
            self._dataset.resize(begin + self._waiting, axis=0)
            self._dataset[begin:] = self._block[: self._waiting]
            self._waiting = 0


def _as_array(value: Any, what: str) -> np.ndarray:
    dtype: Optional[Any] = {bool: np.bool_, int: np.int64, float: np.float64}.get(type(value))
    found = f"a {type(value).__name__}"
    if isinstance(value, np.ma.MaskedArray):
        found = "a masked array, of which array.filled(value) and the mask could be written"
    elif dtype is not None or isinstance(value, (np.ndarray, np.generic)):
        try:
            array = np.asarray(value, dtype)
        except OverflowError as error:
            raise ValueError(f"{what} is {value}, too large for int64.") from error
        if array.dtype.kind in _KINDS:
            return array
        found = f"an array of {array.dtype}"
    raise TypeError(
        f"{what} is {found}, but HDF5Serializer writes numbers: numpy arrays and scalars, bool, "
        "int and float. Use NumpySerializer for other things."
    )
