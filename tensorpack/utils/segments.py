"""Segments: data that belongs to a state, but is too large to be written again for each one.

An owner puts a `Segments` into its state. For a save these leaves become a list of files, which
goes into the state; in a state that was loaded they are `SavedSegments`.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ._state_segment_store import SegmentDamaged, SegmentRef, SegmentStore, is_segment_name
from ._state_tree import MAX_DEPTH

__all__ = [
    "PendingSegments",
    "SavedSegments",
    "SegmentDamaged",
    "SegmentRef",
    "SegmentStore",
    "Segments",
    "load_segments",
    "refs_of",
    "save_segments",
]

_MARK = "@segments"  # the one key of the dictionary that a leaf becomes
_ESCAPE = "@"


class Segments:
    """A leaf of a state that is to be saved: segments that exist, and new ones.

    Args:
      saved: segments of earlier saves that still belong to the state.
      new: in order, the meta and the arrays of each new segment, see `SegmentStore.write`. The
        arrays may be views of a buffer: they must not change until `on_done` is called.
      on_done: called exactly once, maybe from another thread: with the refs of `saved` and of `new`
        in order when the state is on the disk, with None when the save failed.
    """

    def __init__(
        self,
        saved: Sequence[SegmentRef],
        new: Sequence[Tuple[Dict[str, Any], Dict[str, np.ndarray]]],
        on_done: Callable[[Optional[List[SegmentRef]]], None],
    ) -> None:
        self.saved = list(saved)
        self.new = list(new)
        self.on_done = on_done


class SavedSegments:
    """What a `Segments` has become in a state that was loaded.

    Args:
      refs: the segments, in order.
      store: where they are.
      reusable: whether the next state is saved in the same place, so that its `Segments.saved` may
        have these. Otherwise all that they hold is new there.
    """

    def __init__(
        self, refs: Sequence[SegmentRef], store: SegmentStore, reusable: bool = True
    ) -> None:
        self.refs = list(refs)
        self.reusable = reusable
        self._store = store

    def read(self, ref: SegmentRef) -> Dict[str, np.ndarray]:
        """Returns the arrays of one segment, see `SegmentStore.read`.

        Raises:
          SegmentDamaged: it is missing, truncated or altered.
          OSError: it cannot be read.
        """
        return self._store.read(ref)


class PendingSegments:
    """The segments of one state, from before they are written until their owners know.

    `save_segments` makes one. For a state that shall not be saved after all, call
    `PendingSegments(state).done(False)`.

    Args:
      tree: the state.

    Raises:
      TypeError: it is nested too deeply.
    """

    def __init__(self, tree: Any) -> None:
        self._source = tree
        self._refs: Dict[int, List[SegmentRef]] = {}  # by the id of the leaf
        self._leaves: Dict[int, Segments] = {}
        self._is_done = False
        self._written = False
        _rebuild(tree, self._find)

    def write(self, store: SegmentStore) -> None:
        """Writes all new segments, to the disk.

        Raises:
          TypeError: a new segment cannot be kept.
          OSError: a new segment cannot be written.
          In both cases those that were written by this call are deleted.
        """
        new: List[SegmentRef] = []
        try:
            for key, leaf in self._leaves.items():
                begin = len(new)
                for meta, arrays in leaf.new:
                    new.append(store.write(meta, arrays))
                self._refs[key] = leaf.saved + new[begin:]
            store.flush()
        except BaseException:
            store.delete(ref.name for ref in new)
            raise
        self._written = True

    @property
    def tree(self) -> Any:
        """The state with plain values instead of the leaves, for `write_state`.

        Raises:
          RuntimeError: the segments have not been written.
        """
        if not self._written:
            raise RuntimeError("The segments have no names yet: call write() first.")
        return _rebuild(self._source, self._encode)

    def done(self, ok: bool) -> None:
        """Tells each owner how the save went. All are told, even if one raises.

        The files stay, also after a failure, because the state may have got to the disk
        nevertheless. `SegmentStore.delete_others` deletes what no state needs.

        Args:
          ok: whether the state is on the disk.

        Raises:
          RuntimeError: this was called before, or `ok` although nothing was written.
          Exception: the first one of the owners'.
        """
        if self._is_done or (ok and not self._written):
            raise RuntimeError("done() is called once, and done(True) only after write().")
        self._is_done = True
        errors = []
        for key, leaf in self._leaves.items():
            try:
                leaf.on_done(list(self._refs[key]) if ok else None)
            except Exception as error:  # raised below, when the others know
                errors.append(error)
        if errors:
            raise errors[0]

    def _find(self, value: Any) -> Any:
        if isinstance(value, Segments):
            self._leaves[id(value)] = value
        return value

    def _encode(self, value: Any) -> Any:
        if isinstance(value, Segments):
            return {_MARK: [dict(ref._asdict()) for ref in self._refs[id(value)]]}
        if _has_mark(value):
            return {_ESCAPE + key: item for key, item in value.items()}
        return value


def save_segments(tree: Any, store: SegmentStore) -> PendingSegments:
    """Writes the new segments of a state.

    Returns:
      What has the `tree` to be written as the state; call its `done` when that succeeded or failed.

    Raises:
      TypeError, OSError: it failed: no file is left, and the owners have been told.
    """
    pending = PendingSegments(tree)
    try:
        pending.write(store)
    except BaseException:
        pending.done(False)  # the caller has nothing to call it on
        raise
    return pending


def load_segments(tree: Any, store: SegmentStore, reusable: bool = True) -> Any:
    """Returns a state that was read, with `SavedSegments` for what the `Segments` became.

    Args:
      tree: the state.
      store: where its segments are.
      reusable: see `SavedSegments`.

    Raises:
      ValueError: an entry is not what `save_segments` writes.
      TypeError: the state is nested too deeply.
    """

    def decode(value: Any) -> Any:
        if not _has_mark(value):
            return value
        ((key, item),) = value.items()
        if key == _MARK:
            return SavedSegments(_decode_refs(item), store, reusable)
        return {key[len(_ESCAPE) :]: item}

    return _rebuild(tree, decode)


def refs_of(tree: Any) -> List[SegmentRef]:
    """Returns all segments that a state, as it is written to a file, refers to.

    Raises:
      ValueError: an entry is not what `save_segments` writes.
      TypeError: the state is nested too deeply.
    """
    refs: List[SegmentRef] = []

    def collect(value: Any) -> Any:
        if _has_mark(value) and _MARK in value:
            refs.extend(_decode_refs(value[_MARK]))
        return value

    _rebuild(tree, collect)
    return refs


def _rebuild(tree: Any, change: Callable[[Any], Any], depth: int = 0) -> Any:
    """Returns a copy of a tree after a function has seen each node, its children first."""
    if depth > MAX_DEPTH:
        raise TypeError(
            f"The state is nested deeper than {MAX_DEPTH} levels, or contains itself: make it flat."
        )
    if type(tree) is dict:
        tree = {key: _rebuild(item, change, depth + 1) for key, item in tree.items()}
    elif type(tree) in (list, tuple):
        tree = type(tree)(_rebuild(item, change, depth + 1) for item in tree)
    return change(tree)


def _has_mark(value: Any) -> bool:
    """Whether this is what a leaf becomes, or a dictionary of the owner that looks like it."""
    if type(value) is not dict or len(value) != 1:
        return False
    (key,) = value
    return type(key) is str and key.lstrip(_ESCAPE) == _MARK[1:] and key.startswith(_ESCAPE)


def _decode_refs(entries: Any) -> List[SegmentRef]:
    refs = []
    for entry in entries if type(entries) is list else [entries]:
        if type(entry) is not dict or list(entry) != list(SegmentRef._fields):
            raise ValueError(f"The state refers to a segment by {entry!r}, which is none.")
        ref = SegmentRef(**entry)
        types = [type(field) for field in ref]
        if types != [str, int, str, dict] or not is_segment_name(ref.name):
            raise ValueError(f"The state refers to a segment by {entry!r}, which is none.")
        refs.append(ref)
    return refs
