"""Converts objects to bytes and back, for sockets and files; reading bytes never runs code.

An object is one frame: a header of 64 bytes, its structure, which is msgpack, and its large arrays,
each part followed by zeros up to a multiple of 64 bytes. The header is, in little endian::

    magic | version | flags | zeros | checksum | zeros | structure | frame | zeros
    4       1         1       2       4          4       8           8       32      bytes

"structure" and "frame" are lengths in bytes, the latter of everything. The checksum is the CRC-32
of all that follows it; a frame in a file whose SHA-256 is kept elsewhere has the flag 1 and no
checksum. What msgpack does not know are extensions of the structure. That of an array holds the
number of characters of its dtype (one byte), the number of its dimensions (one byte), the dtype,
the shape (eight bytes each), and then its bytes in C order if it has at most 512, or else its
position behind the structure (eight bytes). A tuple is a list; an array of records the list of its
fields, its shape, whether it is a scalar, and its bytes as an array.
"""

import functools
import hashlib
import struct
import zlib
from operator import itemgetter
from typing import Any, BinaryIO, Callable, List, Mapping, Optional, Tuple

import numpy as np

from ._hashing import PIECE_BYTES
from .optional import msgpack_codec, require
from .packing.old_values import BadRecord, RefusedRecord, decode_old, kind_of_old

#: Bytes of a frame at most, unless a caller wants it otherwise.
MAX_BYTES = 1 << 30

_MAGIC = b"\xf7TPF"
_VERSION = 1
_HASHED = 1  # the flag of frames without a checksum
_BEGIN = struct.Struct("<4sBBHI")  # magic, version, flags, zeros, checksum
_REST = struct.Struct("<4xQQ32x")  # length of the structure, length of the frame
_HEADER = struct.Struct(_BEGIN.format + _REST.format[1:])
_HEADER_BYTES = _HEADER.size
# The codes of the extensions are in every file that this library has written.
_INLINE, _PLACED, _SCALAR, _TUPLE, _NP_STR, _NP_BYTES, _INTEGER, _RECORDS = range(1, 9)
_MAX_INLINE_BYTES = 512
_MAX_TUPLES = 32  # in each other: msgpack needs 40 KB of the C stack for each
_KINDS = "biufcSUmM"  # of dtypes
_POSITION = struct.Struct("<Q")
_Keep = Optional[Callable[[np.ndarray], np.ndarray]]
_Placed = List[Tuple[int, np.ndarray]]  # arrays with their positions, as bytes
_Convert = Mapping[type, Callable[[Any], Any]]
_NOTHING: _Convert = {}


class FrameError(ValueError):
    """Bytes are not one whole, undamaged frame, or it is larger than allowed."""


