"""Rows of HDF5 datasets by index, from memory or from the file; used by `hdf5.py`.

A file is not trusted: what it says of sizes is compared with the bytes that it has before memory is
allocated, and data that lie in other files are not read.
"""

import os
import posixpath
from typing import Any, List, Optional, Tuple

import numpy as np

from tensorpack.utils import get_tqdm
from tensorpack.utils.optional import require
from tensorpack.utils.packed_arrays import nbytes_of

from ..base import DataFlowTerminated
from .records import DamagedFile

VERSION = 1
VERSION_KEY = "tensorpack_version"

_BLOCK_BYTES = 1 << 22  # read at a time
_NAMES_SHOWN = 20
_MOST_LINKS = 16  # from one to the next
_ANY_BYTES = 1 << 26  # of a dataset, whatever is stored of it
_MOST_INFLATION = 1032  # of bytes that deflate has packed

# What h5py raises when HDF5 cannot make sense of a file.
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError)


class RowsInMemory:
    """The rows of all datasets, read when it is made. A pickle of it is the path."""

    def __init__(self, path: str, keys: List[str]) -> None:
        self._args = path, keys
        with _opened(path) as file:
            datasets = _datasets(file, path, keys)
            total = sum(len(dataset) for dataset in datasets)
            with get_tqdm(total=total, desc=os.path.basename(path), unit="row") as bar:
                self._columns = [_read_all(path, *each, bar) for each in zip(keys, datasets)]

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: int) -> List[Any]:
        return [column[index] for column in self._columns]

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), self._args


class RowsInFile:
    """The rows of all datasets, read one by one from a file that is open while it is in use.

    Each process opens it for itself, also a forked one. `keys` are the names of the datasets.
    """

    def __init__(self, path: str, keys: List[str]) -> None:
        self._path, self.keys = path, keys
        self._file: Optional[Any] = None
        self._datasets: List[Any] = []
        self._process = 0
        with _opened(path) as file:
            datasets = _datasets(file, path, keys)
            for key, dataset in zip(keys, datasets):
                advice = "Write it again with smaller rows and chunks."
                chunk = dataset.chunks[0] if dataset.chunks else 1
                _check_size(path, key, dataset, min(chunk, len(dataset)), advice)
            self._length = len(datasets[0])

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> List[Any]:
        datasets = self._datasets
        if not datasets or self._process != os.getpid():
            datasets = self._open()
        return [
            _read_rows(self._path, key, dataset, index) for key, dataset in zip(self.keys, datasets)
        ]

    def _open(self) -> List[Any]:
        file = _opened(self._path)
        try:
            datasets = _datasets(file, self._path, self.keys)
            if len(datasets[0]) != self._length:
                raise DamagedFile(
                    f"{self._path} had {self._length} rows and now has {len(datasets[0])}. It "
                    "must not be written while it is read."
                )
        except BaseException:
            file.close()
            raise
        self._file, self._datasets, self._process = file, datasets, os.getpid()
        return datasets

    def close(self) -> None:
        """Closes the file, if this process has it open."""
        file, self._file, self._datasets = self._file, None, []
        if file is not None and self._process == os.getpid():
            file.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self._path, self.keys)


def describe_file(path: str) -> Tuple[Optional[str], List[str], bool]:
    """Returns the version of a file, its datasets with rows, and whether all have checksums."""
    names: List[str] = []
    checked: List[bool] = []

    def note(name: str, found: Any) -> None:
        if isinstance(found, require("h5py").Dataset) and found.shape:
            names.append(name)
            checked.append(bool(found.fletcher32))

    with _opened(path) as file:
        try:
            version = file.attrs.get(VERSION_KEY)
            file.visititems(note)
        except _DAMAGE as error:
            raise DamagedFile(f"{path} is not a whole HDF5 file: {error}.") from error
    return None if version is None else str(version), names, all(checked)


def _opened(path: str) -> Any:
    h5py = require("h5py")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        if type(error) is not OSError:  # it may not be read, or is being written
            raise
        size = os.path.getsize(path)
        raise DamagedFile(f"{path} is not a whole HDF5 file ({size} bytes): {error}.") from error


def _datasets(file: Any, path: str, keys: List[str]) -> List[Any]:
    """Returns the datasets of the names, all of one length."""
    try:
        version = file.attrs.get(VERSION_KEY, VERSION)
    except _DAMAGE as error:
        raise DamagedFile(f"{path}: its attributes cannot be read: {error}.") from error
    if not np.array_equal(version, VERSION):
        raise DamagedFile(f"{path} is of version {version}, but this tensorpack reads {VERSION}.")
    datasets = [_dataset(file, path, key) for key in keys]
    lengths = {key: len(dataset) for key, dataset in zip(keys, datasets)}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
        raise ValueError(f"The datasets of {path} have different lengths: {found} rows.")
    return datasets


