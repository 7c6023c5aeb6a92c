"""Reads values that tensorpack wrote through msgpack in 2017.

Arrays are in them as the package msgpack_numpy writes them. Nothing but containers, numbers, text,
bytes and plain arrays comes out, and no code runs. (That package would unpickle arrays of objects.)
"""

from typing import Any, Dict

from tensorpack.utils.optional import require

from .arrays import array_of, plain_dtype
from .errors import BadRecord, RefusedRecord

__all__ = ["looks_like_msgpack", "unpack"]

# The first byte of a list or a dict: of up to 15 elements, of more, of many.
_CONTAINERS = frozenset([*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF])


def looks_like_msgpack(value: bytes) -> bool:
    """Whether the bytes begin as a list or a dict does."""
    return value[:1] != b"" and value[0] in _CONTAINERS


def unpack(value: bytes) -> Any:
    """Returns the object that was written.

    Raises:
      BadRecord: the bytes are damaged, or something else.
      RefusedRecord: there is an array in it that would have to be unpickled.
      ImportError: msgpack is not installed.
    """
    msgpack = require("msgpack")
    try:
        return msgpack.unpackb(
            value, object_hook=_restore, ext_hook=_no_extension, raw=False, strict_map_key=False
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise BadRecord(f"It is damaged, or was not written by tensorpack: {error}") from error


def _restore(found: Dict[Any, Any]) -> Any:
    if b"data" not in found:
        return found
    if b"nd" in found and b"type" in found:
        return _array(found)
    if found.get(b"complex") is True:
        return complex(_text(found[b"data"]))
    return found


def _array(found: Dict[Any, Any]) -> Any:
    if found.get(b"kind") in (b"O", "O"):
        raise RefusedRecord(
            "It has an array of objects, which is a pickle. Write the file anew where it was made, "
            "with arrays of numbers or text."
        )
    dtype, data = plain_dtype(found[b"type"]), found[b"data"]
    if not found[b"nd"]:
        return array_of(data, dtype, ())[()]
    return array_of(data, dtype, found.get(b"shape"))


def _text(data: Any) -> str:
    return data.decode("ascii") if isinstance(data, bytes) else data


def _no_extension(code: int, data: bytes) -> Any:
    raise BadRecord(f"It has a msgpack extension {code}, which tensorpack did not write.")
