"""Splits an object into a small structure and its arrays, and joins them again.

Pipes, sockets, files, shared memory and saved states all use this one format: the bytes of an
array are copied once, to their destination, and can be viewed there. The structure is msgpack with
extensions of our own. Reading it never runs code, and takes time and memory in proportion to its
length.

An object in memory starts at a multiple of 64 bytes::

    structure | gap | array | gap | array | ...        each array at a multiple of 64 bytes

The extension of an array holds the number of characters of its dtype (one byte), the number of its
dimensions (one byte), the dtype, the shape (eight bytes each), and then either its bytes in C order
if it is small, or else its position after the gap that follows the structure (eight bytes). Numbers
are little endian. An array of records is the list of its fields, its shape, and its bytes as an
array.
"""

import re
import struct
import sys
from collections import Counter
from itertools import chain
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from .optional import require

__all__ = [
    "ALIGNMENT",
    "MAX_DIMENSIONS",
    "MAX_INLINE_BYTES",
    "MAX_INTEGER_BYTES",
    "MAX_TUPLES",
    "Packed",
    "Rows",
    "aligned",
    "dtype_of",
    "pack",
    "unpack",
    "write",
]

ALIGNMENT = 64  # bytes; TensorFlow takes over an array aligned so without a copy
MAX_DIMENSIONS = 32
MAX_INTEGER_BYTES = 1 << 12
MAX_TUPLES = 32  # nested in each other

# The codes of the extensions; 1 to 4 are in every file that this library has written.
_INLINE, _PLACED, _SCALAR, _TUPLE, _NP_STR, _NP_BYTES, _INTEGER, _RECORDS = range(1, 9)
MAX_INLINE_BYTES = 512  # arrays up to this size are a part of the structure
_COUNTS = struct.Struct("<BB")
_NUMBER = struct.Struct("<Q")
# Numbers, booleans, dates, and text of a fixed width: never an object, and nothing that numpy has
# not been seen to parse safely (it divides by the zero of `<M8[s/0]`). A width of zero is refused,
# as it would allow any number of elements.
_DTYPE = re.compile(
    r"[<>|](?:[biufc][0-9]{1,2}|[SU][1-9][0-9]{0,7}"
    r"|[mM]8(?:\[(?:[1-9][0-9]{0,8})?(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)"
)
_PADDING = re.compile(r"\|V[1-9][0-9]{0,7}")
_MAX_RECORDS = 8  # nested in each other
_MAX_EQUAL_HASHES = 100  # keys of one dict with the same hash; each costs time with all others
_MIN_HASHED_BYTES = 1 << 12  # a shorter structure cannot have keys enough to cost much
_MARKS = bytes([*range(0xC4, 0xCA), *range(0xD4, 0xD9)])  # where msgpack begins bytes or extensions
_BUFFERS = (bytearray, memoryview)
_WHAT_FITS = (
    f"Supported are None, bool, int of up to {MAX_INTEGER_BYTES} bytes, float, str, bytes, numpy "
    "arrays and scalars without objects, and lists, tuples and dicts of these."
)


class Rows:
    """An array whose rows are separate until they are written; it is read as one array.

    Args:
      arrays: at least one, all of the same shape.
      dtype: of the array; the rows are converted.
    """

    def __init__(self, arrays: Sequence[np.ndarray], dtype: np.dtype) -> None:
        self.arrays = list(arrays)
        self.dtype = np.dtype(dtype)
        self.shape = (len(self.arrays), *self.arrays[0].shape)
        self.ndim = len(self.shape)
        self.nbytes = _nbytes(self.dtype, self.shape)

    def fill(self, array: np.ndarray) -> None:
        """Writes the rows into an array of this shape and dtype."""
        for row, part in enumerate(self.arrays):
            array[row] = part

    def tobytes(self) -> bytes:
        """The array as bytes in C order."""
        array = np.empty(self.shape, self.dtype)
        self.fill(array)
        return array.tobytes()


class Packed(NamedTuple):
    """An object that is ready to be written.

    Attributes:
      structure: of the object, with references to its arrays.
      arrays: the large ones, in the order in which they are written.
      nbytes: of the object in memory.
    """

    structure: bytes
    arrays: List[Union[np.ndarray, Rows]]
    nbytes: int


