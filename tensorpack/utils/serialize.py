"""Converts objects to bytes and back, for sockets and files; reading bytes never runs code.

An object is one frame: a header of 64 bytes, followed by the structure and the arrays of the object
in the layout of `packing.codec`. The header is, in little endian::

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

from .packing.codec import Keep, aligned, pack, unpack
from .packing.old_values import BadRecord, RefusedRecord, decode_old, kind_of_old

#: Bytes of a frame at most, unless a caller wants it otherwise.
MAX_BYTES = 1 << 30

_MAGIC = b"\xf7TPF"
_VERSION = 1
_HASHED = 1  # the flag of frames without a checksum
_BEGIN = struct.Struct("<4sBBHI")  # magic, version, flags, zeros, checksum
_REST = struct.Struct("<4xQQ32x")  # length of the structure, length of the frame
_HEADER_BYTES = _BEGIN.size + _REST.size


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


def dump_hashed(obj: Any, file: BinaryIO) -> Tuple[int, str]:
    """Writes what `dumps` takes to a file of its own. Arrays in C order are not copied.

    Returns:
      The number of bytes, and their hexadecimal SHA-256, for `load_hashed`.
    """
    digest, size = hashlib.sha256(), 0
    for part in [_BEGIN.pack(_MAGIC, _VERSION, _HASHED, 0, 0), *_parts(obj)]:
        digest.update(part)
        file.write(part)
        size += len(part)
    return size, digest.hexdigest()


def load_hashed(memory: np.ndarray) -> Any:
    """Returns the object that `dump_hashed` wrote, from the bytes of the file, whose SHA-256 has
    been compared: uint8 `[nbytes]`, writable. The large arrays of the object are views of it. All
    of its arrays that have elements may be written to.
    """
    return _loaded(memory, _HASHED, lambda a: a if a.flags.writeable else a.copy())


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
    memory = np.frombuffer(buf, np.uint8)
    memory.flags.writeable = False
    if memory.nbytes > max_bytes:
        raise FrameError(
            f"A frame of {memory.nbytes} bytes, and {max_bytes} are allowed. If it is meant to be "
            "that large, give max_bytes."
        )
    return _loaded(memory, 0, np.copy if copy else None)


def _parts(obj: Any, max_bytes: float = float("inf")) -> List[Any]:
    """Returns what follows the checksum in the frame of an object, as buffers of bytes."""
    structure, arrays = pack(obj)
    buffers = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays]
    nbytes = _HEADER_BYTES + sum(aligned(len(buffer)) for buffer in [structure, *buffers])
    if nbytes > max_bytes:
        raise ValueError(
            f"This object has {nbytes} bytes, and {max_bytes} are allowed. Split it into smaller "
            "ones; or, if you call dumps() and loads() yourself, give both a larger max_bytes."
        )
    parts: List[Any] = [_REST.pack(len(structure), nbytes)]
    for buffer in [structure, *buffers]:
        parts += [buffer, bytes(-len(buffer) % 64)]
    return parts


def _loaded(memory: Any, expected_flags: int, keep: Keep) -> Any:
    """Returns the object of a frame, uint8 `[nbytes]`."""
    magic = memory[: len(_MAGIC)].tobytes()
    if magic != _MAGIC:
        arrow = " Write what pyarrow wrote again, with TENSORPACK_SERIALIZE=pickle."
        raise FrameError(
            f"These {memory.nbytes} bytes begin with {magic!r}, and a frame with {_MAGIC!r}."
            + (arrow if magic == bytes(4) else "")
        )
    header = memory[:_HEADER_BYTES].tobytes().ljust(_HEADER_BYTES, b"\0")
    _, version, flags, zeros, checksum = _BEGIN.unpack_from(header)
    structure_nbytes, nbytes = _REST.unpack_from(header, _BEGIN.size)
    if (version, flags, zeros) != (_VERSION, expected_flags, 0):
        raise FrameError(
            f"A frame of version {version} with flags {flags}, and this is version {_VERSION}. "
            "Let both sides have the same tensorpack."
        )
    if nbytes != memory.nbytes:
        raise FrameError(f"{memory.nbytes} bytes, and the frame says that it has {nbytes}.")
    if not flags and zlib.crc32(memory[_BEGIN.size :]) != checksum:
        raise FrameError(f"The checksum of a frame of {nbytes} bytes is wrong: it was damaged.")
    try:
        return unpack(memory, _HEADER_BYTES, structure_nbytes, keep)
    except ValueError as error:
        raise FrameError(f"This frame is not one that dumps() writes: {error}") from error
