"""Reads and writes `.npz` archives; one to read may be damaged or come from elsewhere.

An archive gives all its arrays or an error. No member is unpickled. Dictionaries of arrays in
`.npy` files, as weights were kept in 2017, are read too, without running code.
"""

import errno
import io
import os
import zipfile
from typing import Any, Dict, Mapping

import numpy as np

from .old_values import decode_old

NAMED_ARRAYS = (".npz", ".npy")  # how the names of files end that `read_npz` reads

_MAGIC = b"\x93NUMPY"
_AFTER_COUNT = 12  # bytes of an archive from the number of its members on


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
                file.seek(-_AFTER_COUNT, os.SEEK_END)  # zipfile itself misses no member
                count = int.from_bytes(file.read(2), "little")
                if archive.comment or len(archive.infolist()) % (1 << 16) != count:
                    raise ValueError("its list of members is incomplete")
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


def array_of_npy(data: bytes, objects: bool = False, trusted: bool = False) -> np.ndarray:
    """Returns the array of the bytes of an `.npy` file, which may have `objects`, and any if they
    are `trusted`, see `decode_old`.

    Raises:
      BadRecord, RefusedRecord: these are damaged or refused.
      ValueError: the rest is damaged, or has objects.
    """
    file = io.BytesIO(data)
    if objects and np.lib.format.read_magic(file) == (1, 0):
        _, _, dtype = np.lib.format.read_array_header_1_0(file)
        if dtype.hasobject:
            found = decode_old(file.read(), trusted)
            if not isinstance(found, np.ndarray):
                raise ValueError(f"a pickled {type(found).__name__}, not an array")
            return found
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
