"""Saves the variables and the state of a run as one: both are there, or neither.

The state goes into the checkpoint as one more file, see `saved_state`. What it has in segments is
written before, under names that nothing refers to until the checkpoint has been published; if that
fails they are deleted, and if the process is killed the next save does so.
"""

import errno
import os
from typing import Any, Callable, Dict, Optional, Set

from tensorpack.utils.segments import PendingSegments, SegmentStore, refs_of, save_segments
from tensorpack.utils.state_file import write_state

from .checkpoint import CheckpointCorrupt
from .checkpoint_search import candidates, verify
from .checkpoint_store import CheckpointStore
from .saved_state import FORMAT, SEGMENTS, STATE, segments_of

__all__ = ["StateStore"]

_WITH_SEGMENTS = 2  # how many states keep theirs


class StateStore:
    """Writes states into a directory.

    Args:
      checkpoints: writes their variables, and owns the directory.
    """

    def __init__(self, checkpoints: CheckpointStore) -> None:
        self._checkpoints = checkpoints
        self._segments = SegmentStore(os.path.join(checkpoints.directory, SEGMENTS))
        self._needed: Dict[str, Set[str]] = {}  # prefix -> names of segments; the newest last

    def adopt(self, prefix: Optional[str] = None) -> None:
        """Keeps the segments of the newest two whole states that are in the directory already.

        Args:
          prefix: of the one that the run goes on from, if there is one; it counts as the newest.
        """
        directory = self._checkpoints.directory
        here = [] if prefix is None else [os.path.join(directory, os.path.basename(prefix))]
        found: Dict[str, Set[str]] = {}
        for each in here + [other for other in candidates(directory) if other not in here]:
            if len(found) == _WITH_SEGMENTS:
                break
            try:
                verify(each)
                found[each] = {ref.name for ref in segments_of(each)}
            except (CheckpointCorrupt, OSError):
                pass  # whoever looked for a state to go on from has warned of it
        self._needed = dict(reversed(list(found.items())))

    def save(self, step: int, write: Callable[[str], object], state: Dict[str, Any]) -> str:
        """Saves one state.

        Args:
          step: the global step.
          write: writes the variables, see `CheckpointStore.save`.
          state: the tree; its `Segments` are told how it went.

        Returns:
          The prefix of the checkpoint.

        Raises:
          OSError: it failed. Nothing has changed.
          Exception: so does whatever `write` raises.
        """
        try:
            before = self._names()
        except BaseException:
            PendingSegments(state).done(False)  # nobody else tells their owners
            raise
        pending = save_segments({"format": FORMAT, "run": state}, self._segments)
        tree, saved = pending.tree, False
        needed = {ref.name for ref in refs_of(tree)}
        try:
            self._check_there(needed)

            def write_both(prefix: str) -> None:
                write(prefix)
                write_state(prefix + STATE, tree)

            prefix = self._checkpoints.save(step, write_both)
            saved = True
        finally:
            pending.done(saved)
            if not saved:  # perhaps for want of space
                self._segments.delete(needed - before)
        self._forget_others(prefix, needed)
        return prefix

    def _names(self) -> Set[str]:
        try:
            return set(os.listdir(self._segments.directory))
        except FileNotFoundError:
            return set()

    def _check_there(self, needed: Set[str]) -> None:
        gone = sorted(needed - self._names())
        if gone:
            raise FileNotFoundError(
                errno.ENOENT, "Somebody deleted a segment that the state needs", gone[0]
            )

    def _forget_others(self, newest: str, needed: Set[str]) -> None:
        self._needed.pop(newest, None)
        self._needed[newest] = needed
        for prefix in list(self._needed)[:-_WITH_SEGMENTS]:
            del self._needed[prefix]
        self._segments.delete_others([name for each in self._needed.values() for name in each])
