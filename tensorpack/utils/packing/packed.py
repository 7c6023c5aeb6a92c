"""Splits an object into a small structure and its arrays, and joins them again.

Pipes, sockets, files, shared memory and saved states all use this one format: the bytes of an
array are copied once, to their destination, and can be viewed there. The structure is msgpack with
extensions of our own. Reading it never runs code. Only between processes of one program, what it
cannot hold is pickled.

An object in memory starts at a multiple of 64 bytes::

    structure | gap | array | gap | array | ...        each array at a multiple of 64 bytes

The extension of an array holds the number of characters of its dtype (one byte), the number of its
dimensions (one byte), the dtype, the shape (eight bytes each), and then either its bytes in C order
if it is small, or else its position after the gap that follows the structure (eight bytes). Numbers
are little endian. An array of records is the list of its fields, its shape, and its bytes as an
array.
"""

import pickle
import pickletools
import struct
from itertools import chain
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from ..optional import msgpack_codec, require
from .packed_arrays import (
    ALIGNMENT,
    MAX_INTEGER_BYTES,
    Rows,
    header_of,
    nbytes_of,
    read_header,
    record_dtype,
    unfit,
)

MAX_TUPLES = 32  # nested in each other

# The codes of the extensions; 1 to 4 are in every file that this library has written.
_INLINE, _PLACED, _SCALAR, _TUPLE, _NP_STR, _NP_BYTES, _INTEGER, _RECORDS, _PICKLED = range(1, 10)
MAX_INLINE_BYTES = 512  # arrays up to this size are a part of the structure
_NUMBER = struct.Struct("<Q")
_MARKS = bytes([*range(0xC4, 0xCA), *range(0xD4, 0xD9)])  # where msgpack begins bytes or extensions
_MAX_SCANNED_BYTES = 1 << 12  # long strings of bytes hold marks by chance
_DAMAGE = (OverflowError, TypeError, ValueError)  # what damaged bytes raise


Keep = Optional[Callable[[np.ndarray], np.ndarray]]  # see `unpack`


class Packed(NamedTuple):
    """An object that is ready to be written."""

    structure: bytes  # with references to its arrays
    arrays: List[Union[np.ndarray, Rows]]  # the large ones, in the order in which they are written
    nbytes: int  # of the object in memory