def aligned(nbytes: int) -> int:
    """Returns the next multiple of 64."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def pack(obj: Any) -> Packed:
    """Splits an object; its arrays are not copied.

    Args:
      obj: None, booleans, integers, floats, text, bytes, msgpack's `Timestamp`, numpy arrays and
        scalars, and lists, tuples and dicts of these, and `Rows`. Subclasses, such as named tuples
        or `np.matrix`, are refused, as they would be read as another type.

    Raises:
      ImportError: msgpack is not installed.
      TypeError: it contains anything else, such as an array of objects; the message says where.
      ValueError: it is nested too deeply.
    """
    packing = _Packing()
    try:
        structure = packing.bytes_of(obj)
    except TypeError as error:
        where, first = _where_it_fails(obj, error)
        raise TypeError(f"{where + ': ' if where else ''}{first}") from first
    return Packed(structure, packing.arrays, aligned(len(structure)) + packing.nbytes)


def write(packed: Packed, memory: np.ndarray, start: int = 0) -> None:
    """Writes an object into memory.

    Args:
      packed: what `pack` returned.
      memory: uint8 `[nbytes]`, with at least `packed.nbytes` from `start` on.
      start: where to begin, a multiple of 64.
    """
    end = start + len(packed.structure)
    memory[start:end] = np.frombuffer(packed.structure, np.uint8)
    position = start + aligned(len(packed.structure))
    for array in packed.arrays:
        place: np.ndarray = np.ndarray(array.shape, array.dtype, memory, position)
        if isinstance(array, Rows):
            array.fill(place)
        else:
            np.copyto(place, array)
        position += aligned(array.nbytes)


def unpack(
    memory: np.ndarray,
    structure_nbytes: int,
    start: int = 0,
    end: Optional[int] = None,
    keep: Optional[Callable[[np.ndarray], np.ndarray]] = None,
) -> Any:
    """Returns an object that was written into memory.

    Args:
      memory: uint8 `[nbytes]`. Large arrays of the object are views of it, read-only if it is.
      structure_nbytes: the length of its structure.
      start: where it begins.
      end: where it ends at the latest; the end of `memory` unless given.
      keep: called with each array that has elements; its result replaces the array. Pass
        `np.copy` for copies.

    Raises:
      ImportError: msgpack is not installed.
      ValueError: the bytes are damaged, or not of an object. Arrays outside of the memory, or of
        dtypes with objects, are refused before they are made.
    """
    end = memory.nbytes if end is None else end
    if not 0 <= start <= start + structure_nbytes <= end <= memory.nbytes:
        raise ValueError(
            f"An object from {start} to {end}, with a structure of {structure_nbytes} bytes, does "
            f"not fit in {memory.nbytes} bytes."
        )
    unpacking = _Unpacking(memory, start + aligned(structure_nbytes), end, keep)
    return unpacking.object_of(memory[start : start + structure_nbytes])


class _Packing:
    """One object on its way to bytes."""

    def __init__(self) -> None:
        self.arrays: List[Union[np.ndarray, Rows]] = []
        self.nbytes = 0
        self._tuples = 0
        self._extensions = 0
        self._options: Dict[str, Any] = {"default": self._encode, "strict_types": True}
        msgpack = require("msgpack")
        self._packb, self._ext_type = msgpack.packb, msgpack.ExtType

    def bytes_of(self, obj: Any) -> bytes:
        try:
            structure = self._packb(obj, **self._options)
        except UnicodeEncodeError:  # half a surrogate pair; slower, so not for every text
            self.arrays, self.nbytes, self._tuples, self._extensions = [], 0, 0, 0
            self._options["unicode_errors"] = "surrogatepass"
            structure = self._packb(obj, **self._options)
        # msgpack itself packs buffers as bytes, and any ExtType as if it were one of ours. Nothing
        # of that kind is there if all marks in the structure are those of our extensions.
        if len(structure) - len(structure.translate(None, _MARKS)) != self._extensions:
            _refuse_lookalikes(obj, self._ext_type)
        return structure

    def _encode(self, obj: Any) -> Any:
        """Returns an extension for an object that msgpack does not know."""
        self._extensions += 1
        kind = type(obj)
        if kind in (np.ndarray, np.memmap) and obj.dtype.names is not None:
            return self._records(obj, False)
        if kind in (np.ndarray, np.memmap, Rows):
            return self._array(obj)
        if kind is tuple:
            return self._ext_type(_TUPLE, self._inner(list(obj)))
        if kind is np.str_:  # as an array of one it would lose zeros at its end
            return self._ext_type(_NP_STR, str.encode(obj, "utf-8", "surrogatepass"))
        if kind is np.bytes_:
            return self._ext_type(_NP_BYTES, bytes(obj))
        if kind is np.void and obj.dtype.names is not None:
            return self._records(np.asarray(obj), True)
        if isinstance(obj, np.generic) and kind is obj.dtype.type:
            value = np.asarray(obj)
            return self._ext_type(_SCALAR, _header(value) + value.tobytes())
        if kind is int and obj.bit_length() < 8 * MAX_INTEGER_BYTES:
            size = obj.bit_length() // 8 + 1
            return self._ext_type(_INTEGER, obj.to_bytes(size, "little", signed=True))
        raise _unfit(obj)

    def _array(self, array: Union[np.ndarray, Rows]) -> Any:
        header = _header(array)
        if array.nbytes <= MAX_INLINE_BYTES:
            return self._ext_type(_INLINE, header + array.tobytes())
        reference = self._ext_type(_PLACED, header + _NUMBER.pack(self.nbytes))
        self.arrays.append(array)
        self.nbytes += aligned(array.nbytes)
        return reference

    def _records(self, array: np.ndarray, is_scalar: bool) -> Any:
        try:
            fields: Any = np.lib.format.dtype_to_descr(array.dtype)
            plain = array.dtype.type is np.void and _record_dtype(fields) == array.dtype
        except (TypeError, ValueError):
            plain = False
        if not plain:
            raise _unfit(array)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return self._ext_type(_RECORDS, self._inner([fields, list(array.shape), is_scalar, data]))

    def _inner(self, items: List[Any]) -> bytes:
        self._tuples += 1
        if self._tuples > MAX_TUPLES:
            raise ValueError(f"Tuples nest at most {MAX_TUPLES} deep.")
        inner = self._packb(items, **self._options)
        self._tuples -= 1
        return inner


def _refuse_lookalikes(obj: Any, ext_type: type) -> None:
    """Raises TypeError if an object contains what msgpack would pack as something else."""
    containers = (list, tuple, dict)
    examined = frozenset([*_BUFFERS, *containers, ext_type])
    parts = [obj]
    while not examined.isdisjoint(map(type, parts)):
        # All parts of one depth together: a call for each takes longer than packing.
        held = [part for part in parts if type(part) in examined]
        for part in held:
            if type(part) not in containers:
                raise TypeError(
                    f"a {type(part).__name__} cannot be sent or stored, because it would be read "
                    "as another type. Make it bytes(...), or an array with np.asarray(...)."
                )
        parts = [*chain.from_iterable(held)]
        parts += chain.from_iterable(part.values() for part in held if type(part) is dict)


class _Unpacking:
    """One object on its way from bytes.

    Args:
      memory: as in `unpack`.
      area: where its arrays begin.
      end: where they end at the latest.
      keep: as in `unpack`.
    """

    def __init__(
        self,
        memory: np.ndarray,
        area: int,
        end: int,
        keep: Optional[Callable[[np.ndarray], np.ndarray]],
    ) -> None:
        self._memory, self._area, self._end, self._keep = memory, area, end, keep
        self._tuples = 0
        self._error: Optional[Exception] = None
        self._msgpack = require("msgpack")

    def object_of(self, structure: Any) -> Any:
        try:
            # Scanned first: a list is given as much memory as it asks for, and msgpack before 1.2
            # does not free what it has made when it finds an error.
            scan = self._msgpack.Unpacker(max_buffer_size=len(structure) or 1)
            scan.feed(structure)
            scan.skip()
            found = self._msgpack.unpackb(
                structure,
                ext_hook=self._decode,
                object_pairs_hook=_dict_of if len(structure) >= _MIN_HASHED_BYTES else None,
                strict_map_key=False,
                unicode_errors="surrogatepass",
            )
        except (ValueError, TypeError, RecursionError, self._msgpack.UnpackException) as error:
            raise ValueError(
                f"These are not the bytes of one object: {str(error) or type(error).__name__}"
            ) from error
        if self._error is not None:
            raise ValueError(
                f"These are not the bytes of one object: {self._error}"
            ) from self._error
        return found

    def _decode(self, code: int, data: bytes) -> Any:
        """Returns the object of an extension; an error is kept until msgpack has finished."""
        if self._error is not None:
            return None
        try:
            return self._decoded(code, data)
        except (OverflowError, TypeError, ValueError) as error:
            self._error = error
            return None

    def _decoded(self, code: int, data: bytes) -> Any:
        if code == _PLACED:
            return self._placed(data)
        if code in (_INLINE, _SCALAR):
            dtype, shape, at = _read_header(data)
            if _nbytes(dtype, shape) != len(data) - at:
                raise ValueError(f"{len(data) - at} bytes for an array of {dtype} {shape}")
            # Not by np.empty: numpy before 1.20 gives (1 << 40, 0) the memory of (1 << 40, 1).
            array = _sound(np.ndarray(shape, dtype, data, at))
            if code == _SCALAR:
                return array[()]
            return array if self._keep is None or not array.size else self._keep(array)
        if code == _TUPLE:
            return tuple(self._inner(data))
        if code == _NP_STR:
            return np.str_(data.decode("utf-8", "surrogatepass"))
        if code == _NP_BYTES:
            return np.bytes_(data)
        if code == _INTEGER and len(data) <= MAX_INTEGER_BYTES:
            return int.from_bytes(data, "little", signed=True)
        if code == _RECORDS:
            return self._records(*self._inner(data))
        raise ValueError(f"unknown extension {code}")

    @staticmethod
    def _records(fields: Any, shape: List[int], is_scalar: bool, data: np.ndarray) -> Any:
        dtype = _record_dtype(fields)
        if type(data) is not np.ndarray or data.dtype != np.uint8:
            raise ValueError("records without their bytes")
        records = _sound(data.reshape(-1).view(dtype).reshape(shape))
        return records[()] if is_scalar else records

    def _placed(self, data: bytes) -> np.ndarray:
        dtype, shape, at = _read_header(data)
        if len(data) != at + _NUMBER.size:
            raise ValueError("an array without a position")
        position = self._area + _NUMBER.unpack_from(data, at)[0]
        nbytes = _nbytes(dtype, shape)
        if not nbytes or position % ALIGNMENT or position + nbytes > self._end:
            raise ValueError(f"an array of {dtype} {shape} at {position} of {self._end} bytes")
        array = _sound(np.ndarray(shape, dtype, self._memory, position))
        return array if self._keep is None else self._keep(array)

    def _inner(self, data: bytes) -> List[Any]:
        self._tuples += 1
        if self._tuples > MAX_TUPLES:
            raise ValueError(f"tuples nested more than {MAX_TUPLES} deep")
        inner = self.object_of(data)
        self._tuples -= 1
        if not isinstance(inner, list):
            raise ValueError("an extension that holds no list")
        return inner


def _dict_of(pairs: List[Tuple[Any, Any]]) -> Dict[Any, Any]:
    if len(pairs) > _MAX_EQUAL_HASHES:
        if max(Counter(hash(key) for key, _ in pairs).values()) > _MAX_EQUAL_HASHES:
            raise ValueError("a dict with keys that were made to have the same hash")
    return dict(pairs)


def dtype_of(name: Any) -> np.dtype:
    """Returns the dtype of a name such as `<f4`, without showing numpy any other text.

    Raises:
      ValueError: it is not a number, boolean, date, or text of a fixed width.
    """
    if type(name) is not str or not _DTYPE.fullmatch(name):
        raise ValueError(f"{str(name)[:100]!r} is not the dtype of plain values")
    try:
        return np.dtype(name)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _record_dtype(fields: Any) -> np.dtype:
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


def _header(array: Union[np.ndarray, Rows]) -> bytes:
    name = array.dtype.str
    if not _DTYPE.fullmatch(name) or array.ndim > MAX_DIMENSIONS:
        raise _unfit(array)
    counts = _COUNTS.pack(len(name), array.ndim)
    return counts + name.encode("ascii") + struct.pack(f"<{array.ndim}Q", *array.shape)


def _read_header(data: bytes) -> Tuple[np.dtype, Tuple[int, ...], int]:
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


def _sound(array: np.ndarray) -> np.ndarray:
    """Raises ValueError if an array contains a character beyond the last one of Unicode."""
    for name in array.dtype.names or ():
        _sound(array[name])
    if array.dtype.kind == "U" and array.size:
        flat = np.ascontiguousarray(array).reshape(-1)
        codes = flat.view(np.dtype("u4").newbyteorder(array.dtype.byteorder))
        if codes.max() > sys.maxunicode:
            raise ValueError("an array of text with characters that do not exist")
    return array


def _nbytes(dtype: np.dtype, shape: Tuple[int, ...]) -> int:
    count = dtype.itemsize
    for size in shape:
        count *= size
    return count


def _unfit(obj: Any) -> TypeError:
    what = f"a {type(obj).__name__}"
    if type(obj) in (np.ndarray, np.memmap, Rows):
        what = f"an array of {obj.dtype} with {obj.ndim} dimensions"
    if type(obj) is int:
        what = f"an integer of {obj.bit_length()} bits"
    return TypeError(f"{what} cannot be sent or stored. {_WHAT_FITS}")


def _where_it_fails(obj: Any, error: TypeError) -> Tuple[str, TypeError]:
    """The first part of an object that cannot be packed: its path, such as `[1]['boxes']`, and why.

    Args:
      obj: the object.
      error: why the object cannot be packed; perhaps for a later part.
    """
    parts: Any = []
    if isinstance(obj, dict):
        parts = obj.items()
    elif isinstance(obj, (list, tuple)):
        parts = enumerate(obj)
    for key, part in parts:
        try:
            _Packing().bytes_of(part)
        except TypeError as found:
            where, first = _where_it_fails(part, found)
            return f"[{key!r}]{where}", first
    return "", error
