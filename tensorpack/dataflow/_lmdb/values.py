"""Decodes the values of LMDB files that tensorpack wrote, now or earlier.

Now they are frames of `tensorpack.utils.serialize`, with a version and a checksum. In old files
they are msgpack or pickles, without either, so damage is found there only where it breaks the
structure. Which of them a value is, its first bytes tell; nothing is tried one after the other.
"""

from typing import Any

from tensorpack.utils.serialize import FrameError, loads

from .errors import BadRecord, RefusedRecord
from .msgpack import looks_like_msgpack, unpack
from .pickle import looks_like_pickle, unpickle

__all__ = ["decode_value"]


def decode_value(value: bytes, is_new: bool, allow_pickle: bool) -> Any:
    """Returns the datapoint that a value holds.

    Args:
      value: the bytes.
      is_new: whether the file says that it holds frames, so that all else is damage.
      allow_pickle: whether pickles are read.

    Raises:
      BadRecord: it is damaged, or is no datapoint of tensorpack.
      RefusedRecord: it is a pickle, and those are not read.
    """
    if not is_new and looks_like_pickle(value):
        if not allow_pickle:
            raise RefusedRecord(
                "It is a pickle, as old versions of tensorpack wrote them. If you trust the file, "
                "pass allow_pickle=True, or convert it once by convert_old_lmdb(old, new, "
                "allow_pickle=True)."
            )
        return unpickle(value)
    if not is_new and looks_like_msgpack(value):
        return unpack(value)
    try:
        return loads(value)
    except FrameError as error:
        raise BadRecord(str(error)) from error
