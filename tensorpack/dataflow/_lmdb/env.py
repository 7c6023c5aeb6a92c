"""Opens LMDB files for reading, each at most once in a process, whoever reads it.

liblmdb forbids to open a file twice in a process, and an open file must not be used in a process
that was forked. So flows ask here, and share what is open.
"""

import functools
import itertools
import mmap
import os
import threading
import weakref
from typing import Any, Dict, List, Optional, Tuple

from tensorpack.utils.optional import require

from .errors import DamagedLMDB

__all__ = ["OpenFile", "open_shared"]

_Key = Tuple[int, int]  # device and number of a file


class OpenFile:
    """An LMDB file, open in one process; closed when nobody holds it any more.

    It may be used by several threads.

    Attributes:
      path: the file.
      pid: the process in which it may be used.
    """

    def __init__(self, path: str, env: Any) -> None:
        self.path = path
        self.pid = os.getpid()
        self._env = env

    def get(self, key: bytes) -> Optional[bytes]:
        """Returns a copy of a value, or None if there is no such key.

        Raises:
          DamagedLMDB: liblmdb cannot read it.
        """
        try:
            with self._env.begin() as transaction:
                return transaction.get(key)
        except require("lmdb").Error as error:
            raise DamagedLMDB(self.path, f"LMDB cannot read it: {error}", key) from error

    def entries(self) -> int:
        """Returns the number of records, all counted."""
        return self._env.stat()["entries"]

    def keys(self, most: Optional[int] = None) -> List[bytes]:
        """Returns all keys in order, or the first ones. liblmdb reads their values for that.

        Raises:
          DamagedLMDB: liblmdb cannot read them.
        """
        try:
            with self._env.begin() as transaction, transaction.cursor() as cursor:
                return list(itertools.islice(cursor.iternext(keys=True, values=False), most))
        except require("lmdb").Error as error:
            raise DamagedLMDB(self.path, f"LMDB cannot read it: {error}") from error


class _OpenFiles:
    """The files that are open in this process; each is closed when nobody holds it any more."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # the end of a file may be noticed anywhere, here as well
        # Environments are held here too: one that goes away by itself cannot be waited for.
        self._files: Dict[_Key, Tuple[weakref.ReferenceType, Any]] = {}

    def open(self, path: str, readahead: bool) -> OpenFile:
        if self._pid != os.getpid():
            inherited = list(self._files.values())
            self._begin()  # the lock may have been held by a thread that is not here
            for _, env in inherited:
                env.close()
        with self._lock:
            status = os.stat(path)
            key = status.st_dev, status.st_ino
            # Taken out, so that nobody closes it meanwhile.
            reference, env = self._files.pop(key, (None, None))
            file = reference() if reference is not None else None
            if file is None:
                if env is None:
                    env = _open(path, status.st_size, readahead)
                file = OpenFile(path, env)
                reference = weakref.ref(file, functools.partial(self._close, key))
            self._files[key] = reference, env  # type: ignore[assignment]
            return file

    def _close(self, key: _Key, reference: weakref.ReferenceType) -> None:
        """Closes a file that nobody holds, unless somebody has just asked for it again."""
        if self._pid != os.getpid():
            return
        with self._lock:
            if key in self._files and self._files[key][0] is reference:
                self._files.pop(key)[1].close()


_open_files = _OpenFiles()


def open_shared(path: str, readahead: bool) -> OpenFile:
    """Returns the file, opened now or by somebody else in this process before.

    Args:
      path: of the data file.
      readahead: whether the system should read what follows a page in advance. Whoever opens the
        file first decides.

    Raises:
      DamagedLMDB: liblmdb cannot open it.
    """
    return _open_files.open(path, readahead)


def _open(path: str, size: int, readahead: bool) -> Any:
    lmdb = require("lmdb")
    try:
        return lmdb.open(
            path,
            subdir=False,
            readonly=True,
            create=False,
            lock=False,
            readahead=readahead,
            max_dbs=0,
            map_size=-(-size // mmap.PAGESIZE) * mmap.PAGESIZE,
        )
    except lmdb.Error as error:
        raise DamagedLMDB(path, f"LMDB cannot open it: {error}") from error
