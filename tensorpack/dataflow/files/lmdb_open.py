"""Opens LMDB files for reading, once in each process.

liblmdb forbids opening a file twice in a process, and using an open file in a forked process, so
flows share what is open. It reads the file as memory, so damage to the tree of its pages may end
the process; a damaged value is found by its checksum.
"""

import functools
import itertools
import mmap
import os
import threading
import weakref
from typing import Any, Dict, List, Optional, Tuple

from tensorpack.utils import logger
from tensorpack.utils.optional import require

from .records import DamagedFile, PathLike


class DamagedLMDB(DamagedFile):
    """An LMDB file or record cannot be used: its `path`, the `reason`, and the `key` or None."""

    def __init__(self, path: str, reason: str, key: Optional[bytes] = None) -> None:
        super().__init__(path, reason, key)  # all of them: it may be pickled
        self.path, self.reason, self.key = path, reason, key

    def __str__(self) -> str:
        key = "" if self.key is None else f", key {self.key!r}"
        return f"{self.path}{key}: {self.reason}"


def data_file(path: PathLike) -> str:
    """Returns the path of a database: the file, or `data.mdb` if it is a directory."""
    path = os.fsdecode(path)
    if not os.path.isdir(path):
        return path
    if "data.mdb" not in os.listdir(path):
        raise FileNotFoundError(f"{path} is a directory without data.mdb: no LMDB database.")
    return os.path.join(path, "data.mdb")


class OpenFile:
    """An LMDB file, open in the process `pid` for all its threads; closed when it is collected."""

    def __init__(self, path: str, env: Any) -> None:
        self.path, self.pid, self.env = path, os.getpid(), env

    def get(self, key: bytes) -> Optional[bytes]:
        """Returns a copy of a value, or None if there is no such key."""
        try:
            with self.env.begin() as transaction:
                return transaction.get(key)
        except require("lmdb").Error as error:
            raise DamagedLMDB(self.path, f"LMDB cannot read it: {error}", key) from error

    def entries(self) -> int:
        """Returns the number of records, including those that tensorpack adds."""
        return self.env.stat()["entries"]

    def keys(self, most: Optional[int] = None) -> List[bytes]:
        """Returns all keys in order, or the first ones."""
        try:
            with self.env.begin() as transaction, transaction.cursor() as cursor:
                return list(itertools.islice(cursor.iternext(keys=True, values=False), most))
        except require("lmdb").Error as error:
            raise DamagedLMDB(self.path, f"LMDB cannot read it: {error}") from error


class _OpenFiles:
    """The files that are open in this process."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # reentrant: garbage collection may call `_close` anywhere
        # By device and number of the file. Environments are held here: `_close` has to wait for
        # the end of one before the file can be opened again.
        self._files: Dict[Tuple[int, int], Tuple[Any, Any]] = {}

    def open(self, path: str, readahead: bool) -> OpenFile:
        """Returns the file; opens it, with or without `readahead`, unless it is open already."""
        if self._pid != os.getpid():
            inherited = list(self._files.values())
            self._begin()  # the lock may have been held by a thread that is not here
            for _, env in inherited:
                env.close()
        with self._lock:
            status = os.stat(path)
            key = status.st_dev, status.st_ino
            reference, env = self._files.pop(key, (lambda: None, None))  # so `_close` leaves it
            file = reference()
            if file is None:
                file = OpenFile(path, env or _open(path, status.st_size, readahead))
                reference = weakref.ref(file, functools.partial(self._close, key))
            self._files[key] = reference, file.env
            return file

    def _close(self, key: Tuple[int, int], reference: Any) -> None:
        if self._pid != os.getpid():
            return
        with self._lock:
            if key in self._files and self._files[key][0] is reference:
                self._files.pop(key)[1].close()


open_shared = _OpenFiles().open


def _open(path: str, size: int, readahead: bool) -> Any:
    lmdb = require("lmdb")
    options = {"subdir": False, "readonly": True, "create": False, "lock": False, "max_dbs": 0}
    if size == 0:
        raise DamagedLMDB(path, "The file is empty.")
    mapped = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        env = lmdb.open(path, map_size=mapped, readahead=readahead, **options)
    except lmdb.Error as error:
        raise DamagedLMDB(path, f"LMDB cannot open it: {error}") from error
    pages, page = env.stat(), env.stat()["psize"]
    used = 2 + pages["branch_pages"] + pages["leaf_pages"] + pages["overflow_pages"]
    if size < used * page:
        env.close()
        said = f"It is cut off: it has {size} bytes, and at least {used * page} are used."
        raise DamagedLMDB(path, f"{said} Copy it again.")
    if size < env.info()["last_pgno"] * page:  # LMDB leaves out pages that were freed at once
        logger.warning(
            f"{path} has {size} bytes and lacks pages at its end. They are free if records were "
            "deleted; if it was cut off, reading them ends the process."
        )
    return env
