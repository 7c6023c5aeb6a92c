"""Segments: data of a state that is too large to be written again for each save.

An owner puts a `Segments` into its state. A save writes the new ones to files in the directory
`segments` beside the checkpoints, and the list of all files into the state. In a state that was
loaded the owner finds `SavedSegments`. A segment is never changed, and successive states share it.
"""

import errno
import os
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from .. import logger
from ..atomic import fsync_path, open_atomic
from ..serialize import dump_hashed, load_hashed
from .files import read_known

_MAX_DEPTH = 64  # of a state
_TOO_DEEP = f"The state is nested deeper than {_MAX_DEPTH} levels, or contains itself: flatten it."
_MARK = "@segments"  # the one key of the dictionary that a leaf becomes
# Only files of these names are deleted.
_NAME = re.compile(r"segment-([0-9]{8}|[1-9][0-9]{8,15})\.seg")
_TEMPORARY = re.compile(r"\.segment-[0-9]{8,16}\.seg\..+\.tmp")


class SegmentRef(NamedTuple):
    """Names a segment, and says what it must be.

    `name`, `size` in bytes and hexadecimal `sha256` are those of the file in the directory of its
    store; `meta` is a small dictionary of the owner.
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
        self.path, self.reason = path, reason


class SegmentStore:
    """A directory of segments, made by the first write; one process at a time may write to it.

    A store gives no name twice: the names count up from the highest one in the directory.
    """

    def __init__(self, directory: str) -> None:
        self.directory = os.fsdecode(directory)
        self._last = 0

    def names(self) -> Set[str]:
        """Returns the names of all files in the directory."""
        try:
            return set(os.listdir(self.directory))
        except FileNotFoundError:
            return set()

    def write(self, meta: Dict[str, Any], arrays: Dict[str, np.ndarray]) -> SegmentRef:
        """Writes a new segment: it is on the disk when this returns; if it fails, no file is left.

        `meta`, for the owner, is anything that a state can hold. The arrays have no objects, and
        must not change meanwhile.
        """
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory)
            fsync_path(os.path.dirname(os.path.abspath(self.directory)))
        numbers = [int(each.group(1)) for each in map(_NAME.fullmatch, self.names()) if each]
        self._last = max([self._last, *numbers]) + 1
        name = f"segment-{self._last:08d}.seg"
        try:
            with open_atomic(os.path.join(self.directory, name)) as file:
                size, sha256 = dump_hashed({"meta": meta, "arrays": arrays}, file)
        except BaseException:
            self.delete([name])  # it has its name already if only the last step failed
            raise
        return SegmentRef(name, size, sha256, meta)

    def read(self, ref: SegmentRef) -> Dict[str, np.ndarray]:
        """Returns the arrays of a segment, writable, in C order. The file is read once.

        Raises:
          SegmentDamaged: it is missing, truncated or altered.
        """
        path = os.path.join(self.directory, ref.name)
        try:
            memory: Any = read_known(path, ref.size, ref.sha256, keep=True)
            arrays: Dict[str, np.ndarray] = load_hashed(memory)["arrays"]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SegmentDamaged(path, "it is missing") from error
        except ValueError as error:
            raise SegmentDamaged(path, str(error)) from error
        return arrays

    def delete_others(self, keep: Iterable[str]) -> None:
        """Deletes all segments except those with some names, and what killed writes have left.

        Must not be called while a segment is being written. Logs a warning where that fails.
        """
        try:
            names = self.names() - set(keep)
        except OSError as error:
            logger.warning("Cannot look for old segments: %s", error)
            return
        self.delete(sorted(n for n in names if _NAME.fullmatch(n) or _TEMPORARY.fullmatch(n)))

    def delete(self, names: Iterable[str]) -> None:
        """Deletes files of the directory. Logs a warning where that fails."""
        for name in names:
            path = os.path.join(self.directory, name)
            try:
                os.remove(path)
            except FileNotFoundError:
                pass
            except OSError as error:
                logger.warning("Cannot delete the unused segment %s: %s", path, error)


@dataclass(eq=False)
class Segments:
    """A leaf of a state to be saved: segments that exist, and new ones.

    Args:
      saved: segments of earlier saves that still belong to the state.
      new: in order, the meta and the arrays of each new segment, see `SegmentStore.write`. The
        arrays may be views of a buffer: they must not change until `on_done` is called.
      on_done: called exactly once, perhaps from another thread: with the refs of `saved` and of
        `new` in order when the state is on the disk, with None when the save failed.
    """

    saved: Sequence[SegmentRef]
    new: Sequence[Tuple[Dict[str, Any], Dict[str, np.ndarray]]]
    on_done: Callable[[Optional[List[SegmentRef]]], None]


@dataclass(eq=False)
class SavedSegments:
    """The `Segments` of a state that was loaded.

    Args:
      refs: the segments, in order.
      store: reads them.
      reusable: whether the next state is saved to the same place, so that its `Segments.saved` may
        contain these. Otherwise all that they hold is new there.
      loaded: name to the arrays of segments that have been read and verified already.
    """

    refs: List[SegmentRef]
    store: SegmentStore
    reusable: bool
    loaded: Dict[str, Dict[str, np.ndarray]]

    def read(self, ref: SegmentRef) -> Dict[str, np.ndarray]:
        """Returns the arrays of one segment, see `SegmentStore.read`, and lets go of them: a second
        call for the same segment reads the file again.
        """
        arrays = self.loaded.pop(ref.name, None)
        return self.store.read(ref) if arrays is None else arrays


class PendingSegments:
    """The segments of one state, from before they are written until their owners are told.

    For a state that will not be saved after all, call `PendingSegments(state).done(False)`. Once
    all are written, `names` are those of the segments that the state needs.
    """

    def __init__(self, tree: Any, store: Optional[SegmentStore] = None) -> None:
        self._tree = tree
        self._store = store
        self._leaves = _find_segments(tree)
        self._refs: Dict[int, List[SegmentRef]] = {}  # by the id of the leaf
        self._new: List[str] = []
        self.names: Set[str] = set()

    def write(self) -> Any:
        """Writes all new segments to the disk; returns the state with the refs in place of the
        leaves, to be written.
        """
        if not self._leaves:
            return self._tree
        for leaf in self._leaves:
            refs = self._refs[id(leaf)] = list(leaf.saved)
            for meta, arrays in leaf.new:
                refs.append(self._store.write(meta, arrays))
                self._new.append(refs[-1].name)
        self.names = {ref.name for refs in self._refs.values() for ref in refs}
        gone = sorted(self.names - self._store.names())
        if gone:
            reason = "A segment that the state needs was deleted"
            raise FileNotFoundError(errno.ENOENT, reason, gone[0])
        return _rebuild(self._tree, self._encode)

    def done(self, ok: bool) -> None:
        """Tells each owner once whether the state is on the disk, after the new segments of one
        that is not have been deleted, perhaps for want of space. All are told, even if one raises;
        then the first exception is raised.
        """
        if self._new and not ok:
            self._store.delete(self._new)
        errors = []
        for leaf in self._leaves:
            try:
                leaf.on_done(list(self._refs[id(leaf)]) if ok else None)
            except Exception as error:  # raised below, when the others have been told
                errors.append(error)
        if errors:
            raise errors[0]

    def _encode(self, value: Any) -> Any:
        if isinstance(value, Segments):
            return {_MARK: [dict(ref._asdict()) for ref in self._refs[id(value)]]}
        return value


def load_segments(tree: Any, make: Callable[[List[SegmentRef]], Any]) -> Any:
    """Returns a state that was read, with what `make(refs)` returns for each of its `Segments`."""

    def decode(value: Any) -> Any:
        marked = type(value) is dict and _MARK in value
        return make([SegmentRef(**each) for each in value[_MARK]]) if marked else value

    return _rebuild(tree, decode)


def _find_segments(tree: Any) -> List[Segments]:
    found: List[Segments] = []

    def note(value: Any) -> Any:
        if type(value) is dict and _MARK in value:
            raise ValueError(f"A state cannot have a dictionary with the key {_MARK!r}: rename it.")
        if isinstance(value, Segments) and value not in found:
            found.append(value)
        return value

    _rebuild(tree, note)
    return found


def _rebuild(tree: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """Returns a copy of a tree in which a function has replaced each node, its children first."""
    if depth > _MAX_DEPTH:
        raise TypeError(_TOO_DEEP)
    if type(tree) is dict:
        tree = {key: _rebuild(item, change, depth + 1) for key, item in tree.items()}
    elif type(tree) in (list, tuple):
        tree = type(tree)(_rebuild(item, change, depth + 1) for item in tree)
    return change(tree)
