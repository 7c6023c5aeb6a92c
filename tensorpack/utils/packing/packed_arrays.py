"""Arrays in packed objects: their dtypes and shapes written, read and checked; their memory.

Numpy never sees a dtype that was read from elsewhere before it is known to be harmless.
"""

import re
import struct
from typing import Any, List, Sequence, Tuple, Union

import numpy as np

ALIGNMENT = 64  # bytes; TensorFlow takes over an array aligned so without a copy
MAX_DIMENSIONS = 32
_COUNTS = struct.Struct("<BB")
# Numbers, booleans, dates, and text of a fixed width: never an object, and nothing that numpy has
# not been seen to parse safely (it divides by the zero of `<M8[s/0]`). A width of zero is refused,
# as it would allow any number of elements.
_DTYPE = re.compile(
    r"[<>|](?:[biufc][0-9]{1,2}|[SU][1-9][0-9]{0,7}"
    r"|[mM]8(?:\[(?:[1-9][0-9]{0,8})?(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)"
)
_PADDING = re.compile(r"\|V[1-9][0-9]{0,7}")
_MAX_RECORDS = 8  # nested in each other
MAX_INTEGER_BYTES = 1 << 12
_WHAT_FITS = (
    f"Supported are None, bool, int of up to {MAX_INTEGER_BYTES} bytes, float, str, bytes, numpy "
    "arrays and scalars without objects, and lists, tuples and dicts of these."
)


class Rows:
    """An array whose rows are separate until they are written; it is read as one array.

    There is at least one row. All have the same shape, and are converted to `dtype`.
    """

    def __init__(self, arrays: Sequence[np.ndarray], dtype: np.dtype) -> None:
        self.arrays = list(arrays)
        self.dtype = np.dtype(dtype)
        self.shape = (len(self.arrays), *self.arrays[0].shape)
        self.ndim = len(self.shape)
        self.nbytes = nbytes_of(self.dtype, self.shape)

    def fill(self, array: np.ndarray) -> None:
        """Writes the rows into an array of this shape and dtype."""
        for row, part in enumerate(self.arrays):
            array[row] = part

    def array(self) -> np.ndarray:
        """The rows as a new array in C order."""
        array: np.ndarray = np.empty(self.shape, self.dtype)
        self.fill(array)
        return array


def aligned_empty(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Returns an uninitialized array, not of objects, that begins at a multiple of 64 bytes.

    The memory that `malloc` returns for large arrays never does.
    """
    dtype = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + nbytes].view(dtype).reshape(shape)


def stays_as_it_is(array: np.ndarray) -> bool:
    """Returns whether an array is read-only, as is everything that it is a view of."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        if memory.flags.writeable:
            return False
        memory = memory.base
    if isinstance(memory, memoryview):
        return memory.readonly
    return memory is None or isinstance(memory, bytes)


def dtype_of(name: Any) -> np.dtype:
    """Returns the dtype of a name such as `<f4`, without showing numpy any other text.

    Raises ValueError unless it is of numbers, booleans, dates, or text of a fixed width.
    """
    if type(name) is not str or not _DTYPE.fullmatch(name):
        raise ValueError(f"{str(name)[:100]!r} is not the dtype of plain values")
    try:
        return np.dtype(name)
    except TypeError as error:
        raise ValueError(str(error)) from error


def record_dtype(fields: Any) -> np.dtype:
    """Returns the dtype that numpy describes by these fields: lists or tuples of a name, the dtype
    or the fields of the dtype, and perhaps a shape.
    """
    dtype: np.dtype = np.lib.format.descr_to_dtype(_checked_fields(fields, _MAX_RECORDS))
    if not dtype.itemsize:
        raise ValueError("records without bytes")
    return dtype


def _checked_fields(fields: Any, depth: int) -> List[Any]:
    if type(fields) is not list or not fields or not depth:
        raise ValueError("an array of records without fields, or nested too deeply")
    checked = []
    for name, kind, *shape in fields:
        if type(name) is not str or len(shape) > 1:
            raise ValueError(f"a field named {name!r}")
        if type(kind) is list:
            kind = _checked_fields(kind, depth - 1)
        elif name or type(kind) is not str or not _PADDING.fullmatch(kind):
            dtype_of(kind)
        checked.append((name, kind, *[tuple(map(int, sizes)) for sizes in shape]))
    return checked


def header_of(array: Union[np.ndarray, Rows]) -> bytes:
    """Returns dtype and shape as bytes; raises TypeError if the array cannot be packed."""
    name = array.dtype.str
    if not _DTYPE.fullmatch(name) or array.ndim > MAX_DIMENSIONS:
        raise unfit(array)
    counts = _COUNTS.pack(len(name), array.ndim)
    return counts + name.encode("ascii") + struct.pack(f"<{array.ndim}Q", *array.shape)


def read_header(data: bytes) -> Tuple[np.dtype, Tuple[int, ...], int]:
    """Returns the dtype, the shape, and the length of the header."""
    if len(data) < _COUNTS.size:
        raise ValueError("an array without a header")
    characters, dimensions = _COUNTS.unpack_from(data)
    begin = _COUNTS.size + characters
    end = begin + 8 * dimensions
    if dimensions > MAX_DIMENSIONS or len(data) < end:
        raise ValueError(f"an array of {dimensions} dimensions, in {len(data)} bytes")
    dtype = dtype_of(data[_COUNTS.size : begin].decode("ascii"))
    return dtype, struct.unpack_from(f"<{dimensions}Q", data, begin), end


def nbytes_of(dtype: np.dtype, shape: Tuple[int, ...]) -> int:
    """Returns the size of an array in bytes, as a Python integer."""
    count = dtype.itemsize
    for size in shape:
        count *= size
    return count


def unfit(obj: Any) -> TypeError:
    """Returns the error for an object that cannot be packed."""
    what = f"a {type(obj).__name__}"
    if type(obj) in (np.ndarray, np.memmap, Rows):
        what = f"an array of {obj.dtype} with {obj.ndim} dimensions"
    if type(obj) is int:
        what = f"an integer of {obj.bit_length()} bits"
    return TypeError(f"{what} cannot be sent or stored. {_WHAT_FITS}")
