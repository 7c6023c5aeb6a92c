"""Tar archives in WebDataset's layout: the files of one key make a datapoint.

A key is a name up to its first dot: `a/1.jpg` and `a/1.cls`, one after the other, are
`{"__key__": "a/1", "jpg": ..., "cls": ...}`. Only the structure of an archive has checksums.
"""

import io
import os
import posixpath
import tarfile
import weakref
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Dict, List, Tuple

from ..base import DataFlow
from .records import DamagedFile, PathLike, RecordFile, RecordsFlow, Writing, write_records

_KEY = "__key__"


class TarData(RecordsFlow):
    """Yields dicts of bytes, by the ends of the names of files in lower case, and the `__key__`.

    Decode them by `DecodeImageComponent(ds, "jpg")` or `MapDataComponent(ds, int, "cls")`. The
    archive may not be compressed. Its structure is read first: 20 s for a million files.
    """

    def __init__(self, path: PathLike, shuffle: bool = True, max_errors: int = 0) -> None:
        """Takes the path, whether each pass has its own order, and how much may be skipped."""
        super().__init__(_Members(path), shuffle, max_errors)


class _Members(RecordFile):
    def __init__(self, path: PathLike) -> None:
        super().__init__(path)
        try:
            with tarfile.open(self.path, "r:") as archive:
                members = [each for each in archive if not each.isdir()]
                end = archive.offset
                archive.fileobj.seek(end)
                blocks = iter(lambda: archive.fileobj.read(2**20), b"")
                has_more = any(block.strip(b"\0") for block in blocks)
        except (tarfile.TarError, OSError, ValueError) as error:
            raise DamagedFile(f"{self.path} is not a whole tar archive: {error}.") from error
        if os.path.getsize(self.path) < end + tarfile.BLOCKSIZE:
            raise DamagedFile(f"{self.path} is not a whole tar archive: its end is missing.")
        if has_more:
            raise DamagedFile(
                f"{self.path} is not a whole tar archive: there is more behind its end, at byte "
                f"{end}. Is a header damaged, or were archives joined without tar --concatenate?"
            )
        for each in members:
            if not each.isreg() or each.issparse():
                raise DamagedFile(
                    f"{self.path}: {each.name!r} is a link or a sparse file, which is not read. "
                    "Make the archive with tar --dereference --hard-dereference, without --sparse."
                )
        self._keys: List[str] = []
        self._parts: List[List[Tuple[str, int, int]]] = []  # ends of names, places, bytes
        for key, group in groupby(members, lambda member: _split(member.name)[0]):
            self._keys.append(key)
            self._parts.append([(_split(m.name)[1], m.offset_data, m.size) for m in group])

    def open(self) -> Any:
        file = open(self.path, "rb")
        weakref.finalize(self, file.close).atexit = False
        return file

    def __len__(self) -> int:
        return len(self._keys)

    def read(self, index: int) -> Dict[str, Any]:
        datapoint: Dict[str, Any] = {_KEY: self._keys[index]}
        for name, place, size in self._parts[index]:
            if name in datapoint:
                raise self.damaged(index, f"it has two files {name!r}.")
            datapoint[name] = os.pread(self.handle.fileno(), size, place)
            if len(datapoint[name]) != size:
                raise self.damaged(index, f"the file became shorter than {place + size} bytes.")
        return datapoint

    def where(self, index: int) -> str:
        return f"datapoint {self._keys[index]!r}"

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.path,)


def _split(name: str) -> Tuple[str, str]:
    """Returns the key of a file, and the name in a datapoint."""
    folder, base = posixpath.split(name)
    key, _, end = base.partition(".")
    return posixpath.join(folder, key), end.lower()


class TarSerializer:
    """Writes the datapoints of a flow to a tar archive, and makes a flow of such an archive."""

    @staticmethod
    def save(df: DataFlow, path: PathLike) -> int:
        """Writes dicts of bytes or text; one without `__key__` is called by its number."""
        return write_records(df, path, _writer)

    load = TarData


@contextmanager
def _writer(file: Any) -> Writing:
    before = None

    def write(datapoint: Any, index: int) -> None:
        nonlocal before
        if not isinstance(datapoint, dict):
            raise TypeError(f"Datapoint {index} is a {type(datapoint).__name__}, not a dict.")
        parts = dict(datapoint)
        key = parts.pop(_KEY, f"{index:08d}")
        if not parts:
            raise ValueError(f"Datapoint {index} has no files, so it would not be read again.")
        for name, value in parts.items():
            data = value.encode() if isinstance(value, str) else value
            if not isinstance(data, bytes):
                raise TypeError(f"Datapoint {index}: {name!r} is neither text nor bytes.")
            if _split(f"{key}.{name}") != (key, name) or key == before:
                raise ValueError(f"Datapoint {index} would not be read as {key!r} and {name!r}.")
            member = tarfile.TarInfo(f"{key}.{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        before = key

    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        yield write
