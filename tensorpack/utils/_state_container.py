"""Files of one JSON header and numpy arrays, whose every byte is covered by a SHA-256.

The layout is: the kind of file (8 bytes), the version (4 bytes) and the length of the header (8
bytes), both little-endian; the header; the digest of all before it; the bytes of the arrays in C
order, one after the other; the digest of all before it.
"""

import hashlib
import json
import os
import struct
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from ._state_dtype import dtype_from_json, dtype_to_json

__all__ = [
    "Container",
    "describe_array",
    "read_container",
    "write_container",
]

_VERSION = 1
_PRELUDE = struct.Struct("<8sIQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_PIECE_BYTES = 1 << 20  # hashed while the processor still has it in its cache


class Container(NamedTuple):
    """What was read from a file."""

    content: Any
    arrays: List[np.ndarray]
    sha256: str


def write_container(
    file: BinaryIO, kind: bytes, content: Any, arrays: Sequence[np.ndarray]
) -> Tuple[int, str]:
    """Writes everything to an open file.

    Args:
      file: at its beginning.
      kind: 8 bytes that tell this kind of file from others.
      content: anything that JSON keeps.
      arrays: of any layout; those that lie in C order are not copied.

    Returns:
      The number of bytes, and the hexadecimal SHA-256 of all of them.

    Raises:
      TypeError: an array cannot be kept; nothing is written.
      OSError: the file cannot be written.
    """
    descriptions = [describe_array(array) for array in arrays]
    header = json.dumps(
        {"arrays": descriptions, "content": content}, allow_nan=False, separators=(",", ":")
    ).encode("utf-8")
    writer = _HashedWriter(file)
    writer.write(_PRELUDE.pack(kind, _VERSION, len(header)))
    writer.write(header)
    writer.write(writer.digest.digest())
    for array in arrays:
        for piece in _pieces(array):
            writer.write(piece)
    writer.write(writer.digest.digest())
    return writer.size, writer.digest.hexdigest()


def read_container(path: str, kind: bytes) -> Container:
    """Reads a file, once from its beginning to its end, and checks it. The arrays are writable.

    Raises:
      ValueError: it is damaged, of another kind or of another version; the text says which.
      OSError: it cannot be read; FileNotFoundError if it does not exist.
    """
    with open(path, "rb", buffering=0) as file:
        left = os.fstat(file.fileno()).st_size - _PRELUDE.size - 2 * _DIGEST_BYTES
        if left < 0:
            raise ValueError("it is truncated")
        reader = _HashedReader(file)
        found, version, length = _PRELUDE.unpack(reader.read(_PRELUDE.size))
        if found != kind:
            raise ValueError(f"it begins with {found!r} instead of {kind!r}")
        if version != _VERSION:
            raise ValueError(f"it is of version {version}, and this program reads {_VERSION}")
        if length > left:
            raise ValueError("it is truncated")
        header = reader.read(length)
        reader.check_digest()
        arrays, content = _parse(header, left - length)
        for array in arrays:
            if array.nbytes:
                reader.read_into(_as_bytes(array))
        reader.check_digest()
        return Container(content, arrays, reader.digest.hexdigest())


def describe_array(array: np.ndarray) -> Dict[str, Any]:
    """Returns the dtype and the shape of an array as JSON.

    Raises:
      TypeError: it is a special kind of array, or one of objects.
    """
    if type(array) not in (np.ndarray, np.memmap):
        raise TypeError(f"a {type(array).__name__} is not a plain numpy array")
    return {"dtype": dtype_to_json(array.dtype), "shape": list(array.shape)}


def _parse(header: bytes, left: int) -> Tuple[List[np.ndarray], Any]:
    """Returns the arrays, still without their values, if they fill what is `left`; the content."""
    try:
        parsed = json.loads(header.decode("utf-8"))
        described = [
            (dtype_from_json(each["dtype"]), [int(size) for size in each["shape"]])
            for each in parsed["arrays"]
        ]
        needed = sum(dtype.itemsize * _product(shape) for dtype, shape in described)
        if needed != left:  # before any memory is asked for
            raise ValueError(f"the arrays have {left} bytes instead of {needed}")
        return [np.empty(shape, dtype) for dtype, shape in described], parsed["content"]
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"its header does not fit ({error})") from error


def _product(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _pieces(array: np.ndarray) -> Iterator[memoryview]:
    """Yields the bytes of an array in C order. At most `_PIECE_BYTES` are copied at a time."""
    if not array.nbytes:
        return
    if array.flags.c_contiguous or array.nbytes <= _PIECE_BYTES:
        view = _as_bytes(np.ascontiguousarray(array))
        for start in range(0, len(view), _PIECE_BYTES):
            yield view[start : start + _PIECE_BYTES]
        return
    rows = max(1, _PIECE_BYTES // (array.nbytes // len(array)))
    for start in range(0, len(array), rows):
        part = array[start : start + rows]
        # One row that is too large alone is taken apart in its turn.
        yield from _pieces(part if rows > 1 or array.ndim == 1 else part[0])


def _as_bytes(array: np.ndarray) -> memoryview:
    """Returns the memory of an array in C order. (Of dates, say, numpy itself gives none.)"""
    return array.reshape(-1).view(np.uint8).data


class _HashedWriter:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> None:
        self.digest.update(data)
        self._file.write(data)
        self.size += len(data)


class _HashedReader:
    def __init__(self, file: Any) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, count: int) -> bytes:
        buffer = bytearray(count)
        self.read_into(memoryview(buffer))
        return bytes(buffer)

    def read_into(self, view: memoryview) -> None:
        while len(view):
            count = self._file.readinto(view[:_PIECE_BYTES])
            if not count:
                raise ValueError("it is truncated")
            self.digest.update(view[:count])
            view = view[count:]

    def check_digest(self) -> None:
        expected = self.digest.digest()
        if self.read(_DIGEST_BYTES) != expected:
            raise ValueError("its content is not what was written (SHA-256 differs)")
