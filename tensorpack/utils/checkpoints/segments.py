"""Segments: data of a state that is too large to be written again for each save.

The owner of such data puts a `Segments` into its state. While a save packs the state, it writes the
new segments to files in the directory `segments` beside the checkpoints, and in their place the
list of all of them. In a state that was loaded the owner finds `SavedSegments`. A segment is never
changed, and successive states share it.
"""

import errno
import os
import re
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from .. import logger
from ..atomic import make_directory, open_atomic
from ..serialize import dump_hashed, load_hashed
from .files import read_file

_MARK = "@segments"  # the one key of the dictionary that a leaf becomes
_NAME = re.compile(r"segment-([0-9]{8,16})\.seg")
_OURS = re.compile(_NAME.pattern + r"|\.segment-[0-9]{8,16}\.seg\..+\.tmp")
_NODES = (dict, list, tuple)  # of a state

Arrays = Dict[str, np.ndarray]


class SegmentRef(NamedTuple):
    """The name, size in bytes and checksum of the file of a segment; `meta` is its owner's."""

    name: str
    size: int
    sha256: str
    meta: Dict[str, Any]


class SegmentDamaged(RuntimeError):
    """A segment is missing, truncated or altered."""


class SegmentStore:
    """A directory of segments, made by the first write; one process at a time may write to it.

    No name is used twice: their numbers count up from the highest one in the directory.
    """

    def __init__(self, directory: str) -> None:
        self.directory = os.fsdecode(directory)
        self._last = 0
        self._packed: Dict[int, Tuple[Segments, List[SegmentRef]]] = {}  # by the id of the leaf

    def pack(self, leaf: "Segments") -> Dict[str, Any]:
        """Writes the new segments of a leaf; returns what stands in its place in the state."""
        if id(leaf) not in self._packed:
            deleted = sorted({ref.name for ref in leaf.saved} - self.names())
            if deleted:
                reason = "A segment that the state needs was deleted"
                raise FileNotFoundError(errno.ENOENT, reason, deleted[0])
            refs = list(leaf.saved)
            self._packed[id(leaf)] = leaf, refs
            for meta, arrays in leaf.new:
                refs.append(self.write(meta, arrays))
        return {_MARK: [dict(ref._asdict()) for ref in self._packed[id(leaf)][1]]}

    def end_save(self, state: Any, is_saved: bool) -> Set[str]:
        """Tells the owners of the segments of a state, after the new ones of a state that is not
        saved have been deleted, perhaps for want of space; returns the names of those it needs.
        """
        packed, self._packed = list(self._packed.values()), {}
        if is_saved:
            _call_on_done(packed)
        else:
            self.delete(ref.name for leaf, refs in packed for ref in refs[len(leaf.saved) :])
            abandon(state)
        return {ref.name for _, refs in packed for ref in refs}

    def names(self) -> Set[str]:
        """Returns the names of all files in the directory."""
        with suppress(FileNotFoundError):
            return set(os.listdir(self.directory))
        return set()

    def write(self, meta: Dict[str, Any], arrays: Arrays) -> SegmentRef:
        """Writes a new segment: it is on the disk when this returns."""
        make_directory(self.directory)
        numbers = [int(match.group(1)) for match in map(_NAME.fullmatch, self.names()) if match]
        self._last = max([self._last, *numbers]) + 1
        name = f"segment-{self._last:08d}.seg"
        with open_atomic(os.path.join(self.directory, name)) as file:
            size, sha256 = dump_hashed({"meta": meta, "arrays": arrays}, file)
        return SegmentRef(name, size, sha256, meta)

    def read(self, ref: SegmentRef) -> Arrays:
        """Returns the arrays of a segment, writable, in C order; raises `SegmentDamaged`."""
        path = os.path.join(self.directory, ref.name)
        try:
            return load_hashed(read_file(path, ref.size, ref.sha256))["arrays"]  # type: ignore
        except (FileNotFoundError, ValueError) as error:
            reason = "it is missing" if isinstance(error, FileNotFoundError) else error
            raise SegmentDamaged(f"The segment {path} cannot be used: {reason}.") from error

    def delete_others(self, keep: Set[str]) -> None:
        """Deletes all segments except those with some names, and what killed writes have left."""
        try:
            self.delete(sorted(filter(_OURS.fullmatch, self.names() - keep)))
        except OSError as error:
            logger.warning(f"Cannot look for old segments: {error}")

    def delete(self, names: Iterable[str]) -> None:
        """Deletes files of the directory. Logs a warning where that fails."""
        for name in names:
            try:
                os.remove(os.path.join(self.directory, name))
            except OSError as error:
                logger.warning(f"Cannot delete the unused segment {name}: {error}")


@dataclass(eq=False)
class Segments:
    """A leaf of a state to be saved.

    Args:
      saved: segments of earlier saves that still belong to the state.
      new: in order, the meta, a small dictionary, and the arrays, without objects, of each new
        segment. They may be views of a buffer: they must not change until `on_done` is called.
      on_done: called exactly once, perhaps from another thread: with the refs of `saved` and of
        `new` in order when the state is on the disk, with None when the save failed.
    """

    saved: Sequence[SegmentRef]
    new: Sequence[Tuple[Dict[str, Any], Arrays]]
    on_done: Callable[[Optional[List[SegmentRef]]], None]


@dataclass(eq=False)
class SavedSegments:
    """The `Segments` of a state that was loaded.

    Args:
      refs: the segments, in order, which `store` reads.
      reusable: whether the next state is saved to the same place, so that its `Segments.saved` may
        contain these. Otherwise all that they hold is new there.
      loaded: name to the arrays of segments that have been read and verified already.
    """

    refs: List[SegmentRef]
    store: SegmentStore
    reusable: bool = True
    loaded: Dict[str, Arrays] = field(default_factory=dict)

    def read(self, ref: SegmentRef) -> Arrays:
        """Returns the arrays of one segment, see `SegmentStore.read`, and lets go of them: a second
        call for the same segment reads the file again.
        """
        arrays = self.loaded.pop(ref.name, None)
        return self.store.read(ref) if arrays is None else arrays


def abandon(state: Any) -> None:
    """Tells the owners of the segments in a state that it is not saved."""
    leaves: Dict[int, Segments] = {}
    seen, nodes = set(), [state]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Segments):
            leaves[id(node)] = node
        elif type(node) in _NODES and id(node) not in seen:
            seen.add(id(node))
            nodes += node.values() if type(node) is dict else node
    _call_on_done([(leaf, None) for leaf in leaves.values()])


def _call_on_done(answers: Iterable[Tuple[Segments, Optional[List[SegmentRef]]]]) -> None:
    with ExitStack() as stack:  # which calls all, even if one raises
        for leaf, refs in answers:
            stack.callback(leaf.on_done, refs)


def load_segments(tree: Any, make: Callable[[List[SegmentRef]], Any]) -> Any:
    """Returns a dict, list or tuple of a state that was read, with what `make(refs)` returns for
    each of its `Segments`.
    """
    if type(tree) is not dict:
        return type(tree)([load_segments(x, make) if type(x) in _NODES else x for x in tree])
    if _MARK in tree:
        return make([SegmentRef(**ref) for ref in tree[_MARK]])
    return {k: load_segments(x, make) if type(x) in _NODES else x for k, x in tree.items()}
