"""Rows of HDF5 datasets by index, from memory or from the file; used by `hdf5.py`.

A file is not trusted: what it says of sizes is compared with the bytes that it has before memory is
allocated, and data that lie in other files are not read.
"""

import os
import posixpath
from contextlib import closing, contextmanager
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from tensorpack.utils import get_tqdm
from tensorpack.utils.optional import require
from tensorpack.utils.packing.packed_arrays import nbytes_of

from ..base import DataFlowTerminated
from .records import DamagedFile, PathLike, RecordFile

VERSION = 1
VERSION_KEY = "tensorpack_version"

_BLOCK_BYTES = 1 << 22  # read at a time
_NAMES_SHOWN = 20
_MOST_LINKS = 16  # from one to the next
_ANY_BYTES = 1 << 26  # of a dataset, whatever is stored of it
_MOST_INFLATION = 1032  # of bytes that deflate has packed

# What h5py raises when HDF5 cannot make sense of a file.
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError)


class RowsInFile(RecordFile):
    """The rows of some datasets, read one by one from the file; `keys` are their names."""

    _length: Optional[int] = None

    def __init__(self, path: PathLike, keys: List[str]) -> None:
        super().__init__(path)
        self.keys = keys
        with closing(self.open()) as datasets:
            self._length = datasets.length
            self._begin(datasets)

    def _begin(self, datasets: "_Datasets") -> None:
        advice = "Write it again with smaller rows and chunks."
        for each in datasets.all:
            each.check_size(min(each.in_chunk, datasets.length), advice)

    def open(self) -> "_Datasets":
        datasets = _Datasets(self.path, self.keys)
        if self._length not in (None, datasets.length):
            datasets.close()
            raise DamagedFile(
                f"{self.path} had {self._length} rows and now has {datasets.length}. It must not "
                "be written while it is read."
            )
        return datasets

    def __len__(self) -> int:
        return self._length or 0

    def read(self, index: int) -> List[Any]:
        return [dataset.read(index) for dataset in self.handle.all]

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.path, self.keys)


class RowsInMemory(RowsInFile):
    """The rows of some datasets, read when it is made."""

    def _begin(self, datasets: "_Datasets") -> None:
        total = datasets.length * len(self.keys)
        with get_tqdm(total=total, desc=os.path.basename(self.path), unit="row") as bar:
            self._columns = [dataset.read_all(bar) for dataset in datasets.all]

    def read(self, index: int) -> List[Any]:
        return [column[index] for column in self._columns]


class _Datasets:
    """The datasets of the names, all of one length, in an open file."""

    def __init__(self, path: str, keys: List[str]) -> None:
        self.length = 0
        self._file = _opened(path)
        try:
            with _damage(f"{path}: its attributes cannot be read"):
                version = self._file.attrs.get(VERSION_KEY, VERSION)
            if not np.array_equal(version, VERSION):
                raise DamagedFile(
                    f"{path} is of version {version}, but this tensorpack reads {VERSION}."
                )
            self.all = [_Dataset(self._file, path, key) for key in keys]
            lengths = {key: len(each.rows) for key, each in zip(keys, self.all)}
            if len(set(lengths.values())) > 1:
                found = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
                raise ValueError(f"The datasets of {path} have different lengths: {found} rows.")
            self.length = lengths[keys[0]]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()


