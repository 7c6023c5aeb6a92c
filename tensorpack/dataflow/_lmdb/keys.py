"""Which keys the datapoints of an LMDB file have.

tensorpack numbers them, `00000000`, `00000001` and so on, and puts a list of them under
`__keys__`, for those who read the file without it. Files written by this version say how many
there are, and what the values are, in a record `__tensorpack__`. In files of others, and where the
list is a pickle that is not to be read, all keys are read.
"""

from typing import Any, Iterable, List, Optional, Sequence, Union

from tensorpack.utils import logger
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import FrameError, dumps, loads

from .env import OpenFile
from .errors import BadRecord, DamagedLMDB, RefusedRecord
from .msgpack import looks_like_msgpack, unpack
from .pages import PageError, is_known_format, read_keys
from .pickle import looks_like_pickle, unpickle

__all__ = [
    "FormattedKeys",
    "HEADER_KEY",
    "KEY_FORMAT",
    "LIST_KEY",
    "WantedKeys",
    "check_wanted",
    "find_keys",
    "make_header",
    "make_list",
    "read_header",
]

HEADER_KEY = b"__tensorpack__"
LIST_KEY = b"__keys__"
KEY_FORMAT = "{:08d}"

_VERSION = 1
_CODEC = "frame"  # of tensorpack.utils.serialize

WantedKeys = Union[None, str, Sequence[Union[bytes, str]]]


class FormattedKeys(Sequence[bytes]):
    """The keys that a format makes of 0, 1, 2 and so on; takes no memory."""

    def __init__(self, form: str, count: int) -> None:
        """
        Args:
          form: such as "{:08d}".
          count: how many there are.
        """
        self._form = form
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < self._count:
            raise IndexError(f"Key {index} of {self._count}.")
        return self._form.format(index).encode()


def make_list(count: int) -> bytes:
    """Returns the value of `__keys__` in a file of `count` datapoints, as it was in 2017."""
    keys = FormattedKeys(KEY_FORMAT, count)
    return require("msgpack").packb([keys[number] for number in range(count)], use_bin_type=True)


def make_header(count: int) -> bytes:
    """Returns the value of `__tensorpack__` in a file of `count` datapoints."""
    return dumps({"version": _VERSION, "codec": _CODEC, "count": count})


def read_header(file: OpenFile) -> Optional[int]:
    """Returns how many datapoints the file says that it has, or None if it does not say so.

    Raises:
      DamagedLMDB: the record is damaged, or contradicts the file.
      ValueError: the file was written by a later version.
    """
    value = file.get(HEADER_KEY)
    if value is None:
        return None
    try:
        header = loads(value)
    except FrameError as error:
        raise DamagedLMDB(file.path, str(error), HEADER_KEY) from error
    count = _count_of(header)
    if count is None:
        raise DamagedLMDB(file.path, f"This is not a header: {header!r:.200}.", HEADER_KEY)
    if header["version"] != _VERSION or header["codec"] != _CODEC:
        raise ValueError(
            f"{file.path} has version {header['version']} (values: {header['codec']}), but only "
            f"version {_VERSION} ({_CODEC}) is known here. Update tensorpack to read it."
        )
    found = file.entries() - 2  # this record, and the list of keys
    if found != count:
        raise DamagedLMDB(
            file.path, f"It was written with {count} datapoints, but has {found}.", HEADER_KEY
        )
    return count


def _count_of(header: Any) -> Optional[int]:
    if not isinstance(header, dict) or not isinstance(header.get("codec"), str):
        return None
    numbers = header.get("version"), header.get("count")
    if any(type(number) is not int or number < 0 for number in numbers):
        return None
    return numbers[1]


def check_wanted(wanted: WantedKeys) -> Union[None, str, List[bytes]]:
    """Returns what a user gave as `keys`, with keys as bytes.

    Raises:
      TypeError: it is neither None, a format, nor a list of keys.
      ValueError: the format makes the same key of every number.
    """
    if wanted is None:
        return None
    if isinstance(wanted, str):
        return _checked_format(wanted)
    is_list = isinstance(wanted, Iterable) and not isinstance(wanted, (bytes, dict))
    keys = _as_keys(list(wanted)) if is_list else None
    if keys is None:
        raise TypeError(f"keys is a list of bytes or text, or a format, but got {wanted!r:.80}.")
    return keys


def _checked_format(form: str) -> str:
    try:
        differ = form.format(0) != form.format(1)
    except (LookupError, ValueError):
        differ = False
    if not differ:
        raise ValueError(f"keys is a format for numbers such as {{:08d}}, but got {form!r}.")
    return form


def find_keys(
    file: OpenFile, wanted: Union[None, str, List[bytes]], allow_pickle: bool = False
) -> Sequence[bytes]:
    """Returns the keys of the datapoints.

    Args:
      file: where they are.
      wanted: the keys themselves, or their format, or None to have them found.
      allow_pickle: whether a list that is a pickle is read.

    Raises:
      DamagedLMDB: what says so in the file is damaged, or there is nothing in it.
    """
    if isinstance(wanted, str):
        others = sum(file.get(key) is not None for key in (HEADER_KEY, LIST_KEY))
        return FormattedKeys(wanted, file.entries() - others)
    if wanted is not None:
        return wanted
    count = read_header(file)
    if count is not None:
        return FormattedKeys(KEY_FORMAT, count)
    if file.entries() == 0:
        raise DamagedLMDB(file.path, "There are no records in it.")
    keys = _listed_keys(file, allow_pickle)
    if keys is None:
        logger.warning("%s", f"{file.path} {_why_not_listed(file, allow_pickle)}")
        keys = [key for key in _all_keys(file) if key not in (HEADER_KEY, LIST_KEY)]
    return keys


def _listed_keys(file: OpenFile, allow_pickle: bool) -> Optional[List[bytes]]:
    value = file.get(LIST_KEY) or b""
    try:
        if looks_like_pickle(value):
            return _as_keys(unpickle(value)) if allow_pickle else None
        if looks_like_msgpack(value):
            return _as_keys(unpack(value))
    except (BadRecord, RefusedRecord):
        pass
    return None


def _why_not_listed(file: OpenFile, allow_pickle: bool) -> str:
    if not allow_pickle and looks_like_pickle(file.get(LIST_KEY) or b""):
        return (
            "has a pickled list of keys, which is not read: all its keys are read now, and come in "
            "the order of the file. LMDBDataPoint(path, allow_pickle=True) reads the list."
        )
    return "has no list of keys that can be read: all its keys are read now."


def _as_keys(found: Any) -> Optional[List[bytes]]:
    if not isinstance(found, list):
        return None
    keys = [key.encode() if isinstance(key, str) else key for key in found]
    return keys if all(isinstance(key, bytes) for key in keys) else None


def _all_keys(file: OpenFile) -> List[bytes]:
    try:
        with open(file.path, "rb") as pages:
            if is_known_format(pages):
                return list(read_keys(pages))
    except PageError as error:
        raise DamagedLMDB(file.path, error.reason, offset=error.offset) from error
    return file.keys()
