"""The records of an LMDB file as a list, which opens the file when an element is asked for.

The list is what flows share out, shuffle and keep the position in; it can be sent to another
process, where the file is opened anew.
"""

import os
from typing import Any, Dict, Optional, Sequence

from tensorpack.utils import logger
from tensorpack.utils.optional import require

from .._files import PathLike, RecordsFlow
from .env import OpenFile, open_shared
from .errors import BadRecord, DamagedLMDB, RefusedRecord
from .keys import HEADER_KEY, LIST_KEY, WantedKeys, check_wanted, find_keys, read_header
from .probe import Identity, check_header, data_file, identity, probe

__all__ = ["LMDBFlow", "Records"]


class Records(Sequence[Any]):
    """The records as a list of `[key, value]`; a subclass makes something else of the two.

    The file must not be written to as long as it is in use. Where it is opened again and has
    changed in between, it is checked again.

    Attributes:
      path: the data file.
      allow_pickle: whether a list of keys that is a pickle is read.
    """

    allow_pickle = False

    def __init__(
        self, path: PathLike, keys: WantedKeys = None, readahead: bool = True, probed: bool = True
    ) -> None:
        """
        Args:
          path: of a data file, or of the directory that has it.
          keys: which records, in which order; see `LMDBData`.
          readahead: whether they will be read in the order of the file.
          probed: whether the file is checked before it is opened; see `probe`.

        Raises:
          ImportError: lmdb is not installed.
          FileNotFoundError: there is no such file.
          DamagedLMDB: it was checked, and is damaged.
        """
        require("lmdb")
        self.path = data_file(path)
        self._wanted = check_wanted(keys)
        self._readahead = readahead
        self._probed = probed
        self._identity: Optional[Identity] = None
        self._file: Optional[OpenFile] = None
        self._keys: Optional[Sequence[bytes]] = None
        self._is_new: Optional[bool] = None
        self._announced = False
        self._check()

    def __len__(self) -> int:
        return len(self._found_keys(self.file()))

    def __getitem__(self, index: Any) -> Any:
        """Returns one element.

        Raises:
          DamagedLMDB: the record is missing or damaged.
          ValueError: it is a pickle, and those are not allowed.
        """
        file = self.file()
        key = self._found_keys(file)[index]
        value = file.get(key)
        if value is None:
            raise DamagedLMDB(self.path, self._why_missing(file), key)
        try:
            return self._element(key, value)
        except BadRecord as error:
            raise DamagedLMDB(self.path, str(error), key) from error
        except RefusedRecord as error:
            raise ValueError(f"{self.path}, key {key!r}: {error}") from error

    def _element(self, key: bytes, value: bytes) -> Any:
        return [key, value]

    def _why_missing(self, file: OpenFile) -> str:
        if self._wanted is None:
            return "There is no such key, though the file itself names it."
        known = [key for key in file.keys(3) if key not in (HEADER_KEY, LIST_KEY)]
        such = f" The file has keys such as {known[0]!r}." if known else ""
        return (
            f"There is no such key, which the argument `keys` asks for.{such} Give those, or leave "
            "`keys` out if tensorpack wrote the file."
        )

    def file(self) -> OpenFile:
        """Returns the file, opened in this process."""
        file = self._file
        if file is None or file.pid != os.getpid():
            self._check()
            file = self._file = open_shared(self.path, self._readahead)
        return file

    def is_new(self) -> bool:
        """Whether the file was written by this version, so that each value has a checksum."""
        if self._is_new is None:
            self._is_new = read_header(self.file()) is not None
        return self._is_new

    def close(self) -> None:
        """Lets go of the file. It is opened again when it is needed."""
        self._file = None

    def __getstate__(self) -> Dict[str, Any]:
        # Neither an open file nor what takes much memory and is quickly found again.
        return {**self.__dict__, "_file": None, "_keys": None}

    def _check(self) -> None:
        found = identity(self.path)
        if found != self._identity:
            check_header(self.path)
            if self._probed:
                probe(self.path)
            self._identity, self._keys, self._is_new = found, None, None

    def _found_keys(self, file: OpenFile) -> Sequence[bytes]:
        keys = self._keys
        if keys is None:
            keys = self._keys = find_keys(file, self._wanted, self.allow_pickle)
            if not self._announced:
                self._announced = True
                logger.info("%s", f"Found {len(keys)} entries in {self.path}")
        return keys


class LMDBFlow(RecordsFlow):
    """A flow of the elements of `Records`, which lets go of the file when it is closed."""

    lst: Records

    def close(self) -> None:
        """Closes the file, unless another flow reads it too; it is opened again when needed."""
        self.lst.close()