class _Dataset:
    """A dataset, with errors that name it."""

    def __init__(self, file: Any, path: str, key: str) -> None:
        h5py = require("h5py")
        self._path, self._name = path, f"{path}: dataset {key!r}"
        with _damage(f"{self._name} cannot be opened"):
            place = self._place_in(file, key)
            found: Any = file[place] if place in file else None
            plan = found.id.get_create_plist() if isinstance(found, h5py.Dataset) else None
        if plan is None:
            raise KeyError(
                f"{path} has no dataset {key!r}. At its root are {sorted(file)[:_NAMES_SHOWN]}."
            )
        if plan.get_layout() == h5py.h5d.VIRTUAL or plan.get_external_count():
            raise self._elsewhere()
        if len(found.shape or ()) == 0:
            raise ValueError(f"{self._name} is a single value, but rows are needed.")
        if found.dtype.hasobject:
            raise TypeError(
                f"{self._name} has elements of variable length or references, which are not read. "
                "Write it again with elements of one size."
            )
        self.rows = found
        self.in_chunk = found.chunks[0] if found.chunks else 1

    def _place_in(self, file: Any, key: str, links: int = _MOST_LINKS) -> str:
        """Returns the path of a dataset without soft links, in the same file."""
        h5py = require("h5py")
        names, place = key.strip("/").split("/"), "/"
        for number, name in enumerate(names, 1):
            folder, place = place, posixpath.join(place, name)
            link = file.get(place, getlink=True, default=None)
            if isinstance(link, h5py.ExternalLink):
                raise self._elsewhere()
            if isinstance(link, h5py.SoftLink):
                if not links:
                    raise DamagedFile(f"{self._name} is behind more than {_MOST_LINKS} links.")
                rest = posixpath.normpath(posixpath.join(folder, link.path, *names[number:]))
                return self._place_in(file, rest, links - 1)
        return place

    def _elsewhere(self) -> DamagedFile:
        return DamagedFile(
            f"{self._name} lies in other files, by an external link, as a virtual dataset or in "
            "external storage, which are not read. Copy the data into one file."
        )

    def check_size(self, rows: int, advice: str) -> None:
        """Raises DamagedFile where rows take far more memory than what is stored can fill."""
        nbytes = nbytes_of(self.rows.dtype, (rows, *map(int, self.rows.shape[1:])))
        with _damage(f"{self._name} cannot be opened"):
            stored = min(self.rows.id.get_storage_size(), os.path.getsize(self._path))
            if self.rows.id.get_create_plist().get_nfilters():
                stored *= _MOST_INFLATION
        if nbytes > max(stored, _ANY_BYTES):
            raise DamagedFile(
                f"{self._name} would take {nbytes} bytes of memory for {rows} rows, far more than "
                f"the file can hold. {advice}"
            )

    def read_all(self, bar: Any) -> np.ndarray:
        """Returns all rows as a read-only array."""
        rows = len(self.rows)
        self.check_size(rows, "If that is right, use in_memory=False, which reads single rows.")
        column = np.empty(self.rows.shape, self.rows.dtype)
        row_bytes = max(1, column.nbytes // max(1, rows))
        step = max(1, _BLOCK_BYTES // (row_bytes * self.in_chunk)) * self.in_chunk
        for begin in range(0, rows, step):
            end = min(begin + step, rows)
            column[begin:end] = self.read(begin, end)
            bar.update(end - begin)
        column.setflags(write=False)
        return column

    def read(self, begin: int, end: Optional[int] = None) -> Any:
        """Returns some rows as an array; without `end`, the one row itself."""
        try:
            return self.rows[begin] if end is None else self.rows[begin:end]
        except _DAMAGE as error:
            if not self.rows:
                raise DataFlowTerminated(
                    f"{self._path} was closed while row {begin} was read."
                ) from error
            rows, advice = f"row {begin}", ""
            if end is not None:
                in_chunk = self.in_chunk if self.rows.chunks else end - begin
                if end - begin > in_chunk:  # one chunk after another, to name the one
                    for first in range(begin, end, in_chunk):
                        self.read(first, min(first + in_chunk, end))
                rows = f"rows {begin} to {end - 1}"
                advice = " To skip single rows, use in_memory=False and max_errors."
            raise DamagedFile(
                f"{self._name} is damaged in {rows}{self._place_of(begin)}: {error}.{advice}"
            ) from error

    def _place_of(self, row: int) -> str:
        """Returns where in the file the chunk of a row begins, as text; "" if that is unknown."""
        find = getattr(self.rows.id, "get_chunk_info_by_coord", None)  # not in all builds of HDF5
        if find is None or not self.rows.chunks:
            return ""
        corner = (row // self.in_chunk * self.in_chunk,) + (0,) * (len(self.rows.shape) - 1)
        try:
            return f", in the chunk at byte {find(corner).byte_offset}"
        except _DAMAGE:
            return ""  # what says where the chunks are is damaged as well


def describe_file(path: str) -> Tuple[Optional[str], List[str], bool]:
    """Returns the version of a file, its datasets with rows, and whether all have checksums."""
    found = {}

    def note(name: str, each: Any) -> None:
        if isinstance(each, require("h5py").Dataset) and each.shape:
            found[name] = bool(each.fletcher32)

    with _opened(path) as file, _damage(f"{path} is not a whole HDF5 file"):
        version = file.attrs.get(VERSION_KEY)
        file.visititems(note)
    return None if version is None else str(version), list(found), all(found.values())


def _opened(path: str) -> Any:
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
