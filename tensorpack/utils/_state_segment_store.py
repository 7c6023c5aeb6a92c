"""Keeps segments, the parts of states that are written once and then only read, in a directory."""

import json
import os
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Tuple, Union

import numpy as np

from . import logger
from ._state_container import describe_array, read_container, write_container
from .atomic import fsync_path, open_atomic
from .fs import hash_file

__all__ = ["SegmentDamaged", "SegmentRef", "SegmentStore", "is_segment_name"]

_KIND = b"tp-segmt"
# Our own files, as they are found on the disk: those of others in the directory stay.
_NAME = re.compile(r"segment-([0-9]{8}|[1-9][0-9]{8,})\.seg")
_TEMPORARY = re.compile(r"\.segment-[0-9]{8,}\.seg\..+\.tmp")


class SegmentRef(NamedTuple):
    """Which segment, and what it must be.

    Attributes:
      name: of the file in the directory of its store.
      size: of the file, in bytes.
      sha256: of the file, hexadecimal.
      meta: a small dictionary of the owner, which JSON keeps as it is.
    """

    name: str
    size: int
    sha256: str
    meta: Dict[str, Any]


class SegmentDamaged(RuntimeError):
    """A segment is missing, truncated or altered.

    Attributes:
      path: of the file.
      reason: what is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"The segment {path} cannot be used: {reason}.")
        self.path = path
        self.reason = reason


class SegmentStore:
    """A directory of segments, which one process at a time may write to.

    A segment is never changed, and a store gives no name twice. The names count up from the highest
    one in the directory.

    Args:
      directory: where the files are; made by the first write.
    """

    def __init__(self, directory: Union[str, "os.PathLike[str]"]) -> None:
        self.directory = os.fspath(directory)
        self._last = 0

    def write(self, meta: Dict[str, Any], arrays: Dict[str, np.ndarray]) -> SegmentRef:
        """Writes a new segment. It is on the disk when this returns.

        Args:
          meta: what the owner wants to know of it later; anything that JSON keeps as it is.
          arrays: of any layout, without objects; must not change meanwhile.

        Raises:
          TypeError: the meta or an array cannot be kept; nothing is written.
          OSError: the disk is full, or the like; no file is left.
        """
        header: Dict[str, Any] = {"meta": _checked_meta(meta), "names": list(arrays)}
        for key, array in arrays.items():
            _check_array(key, array)
        self._make_directory()
        self._last = max([self._last, *(number for number, _ in self._segments())]) + 1
        name = f"segment-{self._last:08d}.seg"
        path = os.path.join(self.directory, name)
        try:
            with open_atomic(path) as file:
                size, sha256 = write_container(file, _KIND, header, list(arrays.values()))
        except BaseException:
            self.delete([name])  # it has its name already if only the last step failed
            raise
        return SegmentRef(name, size, sha256, header["meta"])

    def read(self, ref: SegmentRef) -> Dict[str, np.ndarray]:
        """Returns the arrays of a segment, writable, in C order. The file is read once.

        Raises:
          SegmentDamaged: it is missing, truncated or altered.
          OSError: it cannot be read.
        """
        path = self._path(ref)
        self._check_size(ref)
        try:
            container = read_container(path, _KIND)
            names = container.content["names"]
        except FileNotFoundError as error:
            raise SegmentDamaged(path, "it is missing") from error
        except (ValueError, KeyError, TypeError) as error:
            raise SegmentDamaged(path, str(error)) from error
        if container.sha256 != ref.sha256:
            raise SegmentDamaged(path, f"it has SHA-256 {container.sha256}, not {ref.sha256}")
        return dict(zip(names, container.arrays))

    def check(self, ref: SegmentRef) -> None:
        """Reads a segment, without keeping it.

        Raises:
          SegmentDamaged: it is missing, truncated or altered.
          OSError: it cannot be read.
        """
        self._check_size(ref)
        size, sha256 = hash_file(self._path(ref))
        if (size, sha256) != (ref.size, ref.sha256):
            raise SegmentDamaged(self._path(ref), f"it has SHA-256 {sha256}, not {ref.sha256}")

    def flush(self) -> None:
        """Waits until the names of all segments are on the disk.

        Raises:
          OSError: they may not be.
        """
        if os.path.isdir(self.directory):
            fsync_path(self.directory)

    def delete_others(self, keep: Iterable[str]) -> None:
        """Deletes all segments but some, and what writes that were killed have left.

        Not to be called while a segment is being written. What cannot be deleted is warned of.

        Args:
          keep: names of segments.
        """
        kept = set(keep)
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return
        except OSError as error:
            logger.warning("Cannot look for old segments: %s", error)
            return
        ours = [name for name in names if is_segment_name(name) or _TEMPORARY.fullmatch(name)]
        self.delete(sorted(set(ours) - kept))

    def delete(self, names: Iterable[str]) -> None:
        """Deletes files of the directory. What cannot be deleted is warned of."""
        for name in names:
            path = os.path.join(self.directory, name)
            try:
                os.remove(path)
            except FileNotFoundError:
                pass  # what was wanted
            except OSError as error:
                logger.warning("Cannot delete the segment %s, nobody needs it: %s", path, error)

    def _segments(self) -> List[Tuple[int, str]]:
        matches = map(_NAME.fullmatch, os.listdir(self.directory))
        return [(int(match.group(1)), match.group()) for match in matches if match]

    def _make_directory(self) -> None:
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory)
            fsync_path(os.path.dirname(os.path.abspath(self.directory)))

    def _path(self, ref: SegmentRef) -> str:
        if not is_segment_name(ref.name):
            raise ValueError(f"A segment is named such as segment-00000001.seg, got {ref.name!r}.")
        return os.path.join(self.directory, ref.name)

    def _check_size(self, ref: SegmentRef) -> None:
        path = self._path(ref)
        try:
            size = os.stat(path).st_size
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SegmentDamaged(path, "it is missing") from error
        if size != ref.size:
            raise SegmentDamaged(path, f"it has {size} bytes instead of {ref.size}")


def is_segment_name(name: str) -> bool:
    """Whether a file of this name is a segment."""
    return _NAME.fullmatch(name) is not None


def _checked_meta(meta: Dict[str, Any]) -> Dict[str, Any]:
    """Returns a copy of what has been found to come back from JSON as it is."""
    try:
        copy = json.loads(json.dumps(meta, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"The meta of a segment is what JSON keeps, got {meta!r}.") from error
    if type(copy) is not dict or copy != meta:
        raise TypeError(f"The meta of a segment is a dict that JSON keeps as it is, got {meta!r}.")
    return copy


def _check_array(key: Any, array: Any) -> None:
    if type(key) is not str:
        raise TypeError(f"The arrays of a segment have names of type str, got {key!r}.")
    try:
        describe_array(array)
    except TypeError as error:
        raise TypeError(f"Cannot keep the array {key!r} in a segment: {error}.") from error