def _dataset(file: Any, path: str, key: str) -> Any:
    h5py = require("h5py")
    try:
        place = _place_in(file, path, key)
        found = file[place] if place in file else None
        plan = found.id.get_create_plist() if isinstance(found, h5py.Dataset) else None
    except DamagedFile:
        raise
    except _DAMAGE as error:
        raise DamagedFile(f"{path}: dataset {key!r} cannot be opened: {error}.") from error
    if plan is None:
        raise KeyError(
            f"{path} has no dataset {key!r}. At its root are {sorted(file)[:_NAMES_SHOWN]}."
        )
    if plan.get_layout() == h5py.h5d.VIRTUAL or plan.get_external_count():
        raise _elsewhere(path, key)
    if len(found.shape or ()) == 0:
        raise ValueError(f"{path}: dataset {key!r} is a single value, but rows are needed.")
    if found.dtype.hasobject:
        raise TypeError(
            f"{path}: dataset {key!r} has elements of variable length or references, which are "
            "not read. Write it again with elements of one size."
        )
    return found


def _place_in(file: Any, path: str, key: str) -> str:
    """Returns the path of a dataset without soft links, in the same file."""
    h5py = require("h5py")
    place = key
    for _ in range(_MOST_LINKS):
        before: List[str] = []
        after = place.strip("/").split("/")
        while after:
            name = after.pop(0)
            link = file.get("/".join([*before, name]), getlink=True, default=None)
            if isinstance(link, h5py.ExternalLink):
                raise _elsewhere(path, key)
            if isinstance(link, h5py.SoftLink):
                place = posixpath.normpath(posixpath.join("/", *before, link.path, *after))
                break
            before.append(name)
        else:
            return "/".join(before)
    raise DamagedFile(f"{path}: dataset {key!r} is behind more than {_MOST_LINKS} links.")


def _elsewhere(path: str, key: str) -> DamagedFile:
    return DamagedFile(
        f"{path}: dataset {key!r} lies in other files, by an external link, as a virtual dataset "
        "or in external storage, which are not read. Copy the data into one file."
    )


def _check_size(path: str, key: str, dataset: Any, rows: int, advice: str) -> None:
    """Raises DamagedFile where rows take far more memory than what is stored can account for."""
    nbytes = nbytes_of(dataset.dtype, (rows, *map(int, dataset.shape[1:])))
    try:
        stored = min(dataset.id.get_storage_size(), os.path.getsize(path))
        if dataset.id.get_create_plist().get_nfilters():
            stored *= _MOST_INFLATION
    except _DAMAGE as error:
        raise DamagedFile(f"{path}: dataset {key!r} cannot be opened: {error}.") from error
    if nbytes > max(stored, _ANY_BYTES):
        raise DamagedFile(
            f"{path}: dataset {key!r} would take {nbytes} bytes of memory for {rows} rows, far "
            f"more than the file can hold. {advice}"
        )


def _read_all(path: str, key: str, dataset: Any, bar: Any) -> np.ndarray:
    """Returns a whole dataset as a read-only array."""
    rows = len(dataset)
    advice = "If that is right, use in_memory=False, which reads single rows."
    _check_size(path, key, dataset, rows, advice)
    column = np.empty(dataset.shape, dataset.dtype)
    in_chunk = dataset.chunks[0] if dataset.chunks else 1
    row_bytes = max(1, column.nbytes // max(1, rows))
    step = max(1, _BLOCK_BYTES // (row_bytes * in_chunk)) * in_chunk
    for begin in range(0, rows, step):
        end = min(begin + step, rows)
        column[begin:end] = _read_rows(path, key, dataset, begin, end)
        bar.update(end - begin)
    column.setflags(write=False)
    return column


def _read_rows(path: str, key: str, dataset: Any, begin: int, end: Optional[int] = None) -> Any:
    """Returns some rows as an array; without `end`, the one row itself."""
    try:
        return dataset[begin] if end is None else dataset[begin:end]
    except _DAMAGE as error:
        if not dataset:
            raise DataFlowTerminated(f"{path} was closed while row {begin} was read.") from error
        rows, advice = f"row {begin}", ""
        if end is not None:
            in_chunk = dataset.chunks[0] if dataset.chunks else end - begin
            if end - begin > in_chunk:  # one chunk after another, to name the one
                for first in range(begin, end, in_chunk):
                    _read_rows(path, key, dataset, first, min(first + in_chunk, end))
            rows = f"rows {begin} to {end - 1}"
            advice = " To skip single rows, use in_memory=False and max_errors."
        place = _place_of(dataset, begin)
        raise DamagedFile(
            f"{path}: dataset {key!r} is damaged in {rows}{place}: {error}.{advice}"
        ) from error


def _place_of(dataset: Any, row: int) -> str:
    """Returns where in the file the first chunk of a row begins, as text; "" if that is unknown."""
    find = getattr(dataset.id, "get_chunk_info_by_coord", None)  # not in all builds of HDF5
    if find is None or not dataset.chunks:
        return ""
    corner = (row // dataset.chunks[0] * dataset.chunks[0],) + (0,) * (len(dataset.shape) - 1)
    try:
        return f", in the chunk at byte {find(corner).byte_offset}"
    except _DAMAGE:
        return ""  # what says where the chunks are is damaged as well
