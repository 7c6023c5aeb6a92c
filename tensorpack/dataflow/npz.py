"""Datapoints in one `.npz` file, which numpy reads as well: an array for each component.

A file of this kind is a zip archive of `.npy` members, not compressed. `header` has the version
and the form of the datapoints, as JSON in an array of bytes; the others are the columns, see
`_npz_columns.py`. There are no objects in them, so reading runs no code; and the archive has a
checksum of every member, which is compared whenever one is read.
"""

import json
import os
import zipfile
from typing import Any, BinaryIO, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from tensorpack.utils import get_tqdm

from ._files import DamagedFile, PathLike, input_path, open_new
from ._length import length_or_none
from ._npz_columns import Column, column_of, parts_of_kind, reader_of
from .base import DataFlow
from .raw import DataFromList

__all__ = ["NumpySerializer"]

_FORMAT = "tensorpack datapoints"
_VERSION = 1
_HEADER = "header"
_MAX_HEADER = 1 << 24  # bytes
_FORMS = {"list": list, "tuple": tuple, "dict": dict}


class NumpySerializer:
    """Writes the datapoints of a flow to an `.npz` file, and makes a flow of such a file.

    All datapoints are of one form: lists, tuples or dicts, of the same number or names of
    components. A component whose arrays have one dtype and one shape is one array in the file.
    """

    @staticmethod
    def save(df: DataFlow, path: PathLike) -> None:
        """Writes one pass of a flow, with a progress bar.

        The pass is kept in memory, twice, for the shapes come before the data in the file. The
        file appears under its name when it is complete and on the disk.

        Args:
          df: the flow; its state is reset first. The pass must have an end.
          path: of the new file; nothing is added to the name.

        Raises:
          FileExistsError: there is a file of this name.
          TypeError: a datapoint is not a list, tuple or dict with names of text, or a component
            cannot be encoded.
          ValueError: the datapoints differ in form, a component is too large, or there are no
            datapoints.
        """
        df.reset_state()
        with open_new(path) as file:
            with get_tqdm(df, total=length_or_none(df), desc=os.path.basename(path)) as bar:
                form, components = _gather(bar)
            if form is None:
                raise ValueError("The flow has no datapoints: nothing to write.")
            _write(file, form, components)

    @staticmethod
    def load(path: PathLike, shuffle: bool = True) -> DataFromList:
        """Returns a flow over the datapoints of a file, which is read into memory here.

        Its arrays are read-only, for all passes share them: copy what you want to change. Sent to
        another process by pickle, the flow reads the file again there.

        Args:
          path: of a file that `save` wrote.
          shuffle: whether each pass has its own order.

        Raises:
          FileNotFoundError: there is no such file.
          ValueError: it is damaged, or something else.
        """
        return DataFromList(_Datapoints(input_path(path)), shuffle)


class _Form(NamedTuple):
    """What datapoints look like: "list", "tuple" or "dict", and the keys of a dict, in order."""

    kind: str
    width: int
    keys: Optional[List[str]]


def _form_of(datapoint: Any, index: int) -> _Form:
    for kind, cls in _FORMS.items():
        if type(datapoint) is cls:  # a namedtuple would come back as a tuple
            keys = list(datapoint) if kind == "dict" else None
            if keys is not None and not all(type(key) is str for key in keys):
                raise TypeError(f"Datapoint {index} has keys that are not text: {keys}.")
            return _Form(kind, len(datapoint), keys)
    raise TypeError(
        f"Datapoint {index} is a {type(datapoint).__name__}, but needs to be a list, tuple or "
        "dict, and not of a subclass. Make one of it by MapData."
    )


def _gather(datapoints: Any) -> Tuple[Optional[_Form], List[List[Any]]]:
    """Returns the form of all datapoints (None without any), and the values of each component."""
    form: Optional[_Form] = None
    components: List[List[Any]] = []
    for index, datapoint in enumerate(datapoints):
        found = _form_of(datapoint, index)
        if form is None:
            form = found
            components = [[] for _ in range(form.width)]
        same = found if found.keys is None or form.keys is None else found._replace(keys=form.keys)
        if same != form or set(found.keys or []) != set(form.keys or []):
            raise ValueError(
                f"Datapoint {index} has another form than those before it: {_described(found)} "
                f"and {_described(form)}. All datapoints of a file have one form."
            )
        for values, key in zip(components, form.keys or range(form.width)):
            values.append(datapoint[key])
    return form, components


def _described(form: _Form) -> str:
    return f"a {form.kind} of {form.width if form.keys is None else form.keys}"


def _write(file: BinaryIO, form: _Form, components: List[List[Any]]) -> None:
    length = len(components[0]) if components else 0
    if not components:
        raise ValueError("The datapoints have no components: nothing to write.")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        kinds = []
        for number, values in enumerate(components):
            try:
                kind, parts = column_of(values)
            except (TypeError, ValueError) as error:
                name = number if form.keys is None else form.keys[number]
                raise type(error)(f"Component {name!r} of {error}") from error
            kinds.append(kind)
            for part, array in parts.items():
                _write_member(archive, f"{part}_{number}", array)
        header = {"format": _FORMAT, "version": _VERSION, "length": length, "kinds": kinds}
        header.update(form=form.kind, keys=form.keys)
        text = json.dumps(header).encode("utf-8")
        _write_member(archive, _HEADER, np.frombuffer(text, np.uint8))


