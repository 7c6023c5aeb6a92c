"""The event files of a directory: their names, their writers, and how to cut one."""

import os
import socket
import struct
import time
from itertools import islice
from typing import BinaryIO, Iterator, List, Optional

from google.protobuf.message import DecodeError

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.atomic import backup_name, fsync_path, write_atomic

_PREFIX = "events.out.tfevents."
_STAMP_DIGITS = 10
_MARK = "tensorpack TFEventWriter "
_DROPPED = "dropped-events"  # TensorBoard reads all files that have "tfevents" in their names
_HEADER = struct.Struct("<QI")  # of a record: how many bytes it has, and a checksum of that
_FOOTER_BYTES = 4  # after the bytes of a record, their checksum
_MARK_BYTES = 1 << 12  # a longer record is not a mark


def new_file(directory: str) -> str:
    """Returns a path that does not exist yet and is last in the order of names.

    The time in the name is later than that of any other event file of the directory, wherever the
    clock of the machine has jumped to: readers take the files in the order of their names.
    """
    begin, end = len(_PREFIX), len(_PREFIX) + _STAMP_DIGITS
    stamps = [name[begin:end] for name in event_files(directory)]
    taken = [int(stamp) for stamp in stamps if len(stamp) == _STAMP_DIGITS and stamp.isdigit()]
    stamp = max([int(time.time())] + [each + 1 for each in taken])
    return os.path.join(directory, f"{_PREFIX}{stamp:010d}.{socket.gethostname()}")


def mark_of(writer: str) -> tf.Event:
    """Returns the second record of a file, which names its writer. Readers skip it."""
    return tf.Event(session_log=tf.SessionLog(msg=_MARK + writer))


def marked_files(directory: str, writer: str = "") -> List[str]:
    """Returns the names of the files that a writer began, or any writer of ours, in order."""
    marks = {name: _mark_in(os.path.join(directory, name)) for name in event_files(directory)}
    if writer:
        return [name for name, mark in marks.items() if mark == _MARK + writer]
    return [name for name, mark in marks.items() if mark.startswith(_MARK)]


def drop_file(path: str) -> str:
    """Renames an event file to `dropped-events.MMDD-HHMMSS`; returns that."""
    target = backup_name(os.path.join(os.path.dirname(path), _DROPPED))
    os.rename(path, target)
    return target


def cut_file(path: str, size: int) -> Optional[str]:
    """Cuts an event file after its first `size` bytes.

    The rest is first copied to `dropped-events.MMDD-HHMMSS`, which is an event file too, and whose
    path is returned; None if nothing was cut, as always after an `OSError`. A file with fewer bytes
    is cut after its last complete record.
    """
    length = os.path.getsize(path)
    with open(path, "rb") as file:
        if length < size:
            size = sum(_record_sizes(file, length))
        if length == size:
            return None
        first_size = next(_record_sizes(file, size), 0)
        file.seek(0)
        first = file.read(first_size)  # names the format
        file.seek(size)
        rest = file.read()
    target = backup_name(os.path.join(os.path.dirname(path), _DROPPED))
    write_atomic(target, first + rest)
    os.truncate(path, size)
    fsync_path(path)
    return target


def event_files(directory: str) -> List[str]:
    """Returns the names of the event files of a directory, in order."""
    names = (name for name in os.listdir(directory) if name.startswith(_PREFIX))
    return sorted(name for name in names if os.path.isfile(os.path.join(directory, name)))


def _mark_in(path: str) -> str:
    if not os.access(path, os.R_OK):
        return ""  # of another user: this process can read what it writes
    with open(path, "rb") as file:
        sizes = list(islice(_record_sizes(file, os.path.getsize(path)), 2))
        if len(sizes) < 2 or sizes[1] > _MARK_BYTES:
            return ""
        file.seek(sizes[0] + _HEADER.size)
        data = file.read(sizes[1] - _HEADER.size - _FOOTER_BYTES)
    try:
        return str(tf.Event.FromString(data).session_log.msg)
    except DecodeError:  # not an event file
        return ""


def _record_sizes(file: BinaryIO, limit: int) -> Iterator[int]:
    """Yields the sizes of the leading records that end before a limit."""
    position = 0
    while True:
        file.seek(position)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        size = _HEADER.size + _HEADER.unpack(header)[0] + _FOOTER_BYTES
        if position + size > limit:
            return
        yield size
        position += size
