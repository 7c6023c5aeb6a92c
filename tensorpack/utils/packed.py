"""Splits an object into a few bytes of structure and the arrays in it, and puts it together again.

Pipes, sockets, files and shared memory all carry objects in this form: what an array holds is
copied once, to where it is to be, and can be viewed there. The structure is msgpack with
extensions of our own, and reading it never runs code.

In memory an object looks so, from a multiple of 64 bytes on::

    structure | gap | array | gap | array | ...        each array at a multiple of 64 bytes

An extension for an array has the number of characters of its dtype (one byte), the number of its
dimensions (one byte), the dtype, the shape (eight bytes each), and then its bytes in C order if it
is small, or else its position behind the gap that follows the structure (eight bytes). Numbers are
little endian.
"""

import re
import struct
import sys
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ._packed_buffers import refuse_buffers
from .optional import require

__all__ = [
    "ALIGNMENT",
    "MAX_DIMENSIONS",
    "MAX_INLINE_BYTES",
    "MAX_TUPLES",
    "Packed",
    "Rows",
    "aligned",
    "pack",
    "unpack",
    "write",
]

ALIGNMENT = 64  # bytes; what TensorFlow takes over without a copy
MAX_DIMENSIONS = 32
MAX_TUPLES = 32  # one inside another

_INLINE, _PLACED, _SCALAR, _TUPLE = 1, 2, 3, 4
MAX_INLINE_BYTES = 512  # up to here an array is a part of the structure
_COUNTS = struct.Struct("<BB")
_NUMBER = struct.Struct("<Q")
# Numbers, truth values and text of a fixed width; no objects, records or dates.
# A width of zero has no limit to the number of elements.
_DTYPE = re.compile(r"[<>|](?:[biufc][0-9]{1,2}|[SU][1-9][0-9]{0,7})")
_WHAT_FITS = (
    "Only None, bool, int of 64 bits, float, str, bytes, numpy arrays and scalars, and lists, "
    "tuples and dicts of these can be."
)


class Rows:
    """An array whose rows lie apart until they are written; read, it is an array.

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
      nbytes: how much room all that needs.
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
      obj: None, booleans, integers of 64 bits, floats, text, bytes, numpy arrays and scalars, and
        lists, tuples and dicts of these, and `Rows`. Not of subclasses of the builtin types.

    Raises:
      ImportError: msgpack is not installed.
      TypeError: there is anything else in it, such as an array of objects; says where.
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
    """Puts an object together.

    Args:
      memory: uint8 `[nbytes]`. Large arrays of the object are views of it, read-only if it is.
      structure_nbytes: the length of its structure.
      start: where it begins.
      end: where it ends at the latest; the end of `memory` unless given.
      keep: called with each array that has elements; what it returns takes its place. For those
        who want copies.

    Raises:
      ImportError: msgpack is not installed.
      ValueError: the bytes are damaged, or not of an object. Arrays outside of the memory, or of
        dtypes with objects, are refused before they are made.
    """
    end = memory.nbytes if end is None else end
    if not 0 <= start <= start + structure_nbytes <= end <= memory.nbytes:
        raise ValueError(
            f"An object from {start} to {end}, with a structure of {structure_nbytes} bytes, does "
            f"not lie in {memory.nbytes} bytes."
        )
    unpacking = _Unpacking(memory, start + aligned(structure_nbytes), end, keep)
    return unpacking.object_of(memory[start : start + structure_nbytes])


class _Packing:
    """One object on its way to bytes."""

    def __init__(self) -> None:
        self.arrays: List[Union[np.ndarray, Rows]] = []
        self.nbytes = 0
        self._tuples = 0
        msgpack = require("msgpack")
        self._packb, self._ext_type = msgpack.packb, msgpack.ExtType

    def bytes_of(self, obj: Any) -> bytes:
        structure = self._packb(obj, default=self._encode, strict_types=True)
        refuse_buffers(obj, structure)
        return structure

    def _encode(self, obj: Any) -> Any:
        """What msgpack is to write for that which it does not know."""
        if isinstance(obj, (np.ndarray, Rows)) and not isinstance(obj, np.ma.MaskedArray):
            return self._array(obj)
        if isinstance(obj, np.generic):
            value = np.asarray(obj)
            return self._ext_type(_SCALAR, _header(value) + value.tobytes())
        if type(obj) is tuple:
            return self._ext_type(_TUPLE, self._inner(obj))
        raise _unfit(obj)

    def _array(self, array: Union[np.ndarray, Rows]) -> Any:
        header = _header(array)
        if array.nbytes <= MAX_INLINE_BYTES:
            return self._ext_type(_INLINE, header + array.tobytes())
        reference = self._ext_type(_PLACED, header + _NUMBER.pack(self.nbytes))
        self.arrays.append(array)
        self.nbytes += aligned(array.nbytes)
        return reference

    def _inner(self, obj: tuple) -> bytes:
        self._tuples += 1
        if self._tuples > MAX_TUPLES:
            raise ValueError(f"Tuples can be nested {MAX_TUPLES} deep, and here they are deeper.")
        inner = self._packb(list(obj), default=self._encode, strict_types=True)
        self._tuples -= 1
        return inner


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
            # Looked through first: a list gets as much room as it says that it needs, and msgpack
            # before 1.2 forgets to free what it had made when it finds an error.
            scan = self._msgpack.Unpacker(max_buffer_size=len(structure) or 1)
            scan.feed(structure)
            scan.skip()
            found = self._msgpack.unpackb(
                structure, ext_hook=self._decode, strict_map_key=False, timestamp=1
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
        """What an extension stands for; an error waits until msgpack has come to its end."""
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
            return self._inner(data)
        raise ValueError(f"unknown extension {code}")

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

    def _inner(self, data: bytes) -> tuple:
        self._tuples += 1
        if self._tuples > MAX_TUPLES:
            raise ValueError(f"tuples nested more than {MAX_TUPLES} deep")
        inner = self.object_of(data)
        self._tuples -= 1
        if not isinstance(inner, list):
            raise ValueError("a tuple of something else than a list")
        return tuple(inner)


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
    name = data[_COUNTS.size : begin].decode("ascii")
    if not _DTYPE.fullmatch(name):
        raise ValueError(f"an array of {name!r}")
    return np.dtype(name), struct.unpack_from(f"<{dimensions}Q", data, begin), end


def _sound(array: np.ndarray) -> np.ndarray:
    """Raises ValueError if there is a character in an array beyond the last one of Unicode."""
    if array.dtype.kind == "U" and array.size:
        codes = array.reshape(-1).view(np.dtype("u4").newbyteorder(array.dtype.byteorder))
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
    if isinstance(obj, (np.ndarray, Rows)) and not isinstance(obj, np.ma.MaskedArray):
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