def _write_member(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    # Made like this, the member has no date in it: equal data are equal bytes.
    member = zipfile.ZipInfo(f"{name}.npy")
    with archive.open(member, "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)


class _Datapoints:
    """The datapoints of a file, by index; a pickle of it is the path."""

    def __init__(self, path: str) -> None:
        self._path = path
        with open(path, "rb") as file:
            self._form, self._length, columns = _read(file, path)
        self._readers: List[Callable[[int], Any]] = []
        for number, column in enumerate(columns):
            try:
                self._readers.append(reader_of(column, self._length))
            except ValueError as error:
                raise DamagedFile(f"{path}: column {number} is damaged: {error}.") from error

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        values = []
        for number, read in enumerate(self._readers):
            try:
                values.append(read(index))
            except ValueError as error:
                raise DamagedFile(
                    f"{self._path}: datapoint {index} of column {number} is damaged: {error}"
                ) from error
        if self._form.keys is not None:
            return dict(zip(self._form.keys, values))
        return tuple(values) if self._form.kind == "tuple" else values

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self._path,)


def _read(file: BinaryIO, path: str) -> Tuple[_Form, int, List[Column]]:
    size = os.fstat(file.fileno()).st_size
    try:
        archive = zipfile.ZipFile(file)
    except Exception as error:  # whatever damaged bytes lead `zipfile` to
        raise DamagedFile(f"{path} is not a whole .npz file ({size} bytes): {error}.") from error
    with archive:
        if f"{_HEADER}.npy" not in archive.namelist():
            raise DamagedFile(
                f"{path} was not written by NumpySerializer: it has no member {_HEADER!r}. Files "
                "of tensorpack 0.x hold pickled objects, which are not read: write them again."
            )
        header = _read_member(archive, _HEADER, path, size)
        try:
            form, length, kinds = _parse_header(header)
            names = [parts_of_kind(kind) for kind in kinds]
        except (ValueError, RecursionError) as error:
            raise DamagedFile(f"{path} has a wrong header: {error}.") from error
        columns = []
        with get_tqdm(total=len(kinds), desc=os.path.basename(path), unit="column") as bar:
            for number, kind in enumerate(kinds):
                parts = {
                    part: _read_member(archive, f"{part}_{number}", path, size)
                    for part in names[number]
                }
                columns.append(Column(kind, parts))
                bar.update()
    return form, length, columns


def _parse_header(header: np.ndarray) -> Tuple[_Form, int, List[Any]]:
    if header.dtype != np.uint8 or header.ndim != 1 or len(header) > _MAX_HEADER:
        raise ValueError(f"it is {header.dtype} {header.shape} instead of some bytes")
    fields: Dict[str, Any] = json.loads(header.tobytes().decode("utf-8"))
    if not isinstance(fields, dict) or fields.get("format") != _FORMAT:
        raise ValueError("it is that of something else")
    if fields.get("version") != _VERSION:
        raise ValueError(
            f"it is of version {fields.get('version')!r}, but this tensorpack reads {_VERSION}"
        )
    kinds, length = fields.get("kinds"), fields.get("length")
    form, keys = fields.get("form"), fields.get("keys")
    if not isinstance(kinds, list) or not kinds or type(length) is not int or length < 1:
        raise ValueError("it has no columns, or no length")
    if form not in tuple(_FORMS) or (form == "dict") != (keys is not None):
        raise ValueError(f"it is of unknown form {form!r}")
    if keys is not None and not (
        isinstance(keys, list)
        and all(type(key) is str for key in keys)
        and len(set(keys)) == len(keys) == len(kinds)
    ):
        raise ValueError(f"it has wrong keys {keys!r}")
    return _Form(form, len(kinds), keys), length, kinds


def _read_member(archive: zipfile.ZipFile, name: str, path: str, size: int) -> np.ndarray:
    """Returns the array of one member, read-only."""
    where = f"{path}: member {name}.npy"
    try:
        info = archive.getinfo(f"{name}.npy")
        where = f"{where} at byte {info.header_offset}"
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError("it is compressed, which NumpySerializer never does")
        # A size that is made up must not have memory set aside for it.
        if max(info.file_size, info.compress_size) > size:
            raise ValueError(f"it has {info.file_size} bytes, but the file only {size}")
        with archive.open(info) as member:
            return _read_array(member, info.file_size)
    except MemoryError:
        raise
    except Exception as error:  # whatever damaged bytes lead `zipfile` and numpy to
        raise DamagedFile(f"{where} is damaged: {error}") from error


def _read_array(member: Any, size: int) -> np.ndarray:
    version = np.lib.format.read_magic(member)
    if version != (1, 0):
        raise ValueError(f"it is an array of version {version}")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(member)
    count = 1
    for length in shape:
        count *= length
    if fortran_order or dtype.hasobject or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise ValueError(f"it is an array of {dtype} {shape}, which NumpySerializer never writes")
    if count * dtype.itemsize > size:
        raise ValueError(f"it has {size} bytes, too few for {dtype} {shape}")
    # Read to the end, where the checksum is compared.
    data = member.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize or member.read(1):
        raise ValueError(f"its bytes are not those of {dtype} {shape}")
    if not data:
        empty = np.empty(shape, dtype)
        empty.setflags(write=False)
        return empty
    return np.frombuffer(data, dtype).reshape(shape)
