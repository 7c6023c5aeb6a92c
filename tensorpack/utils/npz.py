"""Reads the arrays of an `.npz` archive that may be damaged or made by another person.

An archive gives all its arrays or an error. No member is unpickled, and no text of the file reaches
numpy that could be anything else than the dtype of plain values.
"""

import ast
import struct
import zipfile
import zlib
from typing import Any, BinaryIO, Dict

import numpy as np

from .packed import dtype_of
from .untrusted import open_untrusted

__all__ = ["read_npz"]

_MAGIC = b"\x93NUMPY"
_LENGTHS = {1: struct.Struct("<H"), 2: struct.Struct("<I"), 3: struct.Struct("<I")}
_MAX_HEADER_BYTES = 1 << 16
_LOCAL = struct.Struct("<4s22xHH")  # of a member: the magic number, lengths of name and extra field
_END_BYTES = (22, 22 + 20 + 56)  # behind the list of members: of an archive, and of a large one
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ArithmeticError,
    EOFError,
    LookupError,
    NotImplementedError,  # of zipfile, for methods of compression
    RecursionError,
    RuntimeError,  # of zipfile, for a password
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)


def read_npz(path: str) -> Dict[str, np.ndarray]:
    """Returns all arrays of an archive by name.

    Raises:
      ValueError: it is damaged, or something else.
      OSError: it cannot be read.
    """
    with open_untrusted(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_complete(archive, file)
                found = {}
                for info in archive.infolist():
                    name = info.filename
                    if not name.endswith(".npy") or name[:-4] in found:
                        raise ValueError(f"{name[:100]!r} is not an array")
                    found[name[:-4]] = _array_of(archive.read(info))
                return found
        except OSError as error:
            if error.errno is not None and error.filename is None and error.errno != 22:
                raise  # of the disk
            raise ValueError(str(error)) from error  # a position before the begin of the file
        except _DAMAGE as error:
            raise ValueError(str(error) or type(error).__name__) from error


def _check_complete(archive: zipfile.ZipFile, file: BinaryIO) -> None:
    """Raises ValueError unless the members fill the archive: one that is missing leaves a gap."""
    position = 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        if info.header_offset != position or info.flag_bits & ~0x800:
            raise ValueError("its list of members is incomplete, or one is encrypted or streamed")
        file.seek(position)
        magic, name, extra = _LOCAL.unpack(file.read(_LOCAL.size))
        if magic != b"PK\x03\x04":
            raise ValueError("a member is missing")
        position += _LOCAL.size + name + extra + info.compress_size
    file.seek(0, 2)
    listed = sum(46 + len(i.orig_filename.encode()) + len(i.extra) for i in archive.infolist())
    if archive.comment or file.tell() - position - listed not in _END_BYTES:
        raise ValueError("its list of members is incomplete")


def _array_of(data: bytes) -> np.ndarray:
    """Returns the array of the bytes of an `.npy` file."""
    version = data[6] if data[:6] == _MAGIC else 0
    length = _LENGTHS[version]
    begin = 8 + length.size
    (size,) = length.unpack_from(data, 8)
    if size > _MAX_HEADER_BYTES or begin + size > len(data):
        raise ValueError("an array with a header of a wrong size")
    header = ast.literal_eval(
        data[begin : begin + size].decode("utf-8" if version == 3 else "latin1")
    )
    dtype, order, shape = dtype_of(header["descr"]), header["fortran_order"], header["shape"]
    if type(order) is not bool or not _is_shape(shape):
        raise ValueError(f"an array of the shape {str(shape)[:100]}")
    count = 1
    for length_of_axis in shape:
        count *= length_of_axis
    if count * dtype.itemsize != len(data) - begin - size:
        raise ValueError(f"an array of {dtype} {shape} in {len(data) - begin - size} bytes")
    if not count:
        return np.zeros(shape, dtype)
    array = np.frombuffer(data, dtype, count, begin + size).copy()
    return array.reshape(shape, order="F" if order else "C")


def _is_shape(shape: Any) -> bool:
    is_tuple = type(shape) is tuple and len(shape) <= 32
    return is_tuple and all(type(size) is int and size >= 0 for size in shape)
