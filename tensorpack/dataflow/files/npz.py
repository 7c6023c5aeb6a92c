"""Datapoints in one `.npz` file, which numpy reads as well: an array for each component.

Numbers and arrays of numbers of one dtype and shape are stacked, in `values_N`. Other components
are frames of `tensorpack.utils.serialize`, one after another in `frames_N`, which begin and end at
`offsets_N`. `header` is JSON, as bytes: the form of the datapoints and the kind of each component.
There are no objects, so reading runs no code. Values come back with the same type and bits.
"""

import json
import zipfile
from contextlib import contextmanager
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from tensorpack.utils.packing.npz import array_of_npy, read_npz, write_npz
from tensorpack.utils.packing.old_values import RefusedRecord
from tensorpack.utils.serialize import load_frame

from .._flow import form_of
from .._stack import DeferredStack
from ..base import DataFlow
from ..raw import DataFromList
from . import records
from .records import DamagedFile, PathLike, RecordFile, Writing

_FORMAT, _VERSION = "tensorpack datapoints", 1
_OLD = ["buffer.npy"]  # the members of a file of tensorpack 0.x
_KINDS = {np.ndarray: "array", int: "int", float: "float", bool: "bool"}


class NumpySerializer:
    """Writes the datapoints of a flow to an `.npz` file, and makes a flow of such a file.

    They are of one form: lists, tuples or dicts, of the same number or names of components.
    """

    @staticmethod
    def save(df: DataFlow, path: PathLike) -> int:
        """Writes one pass of a flow, which it keeps in memory, twice; see `write_records`."""
        return records.write_records(df, path, _writer)

    @staticmethod
    def load(path: PathLike, shuffle: bool = True, allow_pickle: bool = False) -> DataFromList:
        """Returns a flow over the datapoints of a file, which is read into memory here.

        Its arrays are read-only: copy what you want to change. The file may be one of tensorpack
        0.9 to 0.11; for `allow_pickle` see `LMDBDataPoint`.
        """
        path = records.input_path(path)
        try:
            with zipfile.ZipFile(path) as archive:
                old = archive.read(_OLD[0]) if archive.namelist() == _OLD else None
            if old is None:
                return DataFromList(_Datapoints(path), shuffle)
            array = array_of_npy(old, True, allow_pickle)
        except MemoryError:
            raise
        except RefusedRecord as error:
            raise ValueError(f"{path}: {error}") from error
        except Exception as error:  # damaged bytes make zipfile and numpy fail in many ways
            what = "is damaged, or was not written by NumpySerializer"
            raise DamagedFile(f"{path} {what}: {error}") from error
        datapoints = array.tolist()
        if array.ndim > 2:  # numpy took the components apart as well
            datapoints = [list(map(np.array, datapoint)) for datapoint in datapoints]
        return DataFromList(datapoints, shuffle)


@contextmanager
def _writer(file: Any) -> Writing:
    datapoints: List[Any] = []

    def write(datapoint: Any, index: int) -> None:
        form = form_of(datapoint)
        is_dict = type(datapoint) is dict and all(type(key) is str for key in datapoint)
        if type(datapoint) not in (list, tuple) and not is_dict:
            raise TypeError(
                f"Datapoint {index} is {form}, but needs to be a list, a tuple or a dict whose "
                "keys are text, and not of a subclass. Make one of it by MapData."
            )
        first = form_of(datapoints[0]) if datapoints else form
        if form != first:
            raise ValueError(f"Datapoint {index} has another form than the first: {form}, {first}.")
        datapoints.append(datapoint.copy() if is_dict else datapoint[:])  # the flow may reuse it

    yield write
    first, kinds = datapoints[0], []
    arrays: Dict[str, np.ndarray] = {}
    keys = list(first) if isinstance(first, dict) else None
    for number, key in enumerate(keys or range(len(first))):
        kind, column = _column_of([datapoint[key] for datapoint in datapoints], key)
        kinds.append(kind)
        arrays.update((f"{name}_{number}", array) for name, array in column.items())
    header = {"format": _FORMAT, "version": _VERSION, "length": len(datapoints), "kinds": kinds}
    header.update(form=type(first).__name__, keys=keys)
    write_npz(file, {**arrays, "header": np.frombuffer(json.dumps(header).encode(), np.uint8)})


def _column_of(values: List[Any], key: Any) -> Tuple[str, Dict[str, np.ndarray]]:
    """Returns the kind of a component and its arrays."""
    cls = type(values[0])
    kind = _KINDS.get(cls, "scalar" if issubclass(cls, np.generic) else "frames")
    if kind != "frames" and all(type(value) is cls for value in values):
        arrays = [np.asarray(value) for value in values]
        if arrays[0].dtype.kind in "biufc" and len({(a.dtype, a.shape) for a in arrays}) == 1:
            return kind, {
                "values": DeferredStack(arrays, arrays[0].dtype).array()
            }  # keeps the byte order
    problem = f" cannot be written: component {key!r}"
    frames = [records.encode_datapoint([value], i, problem) for i, value in enumerate(values)]
    offsets = np.cumsum([0, *map(len, frames)], dtype=np.int64)
    return "frames", {"frames": np.frombuffer(b"".join(frames), np.uint8), "offsets": offsets}


class _Datapoints(RecordFile):
    """The datapoints of a file, in memory."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        arrays = read_npz(path)
        for array in arrays.values():
            array.setflags(write=False)
        self._header = json.loads(arrays["header"].tobytes().decode())
        if (self._header["format"], self._header["version"]) != (_FORMAT, _VERSION):
            raise ValueError(f"version {_VERSION} is read, and this is {self._header}")
        self._readers = [_reader(kind, arrays, n) for n, kind in enumerate(self._header["kinds"])]

    def __len__(self) -> int:
        return self._header["length"]

    def read(self, index: int) -> Any:
        values = [read(index) for read in self._readers]
        form = self._header["form"]
        if form == "dict":
            return dict(zip(self._header["keys"], values))
        return tuple(values) if form == "tuple" else values

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.path,)


def _reader(kind: str, arrays: Dict[str, np.ndarray], number: int) -> Callable[[int], Any]:
    """Returns a function from index to component."""
    if kind == "frames":
        frames, ends = arrays[f"frames_{number}"], arrays[f"offsets_{number}"].tolist()
        return lambda i: load_frame(frames[ends[i] : ends[i + 1]])[0]
    values = arrays[f"values_{number}"]
    if kind == "array":
        return lambda i: values[i, ...]  # the dots keep a value without axes an array
    return values.__getitem__ if kind == "scalar" else values.item
