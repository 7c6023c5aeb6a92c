"""An object as a structure and the arrays that follow it: what sockets, files and states hold.

The structure is msgpack with extensions of our own; reading it runs no code. An object begins at a
multiple of 64 bytes::

    structure | gap | array | gap | array | ...        each array at a multiple of 64 bytes

The extension of an array holds the number of characters of its dtype (one byte), the number of its
dimensions (one byte), the dtype, the shape (eight bytes each), and then either its bytes in C order
if it has at most 512, or else its position after the gap that follows the structure (eight bytes).
Numbers are little endian. An array of records is the list of its fields, its shape, whether it is a
scalar, and its bytes as an array. A tuple is a list.
"""

import functools
import struct
from types import SimpleNamespace
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from ..optional import msgpack_codec, require

Keep = Optional[Callable[[np.ndarray], np.ndarray]]
_Placed = List[Tuple[int, np.ndarray]]  # arrays with their positions

# The codes of the extensions are in every file that this library has written.
_INLINE, _PLACED, _SCALAR, _TUPLE, _NP_STR, _NP_BYTES, _INTEGER, _RECORDS = range(1, 9)
_MAX_INLINE_BYTES = 512
_MAX_TUPLES = 32  # in each other: msgpack needs 40 KB of the C stack for each
_KINDS = "biufcSUmM"  # of dtypes
_POSITION = struct.Struct("<Q")


def aligned(nbytes: int) -> int:
    """Returns the next multiple of 64."""
    return -(-nbytes // 64) * 64


def pack(obj: Any) -> Tuple[bytes, List[np.ndarray]]:
    """Returns the structure of an object and its large arrays, not copied; see `serialize.dumps`.

    Raises:
      TypeError: something does not fit; says where, such as `[1]['boxes']`.
      ValueError: it is nested too deeply.
    """
    placed: _Placed = []
    try:
        return _encoded(obj, placed, 0), [array for _, array in placed]
    except TypeError:
        parts = enumerate(obj) if isinstance(obj, (list, tuple)) else ()
        for key, part in obj.items() if isinstance(obj, dict) else parts:
            try:
                pack(part)
            except TypeError as error:
                colon = "" if str(error).startswith("[") else ": "
                raise TypeError(f"[{key!r}]{colon}{error}") from error
        raise


def unpack(memory: np.ndarray, start: int, structure_nbytes: int, keep: Keep = None) -> Any:
    """Returns the object that begins at `start` of a memory, uint8 `[nbytes]`.

    Its arrays are views, read-only if the memory is, or what `keep` returns for them. Dtypes with
    objects are refused, and numpy makes no array that is not within the memory.

    Raises:
      ValueError: the bytes are damaged, or not of an object.
    """
    end = start + structure_nbytes
    try:
        return _decoded(memory[start:end], memory[start + aligned(structure_nbytes) :], keep)
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes can make msgpack and numpy fail in many ways
        raise ValueError(str(error) or type(error).__name__) from error


@functools.lru_cache(None)
def _msgpack() -> Any:
    codec = msgpack_codec()
    return SimpleNamespace(
        Packer=codec.Packer, unpackb=codec.unpackb, Ext=require("msgpack").ExtType
    )


def _encoded(obj: Any, placed: _Placed, depth: int) -> bytes:
    if depth > _MAX_TUPLES:
        raise ValueError(f"Tuples nest at most {_MAX_TUPLES} deep.")
    default = functools.partial(_extension_of, placed, depth)
    packer = _msgpack().Packer(default=default, strict_types=True, unicode_errors="surrogatepass")
    return packer.pack(obj)  # type: ignore[no-any-return]


def _extension_of(placed: _Placed, depth: int, obj: Any) -> Any:
    """Returns an extension for an object that msgpack does not know."""
    ext_type, kind = _msgpack().Ext, type(obj)
    if kind is tuple:
        return ext_type(_TUPLE, _encoded(list(obj), placed, depth + 1))
    if kind is int:
        size = obj.bit_length() // 8 + 1
        return ext_type(_INTEGER, obj.to_bytes(size, "little", signed=True))
    if kind is np.str_:  # as an array of one it would lose zeros at its end
        return ext_type(_NP_STR, str.encode(obj, "utf-8", "surrogatepass"))
    if kind is np.bytes_:
        return ext_type(_NP_BYTES, bytes(obj))
    is_array = kind in (np.ndarray, np.memmap)
    dtype = obj.dtype if is_array or isinstance(obj, np.generic) else None
    if dtype is not None and dtype.kind in _KINDS and dtype.isbuiltin != 2:  # of a library
        name, shape = dtype.str.encode(), obj.shape
        header = bytes([len(name), len(shape)]) + name + struct.pack(f"<{len(shape)}Q", *shape)
        if not is_array or obj.nbytes <= _MAX_INLINE_BYTES:
            return ext_type(_INLINE if is_array else _SCALAR, header + obj.tobytes())
        position = placed[-1][0] + aligned(placed[-1][1].nbytes) if placed else 0
        placed.append((position, obj))
        return ext_type(_PLACED, header + _POSITION.pack(position))
    if dtype is not None and dtype.type is np.void and dtype.names and not dtype.hasobject:
        fields = np.lib.format.dtype_to_descr(dtype)
        if np.lib.format.descr_to_dtype(fields) == dtype:
            data = np.ascontiguousarray(obj).reshape(-1).view(np.uint8)
            records = [fields, list(obj.shape), not is_array, data]
            return ext_type(_RECORDS, _encoded(records, placed, depth + 1))
    what = f"an array of {dtype}" if is_array else f"a {kind.__name__}"
    raise TypeError(
        f"{what} cannot be sent or stored. Supported are None, bool, int, float, str, bytes, numpy "
        "arrays and scalars without objects, and lists, tuples and dicts of these."
    )


def _decoded(structure: Any, area: np.ndarray, keep: Keep) -> Any:
    return _msgpack().unpackb(
        structure,
        ext_hook=functools.partial(_object_of, area, keep),
        strict_map_key=False,
        unicode_errors="surrogatepass",
    )


def _object_of(area: np.ndarray, keep: Keep, code: int, data: bytes) -> Any:
    """Returns the object of an extension."""
    if code in (_INLINE, _PLACED, _SCALAR):
        end = 2 + data[0]
        dtype = _without_objects(np.dtype(data[2:end].decode("ascii")))
        shape = struct.unpack_from(f"<{data[1]}Q", data, end)
        end += 8 * data[1]
        memory: Any = data[end:]
        if code == _PLACED:
            memory = area[_POSITION.unpack(memory)[0] :]
        array: Any = np.ndarray(shape, dtype, memory)
        if code == _SCALAR:
            return array[()]
        return array if keep is None or not array.size else keep(array)
    if code == _TUPLE:
        return tuple(_decoded(data, area, keep))
    if code == _NP_STR:
        return np.str_(data.decode("utf-8", "surrogatepass"))
    if code == _NP_BYTES:
        return np.bytes_(data)
    if code == _INTEGER:
        return int.from_bytes(data, "little", signed=True)
    if code == _RECORDS:
        fields, shape, is_scalar, records = _decoded(data, area, keep)
        dtype = _without_objects(np.lib.format.descr_to_dtype(fields))
        records = records.view(dtype).reshape(shape)
        return records[()] if is_scalar else records
    raise ValueError(f"unknown extension {code}")


def _without_objects(dtype: np.dtype) -> np.dtype:
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"an array of {dtype}")
    return dtype
