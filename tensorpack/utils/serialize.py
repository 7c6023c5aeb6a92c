"""Objects to bytes and back, for sockets and files; reading bytes never runs code.

An object is one frame: a header of 64 bytes, and behind it the structure and the arrays of the
object as `tensorpack.utils.packed` lays them out. The header is, in little endian::

    magic | version | flags | zeros | checksum | zeros | structure | frame | zeros
    4       1         1       2       4          4       8           8       32      bytes

"structure" and "frame" are lengths in bytes, the latter of everything. The checksum is the CRC-32
of all that follows it. Arrays of more than 512 bytes lie at multiples of 64 bytes from the begin of
the frame, so they are aligned in memory where the frame is.
"""

import struct
import zlib
from typing import Any, List

import numpy as np

from .packed import Packed, Rows, aligned, pack, unpack

__all__ = ["FrameError", "MAX_BYTES", "MAX_STRUCTURE_BYTES", "dumps", "loads"]

MAX_BYTES = 1 << 30  # of a frame, unless a caller wants it otherwise
MAX_STRUCTURE_BYTES = 1 << 26  # of a frame without its arrays; in memory it may take 60 times that

_MAGIC = b"\xf7TPF"
_VERSION = 1
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
      ImportError: msgpack is not installed.
      TypeError: there is anything else in it, such as an array of objects; says where.
      ValueError: it is nested too deeply, or too large.
    """
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
    parts = [_REST.pack(len(packed.structure), nbytes), *_body(packed)]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([_BEGIN.pack(_MAGIC, _VERSION, 0, 0, checksum), *parts])


def loads(buf: Any, max_bytes: int = MAX_BYTES, copy: bool = True) -> Any:
    """Returns the object that `dumps` wrote.

    Args:
      buf: bytes, or anything with the buffer interface, of exactly one frame.
      max_bytes: a larger frame is refused before it is looked at.
      copy: True for arrays of their own, that may be written to. False for read-only ones; those
        of more than 512 bytes are views of `buf`, which must then stay as it is. They are aligned
        to 64 bytes if `buf` is. Of empty arrays nothing is said.

    Raises:
      ImportError: msgpack is not installed.
      FrameError: the bytes are damaged, or were written by something else; a `ValueError`.
    """
    view = memoryview(buf)
    if view.nbytes < _HEADER_BYTES:
        raise FrameError(f"{view.nbytes} bytes are no frame, which has {_HEADER_BYTES} at least.")
    memory = np.frombuffer(view, np.uint8)
    memory.flags.writeable = False
    structure_nbytes = _check_header(memory, max_bytes)
    keep = _Copies(memory.nbytes) if copy else None
    try:
        return unpack(memory, structure_nbytes, _HEADER_BYTES, keep=keep)
    except (OverflowError, ValueError) as error:
        raise FrameError(f"This frame is not one that dumps() writes: {error}") from error


def _body(packed: Packed) -> List[Any]:
    """What follows the header, as buffers in order."""
    parts: List[Any] = [packed.structure, _gap(len(packed.structure))]
    for array in packed.arrays:
        if isinstance(array, Rows):
            data: Any = array.tobytes()
        else:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        parts += [data, _gap(array.nbytes)]
    return parts


def _gap(nbytes: int) -> bytes:
    """Zeros, for nothing of what else is in the memory may get out."""
    return bytes(aligned(nbytes) - nbytes)


def _check_header(memory: Any, max_bytes: int) -> int:
    """Returns the length of the structure, if all that the header of a uint8 array says is true."""
    if memory.nbytes > max_bytes:
        raise FrameError(
            f"A frame of {memory.nbytes} bytes, and {max_bytes} are allowed. If it is meant to be "
            "that large, give max_bytes."
        )
    magic, version, flags, zeros, checksum = _BEGIN.unpack_from(memory)
    if magic != _MAGIC:
        raise FrameError(f"These bytes begin with {magic!r}, and a frame with {_MAGIC!r}.")
    if (version, flags, zeros) != (_VERSION, 0, 0):
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
    if zlib.crc32(memory[_BEGIN.size :]) != checksum:
        raise FrameError(f"The checksum of a frame of {nbytes} bytes is wrong: it was damaged.")
    return structure_nbytes


class _Copies:
    """Copies arrays, up to a number of bytes: a frame may name one and the same array often.

    Args:
      nbytes: how many the frame has.
    """

    def __init__(self, nbytes: int) -> None:
        self._left = nbytes

    def __call__(self, array: np.ndarray) -> np.ndarray:
        self._left -= array.nbytes
        if self._left < 0:
            raise ValueError("its arrays lie one over another")
        return array.copy()
