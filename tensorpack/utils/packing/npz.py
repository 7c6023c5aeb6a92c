"""Reads and writes `.npz` archives; one to read may be damaged or come from elsewhere.

An archive gives all its arrays or an error. No member is unpickled, and no text of the file reaches
numpy that could be anything else than the dtype of plain values. Dictionaries of arrays in `.npy`
files, as weights were kept in 2017, are read too, without running code.
"""

import errno
import re
import struct
import zipfile
from typing import Any, BinaryIO, Dict, Mapping

import numpy as np

from .old_values import array_of, decode_old
from .packed_arrays import dtype_of

NAMED_ARRAYS = (".npz", ".npy")  # how the names of files end that `read_npz` reads

_MAGIC = b"\x93NUMPY"
_LENGTHS = {1: struct.Struct("<H"), 2: struct.Struct("<I"), 3: struct.Struct("<I")}
_MAX_HEADER_BYTES = 1 << 16
# As numpy writes it; numbers of Python 2 end with L.
_HEADER = re.compile(
    rb"\{'descr': ?'([ -&(-~]+)', ?'fortran_order': ?(True|False), ?"
    rb"'shape': ?\(((?:[0-9]{1,18}L?,? ?){0,32})\),? ?\}\s*"
)
_NUMBER = re.compile(rb"[0-9]+")
_LOCAL = struct.Struct("<4s22xHH")  # of a member: the magic number, lengths of name and extra field
_LISTED_BYTES = 46  # of a member in the list, without its name and extra field
_UTF8 = 0x800  # the flag of members with such names
_FLAGS = _UTF8 | 0x6  # the others that may be set tell how well a member is compressed
_END_BYTES = (22, 22 + 20 + 56)  # after the list of members: of an archive, and of a large one


def write_npz(file: Any, arrays: Mapping[str, Any]) -> None:
    """Writes arrays by any names, some of which `np.savez` has itself; bfloat16 as float32."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            array = np.asanyarray(array)
            if array.dtype.name == "bfloat16":  # which numpy itself cannot read
                array = array.astype(np.float32)
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_npz(path: str) -> Dict[str, np.ndarray]:
    """Returns all arrays of an archive, or of a dictionary in an `.npy` file, by name.

    Raises:
      ValueError: it is damaged, or has anything else.
    """
    with open(path, "rb") as file:
        try:
            if file.read(len(_MAGIC)) == _MAGIC:
                return _checked_arrays(array_of_npy(_MAGIC + file.read(), objects=True))
            with zipfile.ZipFile(file) as archive:
                _check_complete(archive, file)
                found = {}
                for info in archive.infolist():
                    name = info.filename
                    if not name.endswith(".npy") or name[:-4] in found:
                        raise ValueError(f"{name[:100]!r} is not an array")
                    found[name[:-4]] = array_of_npy(archive.read(info))
                return found
        except Exception as error:  # damaged bytes can make zipfile fail in almost every way
            # EINVAL: of a position before the begin of the file.
            of_system = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
            if of_system or isinstance(error, MemoryError):
                raise
            raise ValueError(str(error) or type(error).__name__) from error


def _checked_arrays(found: np.ndarray) -> Dict[str, np.ndarray]:
    """Returns the dictionary of arrays that is the one element of an array."""
    named = None if found.ndim or not found.dtype.hasobject else found.item()
    if not isinstance(named, dict) or not named:
        raise ValueError(f"an array of {found.dtype} {found.shape}, and no dictionary of arrays")
    for name, each in named.items():
        is_array = isinstance(each, (int, float, np.generic, np.ndarray))
        if not isinstance(name, str) or not is_array or np.asarray(each).dtype.hasobject:
            raise ValueError(f"{name!r:.99} is {type(each).__name__}, and not an array by its name")
    return {name: np.asarray(each) for name, each in named.items()}


def _check_complete(archive: zipfile.ZipFile, file: BinaryIO) -> None:
    """Raises ValueError unless the members fill the archive: one that is missing leaves a gap."""
    position = 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        if info.header_offset != position or info.flag_bits & ~_FLAGS:
            raise ValueError("its list of members is incomplete, or one is encrypted or streamed")
        file.seek(position)
        magic, name_bytes, extra = _LOCAL.unpack(file.read(_LOCAL.size))
        if magic != b"PK\x03\x04":
            raise ValueError("a member is missing")
        position += _LOCAL.size + name_bytes + extra + info.compress_size
    file.seek(0, 2)
    listed = 0
    for info in archive.infolist():
        name = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")
        listed += _LISTED_BYTES + len(name) + len(info.extra)
    if archive.comment or file.tell() - position - listed not in _END_BYTES:
        raise ValueError("its list of members is incomplete")


def array_of_npy(data: bytes, objects: bool = False, trusted: bool = False) -> np.ndarray:
    """Returns the array of the bytes of an `.npy` file, which may have `objects`, and any if they
    are `trusted`, see `decode_old`.

    Raises:
      BadRecord, RefusedRecord: these are damaged or refused.
      LookupError, ValueError: the rest is damaged, or has objects.
    """
    version = data[6] if data[:6] == _MAGIC else 0
    length = _LENGTHS[version]
    begin = 8 + length.size
    (size,) = length.unpack_from(data, 8)
    if size > _MAX_HEADER_BYTES or begin + size > len(data):
        raise ValueError("an array with a header of a wrong size")
    header = _HEADER.fullmatch(data[begin : begin + size])
    if header is None:
        raise ValueError(f"an array with the header {data[begin : begin + size][:100]!r}")
    if objects and header.group(1) == b"|O":
        found = decode_old(data[begin + size :], trusted)
        if not isinstance(found, np.ndarray):
            raise ValueError(f"a pickled {type(found).__name__}, not an array")
        return found
    dtype = dtype_of(header.group(1).decode("ascii"))
    shape = tuple(int(number) for number in _NUMBER.findall(header.group(3)))
    order = "F" if header.group(2) == b"True" else "C"
    return array_of(memoryview(data)[begin + size :], dtype, shape, order)
