"""Writes the checkpoints of a run, so that none that was reported as saved is ever lost.

A save is either done and on the disk, or has changed nothing, whatever stops it: an error, a
signal, a power failure. The variables and the state of the run are saved as one: both exist, or
neither. New segments of the state are written first, under names to which nothing refers until the
checkpoint is published.
"""

import errno
import os
import shutil
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .. import logger
from .._directory_lock import LOCK, DirectoryLock
from ..atomic import fsync_path, write_atomic
from .files import (
    INDEX,
    MANIFEST,
    REPLACED,
    UNFINISHED,
    AtomicReplace,
    CheckpointCorrupt,
    discard,
    remove_checkpoint,
    step_of,
    suffixes,
    verify,
    write_manifest,
)
from .find import POINTER, candidates, pointed_to
from .restore import SEGMENTS, STATE, UnsupportedState, segments_of, write_state
from .segments import PendingSegments, SegmentStore

_WITH_SEGMENTS = 2  # how many states keep theirs


class DirectoryReplaced(RuntimeError):
    """The lock in the directory of a run was replaced, perhaps by another run."""


class CheckpointStore:
    """Owns the checkpoints `model-{step}` that one run writes into a directory.

    Args:
      directory: of the checkpoints; made by the first save.
      max_to_keep: how many of the newest are kept; 0 for all. At least two are kept, so that one
        is left if the newest turns out to be damaged.
      keep_checkpoint_every_n_hours: one that is old enough to be deleted is kept for ever instead,
        each time so many hours have passed.
      clock: seconds that never go back.
    """

    def __init__(
        self,
        directory: str,
        max_to_keep: Optional[int] = 10,
        keep_checkpoint_every_n_hours: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.directory = directory
        self._max_to_keep = max(max_to_keep, 2) if max_to_keep else None
        self._keep_seconds = keep_checkpoint_every_n_hours * 3600
        self._clock = clock
        self._next_keep = clock() + self._keep_seconds
        self._saved: Dict[str, Optional[float]] = {}  # prefix to time, the newest last
        self._to_delete: List[str] = []
        self._segments = SegmentStore(os.path.join(directory, SEGMENTS))
        self._needed: Dict[str, Set[str]] = {}  # prefix to names of segments, the newest last
        self._lock = _inode(os.path.join(directory, LOCK))
        self._clean()

    def describe(self, prefix: str) -> Dict[str, Any]:
        """Override to return what the manifest says of files that have just been written."""
        return {}

    def path_of(self, step: int) -> str:
        """Returns the prefix of the checkpoint of a step, which need not exist."""
        return os.path.join(self.directory, f"model-{step}")

    def adopt(self) -> None:
        """Counts those of a step that `checkpoint` lists among those to keep; no others."""
        for prefix in pointed_to(self.directory):
            if step_of(os.path.basename(prefix)) is not None and os.path.exists(prefix + INDEX):
                self._saved.setdefault(prefix, None)

    def adopt_segments(self, prefix: Optional[str] = None) -> None:
        """Keeps the segments of the newest two states that are in the directory already.

        `prefix` is the one that the run resumes from, if any; it counts as the newest.
        """
        here = [] if prefix is None else [os.path.join(self.directory, os.path.basename(prefix))]
        found: Dict[str, Set[str]] = {}
        for each in here + [other for other in candidates(self.directory) if other not in here]:
            if len(found) == _WITH_SEGMENTS:
                break
            try:
                verify(each, content=False)
                found[each] = {ref.name for ref in segments_of(each)}
            except (CheckpointCorrupt, UnsupportedState, OSError):
                pass  # the search for a state to resume from has logged it
        self._needed = dict(reversed(list(found.items())))

    def resume_from(self, prefix: str) -> None:
        """Makes a checkpoint the newest one of the directory, for all that read `checkpoint`."""
        if os.path.realpath(os.path.dirname(prefix)) != os.path.realpath(self.directory):
            return
        own = os.path.join(self.directory, os.path.basename(prefix))
        listed = [each for each in pointed_to(self.directory) if os.path.exists(each + INDEX)]
        if listed[-1:] != [own]:
            self._point_to([each for each in listed if each != own] + [own])
        self._saved.pop(own, None)
        if step_of(os.path.basename(own)) is not None:
            self._saved[own] = None

    def save(
        self, step: int, write: Callable[[str], object], state: Optional[Dict[str, Any]] = None
    ) -> str:
        """Saves a checkpoint, then deletes those whose time has come; returns its prefix.

        Args:
          step: the global step.
          write: called with a prefix, writes the variables to files whose names consist of the
            prefix, a dot and more. Its exceptions are passed on.
          state: the state of the run; its `Segments` are told how the save went.

        Raises:
          OSError: it failed, or may have. Nothing has changed.
          DirectoryReplaced: the lock in the directory is not the one that was there before.
        """
        pending = PendingSegments(state, self._segments)
        final, saved = self.path_of(step), False
        try:
            self._open_directory()
            self._save_files(final, step, write, pending.write())
            saved = True
        finally:
            pending.done(saved)
        if state is not None:
            self._keep_segments(final, pending.names)
        return final

    def _save_files(self, final: str, step: int, write: Callable[[str], object], tree: Any) -> None:
        with AtomicReplace(final) as replace:
            unfinished = replace.unfinished
            write(unfinished)
            known = {} if tree is None else {STATE: write_state(unfinished + STATE, tree)}
            parts = write_manifest(unfinished, step, known, self._description(unfinished))
            self._open_directory()  # still the same one
            replace.publish(parts)
            saved, next_keep, to_delete = self._plan(final)
            self._point_to(list(saved))
        self._saved, self._next_keep = saved, next_keep
        self._to_delete = [path for path in self._to_delete if path != final] + to_delete
        self._delete()

    def _description(self, prefix: str) -> Dict[str, Any]:
        try:
            return self.describe(prefix)
        except CheckpointCorrupt as error:
            # The disk has not kept what it was given, which is a failure of the save.
            reason = f"what was written cannot be read: {error.reason}"
            raise OSError(errno.EIO, reason) from error

    def _open_directory(self) -> None:
        """Makes the directory if it is missing, and compares the lock in it with that of before."""
        path = os.path.join(self.directory, LOCK)
        found = _inode(path)
        if not os.path.isdir(self.directory):
            os.makedirs(self.directory)
            fsync_path(os.path.dirname(os.path.abspath(self.directory)))
        if self._lock is not None and found is None:  # another run may not know of this one
            logger.warning(f"{path} was removed during the run; it is made again.")
            DirectoryLock(self.directory)  # held until the process ends
            self._lock = _inode(path)
        elif self._lock is not None and found != self._lock:
            raise DirectoryReplaced(
                f"{path} is not the one that this run had before: the directory was renamed or "
                "deleted, and another one has its name now, perhaps that of another run. Nothing "
                "more is saved. Resume this run from a directory that has its files alone."
            )

    def _keep_segments(self, newest: str, needed: Set[str]) -> None:
        self._needed.pop(newest, None)
        self._needed[newest] = needed
        for prefix in list(self._needed)[:-_WITH_SEGMENTS]:
            del self._needed[prefix]
        self._segments.delete_others([name for each in self._needed.values() for name in each])

    def _plan(self, newest: str) -> Tuple[Dict[str, Optional[float]], float, List[str]]:
        """Returns what is kept, when the next one is kept for ever, and what is deleted, with
        `newest` saved.
        """
        saved = {prefix: when for prefix, when in self._saved.items() if prefix != newest}
        saved[newest] = self._clock()
        next_keep, to_delete = self._next_keep, []
        beyond = list(saved)[: -self._max_to_keep] if self._max_to_keep else []
        for prefix in beyond:
            when = saved.pop(prefix)
            if when is not None and when >= next_keep:
                next_keep += self._keep_seconds
            else:
                to_delete.append(prefix)
        return saved, next_keep, to_delete

    def _point_to(self, prefixes: List[str]) -> None:
        """Writes the file `checkpoint`, which lists these, the newest last."""
        path = os.path.join(self.directory, POINTER)
        names = [os.path.basename(prefix) for prefix in prefixes]
        lines = [f'model_checkpoint_path: "{names[-1]}"']
        lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
        write_atomic(path, ("\n".join(lines) + "\n").encode(), path + UNFINISHED)

    def _delete(self) -> None:
        """Deletes what is due; what cannot be deleted is tried again after the next save."""
        due, self._to_delete = self._to_delete, []
        for prefix in due:
            try:
                remove_checkpoint(prefix)
                remove_checkpoint(prefix + REPLACED)
            except OSError as error:
                logger.warning(f"Cannot delete the old checkpoint {prefix}: {error}")
                self._to_delete.append(prefix)

    def _clean(self) -> None:
        """Removes what a save or a deletion that was cut short has left, and nothing else."""
        names = os.listdir(self.directory) if os.path.isdir(self.directory) else []
        for name in filter(_is_unfinished, names):
            discard(os.path.join(self.directory, name))
        ours = [name[: -len(MANIFEST)] for name in names if name.endswith(MANIFEST)]
        prefixes = [os.path.join(self.directory, n) for n in ours if step_of(n) is not None]
        listed = pointed_to(self.directory) if prefixes else []
        for prefix in prefixes:
            index_of_any = [prefix + INDEX, prefix + REPLACED + INDEX]
            if prefix not in listed and not any(map(os.path.exists, index_of_any)):
                logger.info(f"Removing {prefix}, which was left unfinished.")
                self._to_delete.append(prefix)
        self._delete()


def copy_checkpoint(source: str, target: str) -> None:
    """Copies a checkpoint with its manifest; the target is the old or the new one, and whole.

    Raises:
      CheckpointCorrupt: the copy, and so perhaps the source, is damaged. Nothing has changed.
      OSError: it failed, or may have. Nothing has changed.
    """
    verify(source, content=False)  # nothing is copied that has another size
    parts = suffixes(source)
    with AtomicReplace(target) as replace:
        for suffix in parts:
            shutil.copyfile(source + suffix, replace.unfinished + suffix)
        verify(replace.unfinished)
        replace.publish(parts)


def _inode(path: str) -> Optional[int]:
    """Returns what tells a file from others, whatever its name; None if there is none."""
    return os.stat(path).st_ino if os.path.exists(path) else None


def _is_unfinished(name: str) -> bool:
    if name == POINTER + UNFINISHED:
        return True
    stem, _, rest = name.partition(".")
    ours = rest.startswith(UNFINISHED[1:]) or rest.endswith(UNFINISHED)
    return step_of(stem) is not None and ours
