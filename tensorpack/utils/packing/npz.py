"""Reads and writes `.npz` archives; one to read may be damaged or come from elsewhere.

An archive gives all its arrays or an error, and no member is unpickled. Dictionaries of arrays in
`.npy` files, as weights were kept in 2017, are read too, without running code.
"""

import io
import zipfile
from typing import Any, Dict, Mapping

import numpy as np

from .old_values import decode_old

NAMED_ARRAYS = (".npz", ".npy")  # how the names of files end that `read_npz` reads

_MAGIC = b"\x93NUMPY"


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
    where = "no archive of arrays"
    with open(path, "rb") as file:
        try:
            if file.read(len(_MAGIC)) == _MAGIC:
                where = "no dictionary of arrays"
                arrays = array_of_npy(_MAGIC + file.read(), objects=True).item()
                arrays = {name: np.asarray(array) for name, array in arrays.items()}
                if any(type(name) is not str or arrays[name].dtype.hasobject for name in arrays):
                    raise ValueError(f"{list(arrays)} in it")
                return arrays
            arrays = {}
            with zipfile.ZipFile(file) as archive:
                for where in archive.namelist():
                    with archive.open(where) as member:
                        array = np.lib.format.read_array(member, allow_pickle=False)
                        member.read()  # up to its end, where the checksum is compared
                    arrays[where[: -len(".npy")]] = array
            file.seek(-12, io.SEEK_END)
            if len(arrays) % (1 << 16) != int.from_bytes(file.read(2), "little"):
                raise ValueError("its list of members is incomplete")
            return arrays
        except MemoryError:
            raise
        except Exception as error:  # damaged bytes can make zipfile fail in almost every way
            raise ValueError(f"{where}: {error or type(error).__name__}") from error


def array_of_npy(data: bytes, objects: bool = False, trusted: bool = False) -> np.ndarray:
    """Returns the array of the bytes of an `.npy` file. With `objects` it may have plain ones, see
    `decode_old`, and any if they are `trusted`.

    Raises ValueError if it is damaged or has others, and `BadRecord` and `RefusedRecord`.
    """
    file = io.BytesIO(data)
    if objects and data[:7] == _MAGIC + b"\1":
        file.seek(8)
        if np.lib.format.read_array_header_1_0(file)[2].hasobject:
            return np.asarray(decode_old(file.read(), trusted))
        file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