def aligned(nbytes: int) -> int:
    """Returns the next multiple of 64."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def pack(obj: Any, pickles: bool = False) -> Packed:
    """Splits an object; its arrays are not copied.

    Args:
      obj: None, booleans, integers, floats, text, bytes, msgpack's `Timestamp`, numpy arrays and
        scalars, and lists, tuples and dicts of these, and `Rows`. Subclasses, such as named tuples
        or `np.matrix`, are refused, as they would be read as another type.
      pickles: whether anything else in it is pickled: only for processes of one program.

    Raises:
      TypeError: it contains anything else, such as an array of objects, or what cannot be pickled;
        the message says where.
      ValueError: it is nested too deeply.
    """
    packing = _Packing(pickles)
    try:
        structure = packing.bytes_of(obj)
    except TypeError as error:
        where, first = _where_it_fails(obj, error, pickles)
        raise TypeError(f"{where + ': ' if where else ''}{first}") from first
    return Packed(structure, packing.arrays, aligned(len(structure)) + packing.nbytes)


def write(packed: Packed, memory: np.ndarray, start: int = 0) -> None:
    """Writes an object into memory, uint8 `[nbytes]`, from `start` on, a multiple of 64."""
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
    keep: Keep = None,
    pickles: bool = False,
) -> Any:
    """Returns an object that was written into memory.

    Args:
      memory: uint8 `[nbytes]`. Large arrays of the object are views of it, read-only if it is.
      structure_nbytes: the length of its structure.
      start, end: where it begins, and where it ends at the latest: at the end of `memory` if None.
      keep: called with each array that has elements; its result replaces the array. Pass
        `np.copy` for copies.
      pickles: whether to unpickle what `pack` has pickled, which can run any code.

    Raises:
      ValueError: the bytes are damaged, or not of an object. Arrays outside of the memory, or of
        dtypes with objects, are refused before they are made.
    """
    end = memory.nbytes if end is None else end
    if not 0 <= start <= start + structure_nbytes <= end <= memory.nbytes:
        raise ValueError(
            f"An object from {start} to {end}, with a structure of {structure_nbytes} bytes, does "
            f"not fit in {memory.nbytes} bytes."
        )
    unpacking = _Unpacking(memory, start + aligned(structure_nbytes), end, keep, pickles)
    return unpacking.object_of(memory[start : start + structure_nbytes])


class _Packing:
    """One object on its way to bytes."""

    def __init__(self, pickles: bool) -> None:
        self._pickles = pickles
        self.arrays: List[Union[np.ndarray, Rows]] = []
        self.nbytes = 0
        self._tuples = 0
        self._extensions = 0
        self._unicode_errors = "strict"
        self._packer, self._ext_type = msgpack_codec().Packer, require("msgpack").ExtType

    def bytes_of(self, obj: Any) -> bytes:
        try:
            return self._bytes_of(obj)
        except (TypeError, ValueError):  # what msgpack would change, or is nested too deeply
            if not self._pickles:
                raise
        self.arrays, self.nbytes = [], 0
        return self._packb(self._pickled(obj))

    def _bytes_of(self, obj: Any) -> bytes:
        try:
            structure = self._packb(obj)
        except UnicodeEncodeError:  # half a surrogate pair; slower, so not for every text
            self.arrays, self.nbytes, self._tuples, self._extensions = [], 0, 0, 0
            self._unicode_errors = "surrogatepass"
            structure = self._packb(obj)
        # msgpack itself packs buffers as bytes, and any ExtType as if it were one of ours. Nothing
        # of that kind is there if all marks in the structure are those of our extensions.
        if (
            len(structure) > _MAX_SCANNED_BYTES
            or len(structure) - len(structure.translate(None, _MARKS)) != self._extensions
        ):
            _refuse_lookalikes(obj, self._ext_type)
        return structure

    def _packb(self, obj: Any) -> bytes:
        # The bound method is not kept: the cycle would keep the arrays until they are collected.
        packer = self._packer(
            default=self._encode, strict_types=True, unicode_errors=self._unicode_errors
        )
        return packer.pack(obj)

    def _encode(self, obj: Any) -> Any:
        """Returns an extension for an object that msgpack does not know."""
        self._extensions += 1
        try:
            return self._encoded(obj)
        except TypeError:
            if not self._pickles:
                raise
        return self._pickled(obj)

    def _pickled(self, obj: Any) -> Any:
        try:
            return self._ext_type(_PICKLED, pickle.dumps(obj, pickle.HIGHEST_PROTOCOL))
        except Exception as error:
            what = f"a {type(obj).__name__} cannot be pickled"
            raise TypeError(f"{what}: {error} ({type(error).__name__})") from error

    def _encoded(self, obj: Any) -> Any:
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
            return self._ext_type(_SCALAR, header_of(value) + value.tobytes())
        if kind is int and obj.bit_length() < 8 * MAX_INTEGER_BYTES:
            size = obj.bit_length() // 8 + 1
            return self._ext_type(_INTEGER, obj.to_bytes(size, "little", signed=True))
        raise unfit(obj)

    def _array(self, array: Union[np.ndarray, Rows]) -> Any:
        header = header_of(array)
        if array.nbytes <= MAX_INLINE_BYTES:
            whole = array.array() if isinstance(array, Rows) else array
            return self._ext_type(_INLINE, header + whole.tobytes())
        reference = self._ext_type(_PLACED, header + _NUMBER.pack(self.nbytes))
        self.arrays.append(array)
        self.nbytes += aligned(array.nbytes)
        return reference

    def _records(self, array: np.ndarray, is_scalar: bool) -> Any:
        try:
            fields: Any = np.lib.format.dtype_to_descr(array.dtype)
            plain = array.dtype.type is np.void and record_dtype(fields) == array.dtype
        except (TypeError, ValueError):
            plain = False
        if not plain:
            raise unfit(array)
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return self._ext_type(_RECORDS, self._inner([fields, list(array.shape), is_scalar, data]))

    def _inner(self, items: List[Any]) -> bytes:
        self._tuples += 1
        if self._tuples > MAX_TUPLES:
            raise ValueError(f"Tuples nest at most {MAX_TUPLES} deep.")
        inner = self._packb(items)
        self._tuples -= 1
        return inner


def _refuse_lookalikes(obj: Any, ext_type: type) -> None:
    """Raises TypeError if an object contains what msgpack would pack as something else."""
    containers = (list, tuple, dict)
    examined = frozenset([bytearray, memoryview, *containers, ext_type])
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
    """One object on its way from bytes; its arrays lie between `area` and `end`."""

    def __init__(self, memory: np.ndarray, area: int, end: int, keep: Keep, pickles: bool) -> None:
        self._memory, self._area, self._end, self._keep = memory, area, end, keep
        self._pickles = pickles
        self._tuples = 0
        self._error: Optional[Exception] = None

    def object_of(self, structure: Any) -> Any:
        try:
            found = msgpack_codec().unpackb(
                structure,
                ext_hook=self._decode,
                strict_map_key=False,
                unicode_errors="surrogatepass",
            )
            if self._error is not None:
                raise self._error
            return found
        except (*_DAMAGE, RecursionError, require("msgpack").UnpackException) as error:
            raise ValueError(
                f"These are not the bytes of one object: {str(error) or type(error).__name__}"
            ) from error

    def _decode(self, code: int, data: bytes) -> Any:
        """Returns the object of an extension; an error is kept until msgpack has finished."""
        if self._error is not None:
            return None
        try:
            return self._decoded(code, data)
        except _DAMAGE as error:
            self._error = error
            return None

    def _decoded(self, code: int, data: bytes) -> Any:
        if code == _PLACED:
            return self._placed(data)
        if code in (_INLINE, _SCALAR):
            dtype, shape, at = read_header(data)
            if nbytes_of(dtype, shape) != len(data) - at:
                raise ValueError(f"{len(data) - at} bytes for an array of {dtype} {shape}")
            # Not by np.empty: numpy before 1.20 gives (1 << 40, 0) the memory of (1 << 40, 1).
            array: np.ndarray = np.ndarray(shape, dtype, data, at)
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
        if code == _PICKLED and self._pickles:
            return _unpickled(data)
        raise ValueError(f"unknown extension {code}")

    @staticmethod
    def _records(fields: Any, shape: List[int], is_scalar: bool, data: np.ndarray) -> Any:
        dtype = record_dtype(fields)
        if type(data) is not np.ndarray or data.dtype != np.uint8:
            raise ValueError("records without their bytes")
        records = data.reshape(-1).view(dtype).reshape(shape)
        return records[()] if is_scalar else records

    def _placed(self, data: bytes) -> np.ndarray:
        dtype, shape, at = read_header(data)
        if len(data) != at + _NUMBER.size:
            raise ValueError("an array without a position")
        position = self._area + _NUMBER.unpack_from(data, at)[0]
        nbytes = nbytes_of(dtype, shape)
        if not nbytes or position % ALIGNMENT or position + nbytes > self._end:
            raise ValueError(f"an array of {dtype} {shape} at {position} of {self._end} bytes")
        array: np.ndarray = np.ndarray(shape, dtype, self._memory, position)
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


def _unpickled(data: bytes) -> Any:
    try:
        return pickle.loads(data)
    except Exception as error:
        texts = [arg for _, arg, _ in pickletools.genops(data) if isinstance(arg, str)]
        raise RuntimeError(
            f"An object of {'.'.join(texts[:2])} can be pickled, but not unpickled: {error!r}."
        ) from error


def _where_it_fails(obj: Any, error: TypeError, pickles: bool) -> Tuple[str, TypeError]:
    """The first part of an object that cannot be packed: its path, such as `[1]['boxes']`, and why,
    which need not be `error`: msgpack may have found a later part first.
    """
    parts: Any = []
    if isinstance(obj, dict):
        parts = obj.items()
    elif isinstance(obj, (list, tuple)):
        parts = enumerate(obj)
    for key, part in parts:
        try:
            _Packing(pickles).bytes_of(part)
        except TypeError as found:
            where, first = _where_it_fails(part, found, pickles)
            return f"[{key!r}]{where}", first
    return "", error
