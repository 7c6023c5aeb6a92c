"""Datapoints in one `.npz` file, which numpy reads as well: an array for each component.

A file of this kind is a zip archive of `.npy` members, not compressed, with a checksum of each.
`header` has the version and the form of the datapoints, as JSON in an array of bytes; the others
are the columns. There are no objects in them, so reading runs no code. Values come back with the
same type and bits: a Python integer does not become a numpy integer.
"""

import json
import os
import zipfile
import zlib
from contextlib import contextmanager
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np

from tensorpack.utils import get_tqdm
from tensorpack.utils.packing.npz import array_of_npy
from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord
from tensorpack.utils.serialize import load_frame

from .._stack import Rows
from ..base import DataFlow
from ..raw import DataFromList
from . import records
from .records import DamagedFile, PathLike, RecordFile, Writing

_FORMAT = "tensorpack datapoints"
_VERSION = 1
_HEADER = "header"
_OLD_MEMBER = "buffer"  # the only one in files of tensorpack 0.x
_FORMS = {"list": list, "tuple": tuple, "dict": dict}
# Kinds of columns: numpy arrays of one dtype and shape, stacked; numpy scalars of one dtype;
# Python's numbers; and anything else that `tensorpack.utils.serialize` encodes, one after another
# in `frames`, the beginnings and the end of each in `offsets`.
_PYTHON = {"int": np.dtype(np.int64), "float": np.dtype(np.float64), "bool": np.dtype(np.bool_)}
_ARRAYS = "biufcSU"  # kinds of dtypes; frames refuse the others, and say where they are
_SCALARS = "biufc"  # numpy's strings would lose zero bytes at their end
_OFFSETS = np.dtype(np.int64)


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
        is_old = _is_old(path)
        return DataFromList(_read_old(path, allow_pickle) if is_old else _Datapoints(path), shuffle)


@contextmanager
def _writer(file: Any) -> Writing:
    form = kind = ""
    components: Dict[Any, List[Any]] = {}

    def write(datapoint: Any, index: int) -> None:
        nonlocal form, kind
        name = type(datapoint).__name__
        if type(datapoint) is not _FORMS.get(name):  # a namedtuple would come back as a tuple
            raise TypeError(
                f"Datapoint {index} is a {name}, but needs to be a list, tuple or dict, and not of "
                "a subclass. Make one of it by MapData."
            )
        keys = list(datapoint if name == "dict" else range(len(datapoint)))
        if name == "dict" and set(map(type, keys)) - {str}:
            raise TypeError(f"Datapoint {index} has keys that are not text: {keys}.")
        found = records.form_of(datapoint)
        if index == 0:
            form, kind = found, name
            components.update((key, []) for key in keys)
        if found != form:
            raise ValueError(
                f"Datapoint {index} has another form than those before it: {found} and {form}. "
                "All datapoints of a file have one form."
            )
        for key, values in components.items():
            values.append(datapoint[key])

    yield write
    if not components:
        raise ValueError("The datapoints have no components: nothing to write.")
    keys, columns = list(components), list(components.values())
    header: Dict[str, Any] = {"format": _FORMAT, "version": _VERSION, "length": len(columns[0])}
    header.update(form=kind, keys=keys if kind == "dict" else None, kinds=[])
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for number, (key, values) in enumerate(zip(keys, columns)):
            column, parts = _column_of(values, key)
            header["kinds"].append(column)
            for part, array in parts.items():
                _write_member(archive, f"{part}_{number}", array)
        text = json.dumps(header).encode("utf-8")
        _write_member(archive, _HEADER, np.frombuffer(text, np.uint8))


