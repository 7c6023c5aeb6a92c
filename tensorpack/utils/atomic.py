"""Writes files that exist whole or not at all, and keeps what they replace under another name."""

import itertools
import math
import os
import re
import shutil
import time
from contextlib import contextmanager, suppress
from typing import BinaryIO, Iterator

_TEMPORARY = re.compile(r"\..+\.[0-9]+-[0-9a-f]{8}\.tmp", re.DOTALL)
_DAY_SECONDS = 86400


def fsync_path(path: str) -> None:
    """Waits until a file, or the list of names in a directory, is on the disk.

    After a rename, call it for the directory: only then the new name survives a crash.

    Raises:
      OSError: it may not be. Write the data again, to another file: the system reports such an
        error once, and a second try on the same data as a success.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: str) -> None:
    """Makes a directory, and those that it is in, where it is missing, and waits for its name."""
    if not os.path.isdir(path):
        os.makedirs(path)
        fsync_path(os.path.dirname(os.path.abspath(path)))


@contextmanager
def open_atomic(path: str, sync_folder: bool = True) -> Iterator[BinaryIO]:
    """Opens a file for writing bytes that appears under its name, whole, at the end of the block.

    If the block raises, or the machine stops, the previous file is still there. The bytes and the
    name are on the disk when the block is left.

    Args:
      sync_folder: whether to wait for the name; without, a crash of the machine may bring the
        previous file back, and half of the time is saved.
    """
    path = os.path.abspath(path)  # also if the working directory changes in the block
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # the first error is the one to report
            os.unlink(temporary)
        raise
    if sync_folder:
        fsync_path(folder)


def remove_temporaries(folder: str, shared: bool = True) -> None:
    """Removes the files that `open_atomic` left in a directory where its process was killed.

    If it is `shared`, so another process may be writing there, what is less than a day old is kept.
    """
    newest = time.time() - _DAY_SECONDS if shared else math.inf
    for name in filter(_TEMPORARY.fullmatch, os.listdir(folder)):
        path = os.path.join(folder, name)
        with suppress(OSError):  # the next one tries again
            if os.path.getmtime(path) <= newest:
                os.unlink(path)


def write_atomic(path: str, data: bytes, sync_folder: bool = True) -> None:
    """Writes a file so that at any moment it has either the old content or the new one."""
    with open_atomic(path, sync_folder) as file:
        file.write(data)


def move_to_backup(path: str, suffix: str = "") -> str:
    """Renames a file or directory to the name of its backup, and returns that."""
    target = backup_name(path, suffix)
    os.rename(path, target)
    return target


def keep_backup(path: str, suffix: str = "") -> str:
    """Gives a file a second name, that of its backup, and returns that."""
    target = backup_name(path, suffix)
    try:
        os.link(path, target)
    except OSError:  # not every file system has a second name for a file
        with open(path, "rb") as source, open_atomic(target) as copy:
            shutil.copyfileobj(source, copy)
    return target


def backup_name(path: str, suffix: str = "") -> str:
    """Returns `{path}{suffix}`, by default `{path}.MMDD-HHMMSS`.

    Where that name is taken, the first free one of `-1`, `-2`, ... is appended.
    """
    base = path + (suffix or time.strftime(".%m%d-%H%M%S"))
    names = itertools.chain([base], (f"{base}-{number}" for number in itertools.count(1)))
    return next(name for name in names if not os.path.lexists(name))
