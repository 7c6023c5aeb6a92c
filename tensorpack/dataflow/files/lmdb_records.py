"""The records of an LMDB file as a list, which opens the file when an element is asked for.

tensorpack numbers its keys, `00000000`, `00000001` and so on, and puts a list of them under
`__keys__`, as it was in 2017. Files of this version say in a record `__tensorpack__` how many there
are, and what the values are. In files of other programs all keys are read.
"""

import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from tensorpack.utils import logger
from tensorpack.utils.old_values import BadRecord, RefusedRecord, decode_old, kind_of_old
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import FrameError, load_frame

from .lmdb_open import DamagedLMDB, OpenFile, data_file, open_shared, probe
from .records import PathLike, decode_value

HEADER_KEY = b"__tensorpack__"
LIST_KEY = b"__keys__"
KEY_FORMAT = "{:08d}"

VERSION = 1
CODEC = "frame"  # of tensorpack.utils.serialize

WantedKeys = Union[None, str, Sequence[Union[bytes, str]]]


class FormattedKeys(Sequence[bytes]):
    """The keys that a format makes of 0, 1, 2 and so on; takes no memory."""

    def __init__(self, form: str, count: int) -> None:
        self._form, self._numbers = form, range(count)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        return self._form.format(self._numbers[index]).encode()


class Records(Sequence[Any]):
    """The records as a list of `[key, value]`; can be sent to another process.

    Where the file is opened again and has changed in between, it is checked again.
    """

    def __init__(
        self,
        path: PathLike,
        keys: WantedKeys = None,
        readahead: bool = True,
        probed: bool = True,
        allow_pickle: bool = False,
    ) -> None:
        """Takes what `LMDBData` does; `readahead` if records are read in the order of the file."""
        require("lmdb")
        self.path = data_file(path)
        self._allow_pickle = allow_pickle
        self._wanted = _check_wanted(keys)
        self._readahead = readahead
        self._probed = probed
        self._checked: Any = None  # what was checked, see `_check`
        self._file: Optional[OpenFile] = None
        self._keys: Optional[Sequence[bytes]] = None
        self._count: Any = ...  # what the header says, once it is read
        self._announced = False
        self._check()

    def __len__(self) -> int:
        return len(self._found_keys(self.file()))

    def __getitem__(self, index: Any) -> Any:
        """Returns one element; raises `DamagedLMDB` where it is missing or damaged."""
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
        return self.datapoint_count() is not None

    def datapoint_count(self) -> Optional[int]:
        """Returns how many datapoints the header of the file names; None without a header."""
        if self._count is ...:
            self._count = _read_header(self.file())
        return self._count

    def close(self) -> None:
        """Closes the file, unless another list reads it too. It is opened again when needed."""
        self._file = None

    def __getstate__(self) -> Dict[str, Any]:
        # Neither an open file nor what takes much memory and is quickly found again.
        return {**self.__dict__, "_file": None, "_keys": None, "_count": ...}

    def _check(self) -> None:
        status = os.stat(self.path)
        found = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        if found != self._checked:
            if self._probed:
                probe(self.path)
            self._checked, self._keys, self._count = found, None, ...

    def _found_keys(self, file: OpenFile) -> Sequence[bytes]:
        keys = self._keys
        if keys is None:
            keys = self._keys = self._find_keys(file)
            if not self._announced:
                self._announced = True
                logger.info("%s", f"Found {len(keys)} entries in {self.path}")
        return keys

    def _find_keys(self, file: OpenFile) -> Sequence[bytes]:
        if isinstance(self._wanted, str):
            others = sum(file.get(key) is not None for key in (HEADER_KEY, LIST_KEY))
            return FormattedKeys(self._wanted, file.entries() - others)
        if self._wanted is not None:
            return self._wanted
        count = self.datapoint_count()
        if count is not None:
            return FormattedKeys(KEY_FORMAT, count)
        if file.entries() == 0:
            raise DamagedLMDB(file.path, "There are no records in it.")
        keys = self._listed_keys(file.get(LIST_KEY) or b"")
        if keys is None:
            logger.warning(
                "%s",
                f"{file.path} has no list of keys that can be read: all its keys are read now, in "
                "the order of the file.",
            )
            keys = [key for key in file.keys() if key not in (HEADER_KEY, LIST_KEY)]
        return keys

    def _listed_keys(self, value: bytes) -> Optional[List[bytes]]:
        try:
            return _as_keys(decode_old(value)) if kind_of_old(value) else None
        except (BadRecord, RefusedRecord):
            return None


class Datapoints(Records):
    """The datapoints that the values of a file of tensorpack hold."""

    def _element(self, key: bytes, value: bytes) -> Any:
        return decode_value(value, self.is_new(), self._allow_pickle)


def _read_header(file: OpenFile) -> Optional[int]:
    value = file.get(HEADER_KEY)
    if value is None:
        return None
    try:
        header = load_frame(value)
    except FrameError as error:
        raise DamagedLMDB(file.path, str(error), HEADER_KEY) from error
    fields = header if isinstance(header, dict) else {}
    version, codec, count = map(fields.get, ("version", "codec", "count"))
    if type(version) is not int or type(codec) is not str or type(count) is not int or count < 0:
        raise DamagedLMDB(file.path, f"This is not a header: {header!r:.200}.", HEADER_KEY)
    if (version, codec) != (VERSION, CODEC):
        raise ValueError(
            f"{file.path} has version {version} (values: {codec}), but only version {VERSION} "
            f"({CODEC}) is known here. Update tensorpack to read it."
        )
    found = file.entries() - 2  # without this record, and the list of keys
    if found != count:
        raise DamagedLMDB(
            file.path, f"It was written with {count} datapoints, but has {found}.", HEADER_KEY
        )
    return count


def _check_wanted(wanted: WantedKeys) -> Union[None, str, List[bytes]]:
    """Returns the argument `keys`, with keys as bytes."""
    if wanted is None:
        return None
    if isinstance(wanted, str):
        try:
            differ = wanted.format(0) != wanted.format(1)
        except (LookupError, ValueError):
            differ = False
        if not differ:
            raise ValueError(f"keys is a format for numbers such as {{:08d}}, but got {wanted!r}.")
        return wanted
    is_list = isinstance(wanted, Iterable) and not isinstance(wanted, (bytes, dict))
    keys = _as_keys(list(wanted)) if is_list else None
    if keys is None:
        raise TypeError(f"keys is a list of bytes or text, or a format, but got {wanted!r:.80}.")
    return keys


def _as_keys(found: Any) -> Optional[List[bytes]]:
    if not isinstance(found, list):
        return None
    keys = [key.encode() if isinstance(key, str) else key for key in found]
    return keys if all(isinstance(key, bytes) for key in keys) else None
