"""Converts objects to bytes and back, for sockets and files; reading bytes never runs code.

An object is one frame: a header of 64 bytes, followed by the structure and the arrays of the object
in the layout of `tensorpack.utils.packed`. The header is, in little endian::

    magic | version | flags | zeros | checksum | zeros | structure | frame | zeros
    4       1         1       2       4          4       8           8       32      bytes

"structure" and "frame" are lengths in bytes, the latter of everything. The checksum is the CRC-32
of all that follows it; a frame in a file whose SHA-256 is kept elsewhere has the flag 1 and no
checksum. Arrays of more than 512 bytes begin at multiples of 64 bytes from the begin of the frame,
so they are aligned in memory if the frame is.
"""

import hashlib
import struct
import zlib
from typing import Any, BinaryIO, List, Tuple

import numpy as np

from .packing import old_values
from .packing.packed import ALIGNMENT, pack, unpack
from .packing.packed_arrays import Rows

#: Bytes of a frame at most, unless a caller wants it otherwise.
MAX_BYTES = 1 << 30
#: Bytes of a frame in a file of its own, at most.
MAX_FILE_BYTES = 1 << 32
#: Bytes of a frame without its arrays, at most; in memory it may take 60 times that.
MAX_STRUCTURE_BYTES = 1 << 26

_MAGIC = b"\xf7TPF"
_VERSION = 1
_HASHED = 1  # the flag of frames without a checksum
_PIECE_BYTES = 1 << 20  # hashed while the processor still has it in its cache
_BEGIN = struct.Struct("<4sBBHI")  # magic, version, flags, zeros, checksum
_REST = struct.Struct("<4xQQ32x")  # length of the structure, length of the frame
_HEADER_BYTES = _BEGIN.size + _REST.size


class FrameError(ValueError):
    """Bytes are not one whole, undamaged frame, or it is larger than allowed."""


def dumps(obj: Any, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns an object as bytes.

    Args:
      obj: None, booleans, integers, floats, text, bytes, numpy arrays and scalars, and lists,
        tuples and dicts of these.
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


def dump_hashed(obj: Any, file: BinaryIO) -> Tuple[int, str]:
    """Writes what `dumps` takes to a file of its own. Arrays in C order are not copied.

    Returns:
      The number of bytes, and their hexadecimal SHA-256, for `load_hashed`.
    """
    parts = [_BEGIN.pack(_MAGIC, _VERSION, _HASHED, 0, 0), *_parts(obj, MAX_FILE_BYTES)]
    digest, size = hashlib.sha256(), 0
    for part in parts:
        view = memoryview(part)
        for start in range(0, len(view), _PIECE_BYTES):
            piece = view[start : start + _PIECE_BYTES]
            digest.update(piece)
            file.write(piece)
        size += len(view)
    return size, digest.hexdigest()


def load_hashed(memory: np.ndarray) -> Any:
    """Returns the object that `dump_hashed` wrote, from the bytes of the file, whose SHA-256 has
    been compared: uint8 `[nbytes]`, writable. The large arrays of the object are views of it. All
    of its arrays that have elements may be written to.
    """
    structure_nbytes = _check_header(memory, MAX_FILE_BYTES, _HASHED)
    return _unpack(memory, structure_nbytes, lambda a: a if a.flags.writeable else a.copy())


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
    begin = view.cast("B")[:3].tobytes() if view.nbytes else b""
    if view.nbytes > max_bytes or not old_values.kind_of_old(begin):
        return load_frame(view, max_bytes, copy)
    try:
        return old_values.decode_old(view.tobytes(), allow_pickle)
    except (old_values.BadRecord, old_values.RefusedRecord) as error:
        raise FrameError(str(error)) from error


def load_frame(buf: Any, max_bytes: int = MAX_BYTES, copy: bool = True) -> Any:
    """Does what `loads` does, where no bytes of old versions can be."""
    view = memoryview(buf)
    memory: Any = np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
    memory.flags.writeable = False
    structure_nbytes = _check_header(memory, max_bytes, 0)
    if zlib.crc32(memory[_BEGIN.size :]) != _BEGIN.unpack_from(memory)[-1]:
        raise FrameError(
            f"The checksum of a frame of {memory.nbytes} bytes is wrong: it was damaged."
        )
    return _unpack(memory, structure_nbytes, np.copy if copy else None)


def _unpack(memory: np.ndarray, structure_nbytes: int, keep: Any) -> Any:
    try:
        return unpack(memory, structure_nbytes, _HEADER_BYTES, keep=keep)
    except (OverflowError, ValueError) as error:
        raise FrameError(f"This frame is not one that dumps() writes: {error}") from error


def _parts(obj: Any, max_bytes: int) -> List[Any]:
    """Returns what follows the checksum in the frame of an object, as buffers in order."""
    packed = pack(obj)
    nbytes = _HEADER_BYTES + packed.nbytes
    if nbytes > max_bytes:
        raise ValueError(
            f"This object has {nbytes} bytes, and {max_bytes} are allowed. Split it into smaller "
            "ones; or, if you call dumps() and loads() yourself, give both a larger max_bytes."
        )
    if len(packed.structure) > MAX_STRUCTURE_BYTES:
        raise ValueError(
            f"What is not an array in this object has {len(packed.structure)} bytes, and "
            f"{MAX_STRUCTURE_BYTES} are allowed. Make arrays of long lists and of long bytes."
        )
    header, gap = _REST.pack(len(packed.structure), nbytes), -len(packed.structure) % ALIGNMENT
    parts: List[Any] = [header, packed.structure, bytes(gap)]
    for array in packed.arrays:
        whole = array.array() if isinstance(array, Rows) else np.ascontiguousarray(array)
        parts += [whole.reshape(-1).view(np.uint8), bytes(-array.nbytes % ALIGNMENT)]
    return parts


def _check_header(memory: Any, max_bytes: int, expected_flags: int) -> int:
    """Returns the length of the structure of a uint8 array, if all else in its header is right."""
    if memory.nbytes < _HEADER_BYTES:
        raise FrameError(
            f"{memory.nbytes} bytes are not a frame, which has at least {_HEADER_BYTES}."
        )
    if memory.nbytes > max_bytes:
        raise FrameError(
            f"A frame of {memory.nbytes} bytes, and {max_bytes} are allowed. If it is meant to be "
            "that large, give max_bytes."
        )
    magic, version, flags, zeros, _ = _BEGIN.unpack_from(memory)
    if magic != _MAGIC:
        hint = ""
        if magic == bytes(4):
            hint = (
                " If old tensorpack wrote them by pyarrow: that is not read. Write them again "
                "there, with TENSORPACK_SERIALIZE=pickle."
            )
        raise FrameError(f"These bytes begin with {magic!r}, and a frame with {_MAGIC!r}.{hint}")
    if (version, flags, zeros) != (_VERSION, expected_flags, 0):
        raise FrameError(
            f"A frame of version {version} with flags {flags}, and this is version {_VERSION}. "
            "Let both sides have the same tensorpack."
        )
    structure_nbytes, nbytes = _REST.unpack_from(memory, _BEGIN.size)
    if nbytes != memory.nbytes:
        raise FrameError(f"{memory.nbytes} bytes, and the frame says that it has {nbytes}.")
    if structure_nbytes > MAX_STRUCTURE_BYTES:
        raise FrameError(
            f"A structure of {structure_nbytes} bytes, and {MAX_STRUCTURE_BYTES} are allowed."
        )
    return structure_nbytes