def _write_member(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    # Made like this, the member has no date in it: equal data are equal bytes.
    member = zipfile.ZipInfo(f"{name}.npy")
    with archive.open(member, "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)


def _column_of(values: Sequence[Any], name: Any) -> Tuple[str, Dict[str, np.ndarray]]:
    """Returns the kind of a column and its arrays; `values` are those of the component `name`."""
    kind = _kind_of(values)
    if kind == "frames":
        problem = f" cannot be written: component {name!r}"
        frames = [records.encode_datapoint([value], i, problem) for i, value in enumerate(values)]
        offsets = np.cumsum([0, *map(len, frames)], dtype=_OFFSETS)
        return kind, {"frames": np.frombuffer(b"".join(frames), np.uint8), "offsets": offsets}
    if kind in _PYTHON:
        return kind, {"values": np.array(values, _PYTHON[kind])}
    # Not by `np.stack`, which does not keep the byte order of a dtype.
    return kind, {"values": Rows(values, values[0].dtype).array()}


def _kind_of(values: Sequence[Any]) -> str:
    first = values[0]
    if len({type(value) for value in values}) > 1:
        return "frames"
    if type(first) is int and not -(2**63) <= min(values) <= max(values) < 2**63:
        return "frames"
    if type(first) in (int, float, bool):
        return type(first).__name__
    is_array = type(first) is np.ndarray
    if is_array or isinstance(first, np.generic):
        is_known = first.dtype.kind in (_ARRAYS if is_array else _SCALARS) and first.dtype.itemsize
        if is_known and len({(value.dtype, value.shape) for value in values}) == 1:
            return "array" if is_array else "scalar"
    return "frames"


class _Datapoints(RecordFile):
    """The datapoints of a file, in memory."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        try:
            archive = zipfile.ZipFile(path)
        except Exception as error:  # whatever damaged bytes lead `zipfile` to
            problem = f"is not a whole .npz file ({os.path.getsize(path)} bytes): {error}"
            raise DamagedFile(f"{path} {problem}.") from error
        with archive:
            if f"{_HEADER}.npy" not in archive.namelist():
                raise DamagedFile(f"{path} was not written by NumpySerializer: it has no header.")
            header = _read_member(archive, _HEADER, path)
            try:
                self._length, self._form, self._keys, kinds = _parse_header(header)
            except ValueError as error:
                raise DamagedFile(f"{path} has a wrong header: {error}.") from error
            self._readers = []
            with get_tqdm(kinds, desc=os.path.basename(path), unit="column") as bar:
                for number, kind in enumerate(bar):
                    names = ("frames", "offsets") if kind == "frames" else ("values",)
                    parts = [_read_member(archive, f"{name}_{number}", path) for name in names]
                    self._readers.append(_reader_of(kind, parts))

    def __len__(self) -> int:
        return self._length

    def read(self, index: int) -> Any:
        values = []
        for number, read in enumerate(self._readers):
            try:
                values.append(read(index))
            except ValueError as error:
                raise self.damaged(index, f"column {number} is damaged: {error}") from error
        if self._form == "dict":
            return dict(zip(self._keys, values))
        return tuple(values) if self._form == "tuple" else values

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.path,)


def _parse_header(header: np.ndarray) -> Tuple[int, str, Any, List[str]]:
    """Returns the length, the form, the keys of a dict, and the kinds of the columns."""
    fields: Any = json.loads(header.tobytes().decode("utf-8"))
    if not isinstance(fields, dict) or fields.get("format") != _FORMAT:
        raise ValueError("it is that of something else")
    version = fields.get("version")
    if version != _VERSION:
        raise ValueError(f"it is of version {version!r}, but this tensorpack reads {_VERSION}")
    return fields["length"], fields["form"], fields["keys"], fields["kinds"]


def _read_member(archive: zipfile.ZipFile, name: str, path: str) -> np.ndarray:
    """Returns the array of one member, read-only."""
    where = f"{path}: member {name}.npy"
    try:
        info = archive.getinfo(f"{name}.npy")
        where = f"{where} at byte {info.header_offset}"
        with archive.open(info) as member:
            array = np.lib.format.read_array(member, allow_pickle=False)
            member.read()  # up to its end, where the checksum is compared
    except MemoryError:
        raise
    except Exception as error:  # whatever damaged bytes lead `zipfile` and numpy to
        raise DamagedFile(f"{where} is damaged: {error}") from error
    array.setflags(write=False)
    return array


def _reader_of(kind: str, parts: List[np.ndarray]) -> Callable[[int], Any]:
    """Returns a function from index to component."""
    values = parts[0]
    if kind == "frames":
        return _frame_reader(values, parts[1])
    if kind == "array":
        return lambda index: values[index, ...]  # the dots keep a value without axes an array
    return values.__getitem__ if kind == "scalar" else values.item


def _frame_reader(frames: np.ndarray, offsets: np.ndarray) -> Callable[[int], Any]:
    ends: List[int] = offsets.tolist()

    def read(index: int) -> Any:
        return load_frame(frames[ends[index] : ends[index + 1]].tobytes())[0]

    return read


def _is_old(path: str) -> bool:
    """Returns whether tensorpack 0.x wrote a file: it has one array, of pickled objects."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist() == [f"{_OLD_MEMBER}.npy"]
    except Exception:  # whatever damaged bytes lead `zipfile` to
        return False


def _read_old(path: str, allow_pickle: bool) -> List[Any]:
    """Returns the datapoints of such a file."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = array_of_npy(archive.read(f"{_OLD_MEMBER}.npy"), True, allow_pickle)
        is_deep = any(isinstance(each, (list, tuple, np.ndarray)) for each in found.flat)
        if not found.dtype.hasobject or not found.ndim or (is_deep and found.ndim > 2):
            raise BadRecord(f"It has an array of {found.dtype}, not of datapoints.")
    except RefusedRecord as error:
        raise ValueError(f"{path}: {error}") from error
    except (BadRecord, LookupError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFile(f"{path} is damaged: {error}") from error
    rows = found.tolist()
    if found.ndim > 2:  # numpy took the components apart as well
        rows = [[np.array(component) for component in row] for row in rows]
    return rows
