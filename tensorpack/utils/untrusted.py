"""Reads files that another person may have made: regular files of a bounded size, no links.

A log directory or a checkpoint that was copied from elsewhere can hold a link to another file, a
FIFO on which a read waits for ever, a device, or far more than fits into memory. None of them is
read.
"""

import errno
import hashlib
import json
import os
import stat
from typing import Any, BinaryIO, Optional, Tuple

_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
_ADVICE = "remove it, or use another directory"
_MOST_PARTS = 500000  # lists and objects in JSON, of which an empty one may take 250 bytes
_MOST_DIGITS = 50  # a seed of the operating system, in the record of a run, has 39
_PIECE_BYTES = 1 << 20  # hashed while the processor still has it in its cache


class UnsafeFile(OSError):
    """A path is a link, a FIFO, a device, a directory, or a file larger than expected."""


def open_regular(path: str, flags: int) -> int:
    """Opens a regular file with flags such as `os.O_RDONLY`, and returns its descriptor.

    A link in the last part of the path is refused; those before it are followed.

    Raises:
      UnsafeFile: it is not a regular file, or cannot be the name of one.
    """
    try:
        descriptor = os.open(path, flags | sum(getattr(os, name, 0) for name in _FLAGS), 0o666)
    except ValueError as error:  # a NUL in the name
        raise UnsafeFile(errno.EINVAL, f"Not the name of a file ({error})", repr(path)) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.ENAMETOOLONG):
            reason = "A symbolic link" if os.path.islink(path) else "Not a regular file"
            raise UnsafeFile(errno.EINVAL, f"{reason}; {_ADVICE}", path[:200]) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnsafeFile(errno.EINVAL, f"Not a regular file; {_ADVICE}", path)
    return descriptor


def open_untrusted(path: str, max_bytes: Optional[int] = None) -> BinaryIO:
    """Opens a regular file for reading bytes, unbuffered.

    Raises:
      UnsafeFile: as `open_regular` does, or it has more than `max_bytes`.
    """
    file = os.fdopen(open_regular(path, os.O_RDONLY), "rb", buffering=0)
    size = os.fstat(file.fileno()).st_size
    if max_bytes is not None and size > max_bytes:
        file.close()
        reason = f"{size} bytes, at most {max_bytes} are expected; {_ADVICE}"
        raise UnsafeFile(errno.EFBIG, reason, path)
    return file


def read_untrusted(path: str, max_bytes: int) -> bytes:
    """Returns the content of a regular file."""
    with open_untrusted(path, max_bytes) as file:
        return file.read()


def hash_untrusted(path: str, memory: Optional[Any] = None) -> Tuple[int, str]:
    """Reads a regular file once, from beginning to end.

    `memory`, a writable buffer of bytes, receives as much of the content as it can hold; the file
    is read no further. Returns how many bytes were read, and their hexadecimal SHA-256.
    """
    digest, size = hashlib.sha256(), 0
    piece = memoryview(bytearray(_PIECE_BYTES)) if memory is None else memoryview(memory)
    with open_untrusted(path) as file:
        while True:
            view = piece if memory is None else piece[size : size + _PIECE_BYTES]
            count = file.readinto(view) if len(view) else 0  # type: ignore[attr-defined]
            if not count:
                return size, digest.hexdigest()
            digest.update(view[:count])
            size += count


def parse_json(data: bytes) -> Any:
    """Returns what JSON says that another person may have written.

    Raises:
      ValueError: it is not JSON, or would take far more time or memory than its size tells.
    """
    if data.count(b"[") + data.count(b"{") > _MOST_PARTS:
        raise ValueError(f"more than {_MOST_PARTS} lists and objects")
    try:
        return json.loads(data.decode("utf-8"), parse_int=_integer)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:  # thousands of them take Python long, or raise
        raise ValueError("a number of too many digits")
    return int(digits)