def dumps(obj: Any, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns an object as bytes.

    Args:
      obj: None, booleans, integers, floats, text, bytes, numpy arrays and scalars, and lists,
        tuples and dicts of these. What else has the buffer interface comes back as bytes.
      max_bytes: how many bytes it may have as a frame.

    Raises:
      TypeError: there is anything else in it, such as an array of objects; says where.
      ValueError: it is nested too deeply, or too large.
    """
    parts = _parts(obj, max_bytes)
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([_BEGIN.pack(_MAGIC, _VERSION, 0, 0, checksum), *parts])


def dump_hashed(obj: Any, file: BinaryIO, convert: _Convert = _NOTHING) -> Tuple[int, str]:
    """Writes what `dumps` takes to a file of its own. Arrays in C order are not copied.

    Args:
      convert: by type, functions that return what is written in the place of such an object.

    Returns:
      The number of bytes, and their hexadecimal SHA-256, for `load_hashed`.
    """
    digest, size = hashlib.sha256(), 0
    for part in [_BEGIN.pack(_MAGIC, _VERSION, _HASHED, 0, 0), *_parts(obj, convert=convert)]:
        view = memoryview(part)
        for start in range(0, len(view), PIECE_BYTES):
            piece = view[start : start + PIECE_BYTES]
            digest.update(piece)
            file.write(piece)
        size += len(view)
    return size, digest.hexdigest()


def load_hashed(memory: Any) -> Any:
    """Returns the object that `dump_hashed` wrote, from the bytes of the file, whose SHA-256 has
    been compared: uint8 `[nbytes]`, writable. The large arrays of the object are views of it. All
    of its arrays that have elements may be written to.
    """
    return _loaded(memoryview(memory), _HASHED, lambda a: a if a.flags.writeable else a.copy())


def loads(
    buf: Any, max_bytes: int = MAX_BYTES, copy: bool = True, allow_pickle: bool = False
) -> Any:
    """Returns the object that `dumps` wrote, also that of tensorpack 0.2 to 0.11.

    Args:
      buf: bytes, or anything with the buffer interface, of exactly one frame; or a pickle, or
        msgpack, as old versions wrote it.
      max_bytes: a larger frame is refused before it is looked at.
      copy: True for arrays of their own, that may be written to. False for read-only ones; those
        of more than 512 bytes are views of `buf`, which must then stay as it is. They are aligned
        to 64 bytes if `buf` is. Empty arrays may have any alignment.
      allow_pickle: whether Python unpickles what is no list, dict, number, text or numpy array,
        which can run any code: only for bytes that you trust.
    """
    view = memoryview(buf)
    if view.nbytes <= max_bytes and kind_of_old(view[:3].tobytes()):
        try:
            return decode_old(view.tobytes(), allow_pickle)
        except (BadRecord, RefusedRecord) as error:
            raise FrameError(str(error)) from error
    return load_frame(view, max_bytes, copy)


def load_frame(buf: Any, max_bytes: int = MAX_BYTES, copy: bool = True) -> Any:
    """Does what `loads` does, where no bytes of old versions can be."""
    if type(buf) is not bytes:
        array: Any = np.frombuffer(buf, np.uint8)
        array.flags.writeable = False
        buf = array
    memory = memoryview(buf)
    if len(memory) > max_bytes:
        raise FrameError(
            f"A frame of {len(memory)} bytes, and {max_bytes} are allowed. If it is meant to be "
            "that large, give max_bytes."
        )
    return _loaded(memory, 0, np.ndarray.copy if copy else None)


def _parts(obj: Any, max_bytes: float = float("inf"), convert: _Convert = _NOTHING) -> List[Any]:
    """Returns what follows the checksum in the frame of an object, as buffers of bytes."""
    placed: _Placed = []
    try:
        structure = _encoded(obj, placed, convert, 0)
    except TypeError:
        parts = enumerate(obj) if isinstance(obj, (list, tuple)) else ()
        for key, part in obj.items() if isinstance(obj, dict) else parts:
            try:
                _parts(part, convert=dict.fromkeys(convert, lambda _: None))
            except TypeError as error:
                colon = "" if str(error).startswith("[") else ": "
                raise TypeError(f"[{key!r}]{colon}{error}") from error
        raise
    buffers: List[Any] = []
    for buffer in [structure, *map(itemgetter(1), placed)]:
        buffers += [buffer, bytes(-len(buffer) % 64)]
    nbytes = _HEADER_BYTES + sum(map(len, buffers))
    if nbytes > max_bytes:
        raise ValueError(
            f"This object has {nbytes} bytes, and {max_bytes} are allowed. Split it into smaller "
            "ones; or, if you call dumps() and loads() yourself, give both a larger max_bytes."
        )
    return [_REST.pack(len(structure), nbytes), *buffers]


def _loaded(memory: memoryview, expected_flags: int, keep: _Keep) -> Any:
    """Returns the object of a frame."""
    whole = len(memory) >= _HEADER_BYTES
    header = memory if whole else memory.tobytes().ljust(_HEADER_BYTES, b"\0")
    magic, version, flags, zeros, checksum, structure_nbytes, nbytes = _HEADER.unpack_from(header)
    if magic != _MAGIC:
        magic = memory[: len(_MAGIC)].tobytes()
        arrow = " Write what pyarrow wrote again, with TENSORPACK_SERIALIZE=pickle."
        raise FrameError(
            f"These {memory.nbytes} bytes begin with {magic!r}, and a frame with {_MAGIC!r}."
            + (arrow if magic == bytes(4) else "")
        )
    if version != _VERSION or flags != expected_flags or zeros:
        raise FrameError(
            f"A frame of version {version} with flags {flags}, and this is version {_VERSION}. "
            "Let both sides have the same tensorpack."
        )
    if nbytes != memory.nbytes:
        raise FrameError(f"{memory.nbytes} bytes, and the frame says that it has {nbytes}.")
    if not flags and zlib.crc32(memory[_BEGIN.size :]) != checksum:
        raise FrameError(f"The checksum of a frame of {nbytes} bytes is wrong: it was damaged.")
    end = _HEADER_BYTES + structure_nbytes
    try:
        return _decoded(memory[_HEADER_BYTES:end], memory[end + -end % 64 :], keep)
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes can make msgpack and numpy fail in many ways
        what = str(error) or type(error).__name__
        raise FrameError(f"This frame is not one that dumps() writes: {what}") from error


@functools.lru_cache(None)
def _msgpack() -> Tuple[Any, Any, Any]:
    codec = msgpack_codec()
    return codec.Packer, codec.unpackb, require("msgpack").ExtType


def _encoded(obj: Any, placed: _Placed, convert: _Convert, depth: int) -> bytes:
    if depth > _MAX_TUPLES:
        raise ValueError(f"Tuples nest at most {_MAX_TUPLES} deep.")
    default = functools.partial(_extension_of, placed, convert, depth)
    packer = _msgpack()[0](default=default, strict_types=True, unicode_errors="surrogatepass")
    return packer.pack(obj)  # type: ignore[no-any-return]


def _extension_of(placed: _Placed, convert: _Convert, depth: int, obj: Any) -> Any:
    """Returns an extension for an object that msgpack does not know."""
    extension, kind = _msgpack()[2], type(obj)
    if kind is tuple:
        return extension(_TUPLE, _encoded(list(obj), placed, convert, depth + 1))
    if kind is int:
        size = obj.bit_length() // 8 + 1
        return extension(_INTEGER, obj.to_bytes(size, "little", signed=True))
    if kind is np.str_:  # as an array of one it would lose zeros at its end
        return extension(_NP_STR, str.encode(obj, "utf-8", "surrogatepass"))
    if kind is np.bytes_:
        return extension(_NP_BYTES, bytes(obj))
    is_array = kind in (np.ndarray, np.memmap)
    is_scalar = isinstance(obj, np.generic) and kind is obj.dtype.type
    dtype = obj.dtype if is_array or is_scalar else None
    if dtype is not None and dtype.kind in _KINDS and dtype.isbuiltin != 2:  # 2: of another library
        name, shape = dtype.str.encode(), obj.shape
        header = bytes([len(name), len(shape)]) + name + struct.pack(f"<{len(shape)}Q", *shape)
        if is_scalar or obj.nbytes <= _MAX_INLINE_BYTES:
            return extension(_SCALAR if is_scalar else _INLINE, header + obj.tobytes())
        end = placed[-1][0] + placed[-1][1].nbytes if placed else 0
        position = end + -end % 64
        placed.append((position, np.ascontiguousarray(obj).reshape(-1).view(np.uint8)))
        return extension(_PLACED, header + _POSITION.pack(position))
    if dtype is not None and dtype.type is np.void and dtype.names and not dtype.hasobject:
        fields = np.lib.format.dtype_to_descr(dtype)
        if np.lib.format.descr_to_dtype(fields) == dtype:
            data = np.ascontiguousarray(obj).reshape(-1).view(np.uint8)
            records = [fields, list(obj.shape), is_scalar, data]
            return extension(_RECORDS, _encoded(records, placed, convert, depth + 1))
    if kind in convert:
        return convert[kind](obj)
    what = f"an array of {dtype}" if is_array else f"a {kind.__name__}"
    raise TypeError(
        f"{what} cannot be sent or stored. Supported are None, bool, int, float, str, bytes, numpy "
        "arrays and scalars without objects, and lists, tuples and dicts of these."
    )


def _decoded(structure: Any, area: memoryview, keep: _Keep, depth: int = 0) -> Any:
    if depth > _MAX_TUPLES:  # msgpack itself would overflow the stack
        raise ValueError(f"tuples nested more than {_MAX_TUPLES} deep")
    hook = functools.partial(_object_of, area, keep, depth + 1)
    return _msgpack()[1](
        structure, ext_hook=hook, strict_map_key=False, unicode_errors="surrogatepass"
    )


@functools.lru_cache(1024)
def _dtype_and_shape(header: bytes) -> Tuple[np.dtype, Tuple[int, ...]]:
    end = 2 + header[0]
    shape = struct.unpack_from(f"<{header[1]}Q", header, end)
    return _without_objects(np.dtype(header[2:end].decode("ascii"))), shape


def _object_of(area: memoryview, keep: _Keep, depth: int, code: int, data: bytes) -> Any:
    """Returns the object of an extension."""
    if code <= _SCALAR:  # an array, or a scalar as one
        end = 2 + data[0] + 8 * data[1]
        dtype, shape = _dtype_and_shape(data[:end])
        if code == _PLACED:
            array: Any = np.ndarray(shape, dtype, area[_POSITION.unpack(data[end:])[0] :])
            return array if keep is None else keep(array)
        array = np.ndarray(shape, dtype, data[end:] if keep is None else bytearray(data[end:]))
        return array[()] if code == _SCALAR else array
    if code == _TUPLE:
        return tuple(_decoded(data, area, keep, depth))
    if code == _NP_STR:
        return np.str_(data.decode("utf-8", "surrogatepass"))
    if code == _NP_BYTES:
        return np.bytes_(data)
    if code == _INTEGER:
        return int.from_bytes(data, "little", signed=True)
    if code == _RECORDS:
        fields, shape, is_scalar, records = _decoded(data, area, keep, depth)
        dtype = _without_objects(np.lib.format.descr_to_dtype(fields))
        records = records.view(dtype).reshape(shape)
        return records[()] if is_scalar else records
    raise ValueError(f"unknown extension {code}")


def _without_objects(dtype: np.dtype) -> np.dtype:
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"an array of {dtype}")
    return dtype
