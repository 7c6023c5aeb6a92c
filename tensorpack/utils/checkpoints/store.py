"""Writes the checkpoints of a run, so that none that was reported as saved is ever lost.

A save is either done and on the disk, or has changed nothing, whatever stops it: an error, a
signal, a power failure. The variables and the state of the run are saved as one: both exist, or
neither. New segments of the state are written before that, under names to which nothing refers
until the checkpoint is published.
"""

import os
import re
import shutil
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from .. import logger
from .._directory_lock import LOCK, DirectoryLock
from ..atomic import make_directory, remove_temporaries, write_atomic
from ..serialize import dump_hashed
from .files import (
    INDEX,
    REPLACED,
    CheckpointCorrupt,
    discard,
    remove_checkpoint,
    replace_checkpoint,
    restore_backup,
    step_of,
    suffixes,
    verify,
    write_manifest,
)
from .find import (
    FORMAT,
    POINTER,
    SEGMENTS,
    STATE,
    UnsupportedState,
    candidates,
    pointed_to,
    segments_of,
)
from .segments import Segments, SegmentStore

_UNFINISHED = re.compile(r"checkpoint\.unfinished|model-\d{1,18}(\.unfinished.*|\..*\.unfinished)")
_MANIFEST = re.compile(r"((model-\d{1,18})(?:\.replaced)?)\.manifest\.json")


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
        self._segments = SegmentStore(os.path.join(directory, SEGMENTS))
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

    def resume_from(self, prefix: str) -> None:
        """Makes a checkpoint, which is whole, the newest one of the directory for all that read
        `checkpoint`; ends what was left when one was being replaced.
        """
        if os.path.realpath(os.path.dirname(prefix)) != os.path.realpath(self.directory):
            return
        newest = os.path.join(self.directory, os.path.basename(prefix))
        if newest.endswith(REPLACED):
            newest = newest[: -len(REPLACED)]
            restore_backup(newest)
        for backup in [path for path in candidates(self.directory) if path.endswith(REPLACED)]:
            with suppress(CheckpointCorrupt, FileNotFoundError):
                verify(backup[: -len(REPLACED)])
                remove_checkpoint(backup)
        listed = [path for path in pointed_to(self.directory) if os.path.exists(path + INDEX)]
        if listed[-1:] != [newest]:
            self._point_to([path for path in listed if path != newest] + [newest])
        self._saved.pop(newest, None)
        if step_of(os.path.basename(newest)) is not None:
            self._saved[newest] = None

    def save(
        self, step: int, write: Callable[[str], object], state: Optional[Dict[str, Any]] = None
    ) -> str:
        """Saves a checkpoint, then deletes those whose time has come; returns its prefix.

        Args:
          step: the global step.
          write: called with a prefix, writes the variables to files with the names of those of a
            checkpoint. Its exceptions are passed on.
          state: the state of the run; its `Segments` are told how the save went.

        Raises:
          OSError: it failed, or may have. Nothing has changed.
          DirectoryReplaced: the lock in the directory is not the one that was there before.
        """
        final, is_saved = self.path_of(step), False
        saved, next_keep, to_delete = self._plan(final)

        def write_all(prefix: str) -> None:
            write(prefix)
            files = {}
            if state is not None:
                with open(prefix + STATE, "wb") as file:
                    convert: Dict[type, Callable[[Any], Any]] = {Segments: self._segments.pack}
                    size, sha256 = dump_hashed({"format": FORMAT, "run": state}, file, convert)
                files[STATE] = {"sha256": sha256, "size": size}
            write_manifest(prefix, step, files, self.describe(prefix))
            self._open_directory()  # still the same one

        try:
            self._open_directory()
            replace_checkpoint(final, write_all, lambda: self._point_to(list(saved)))
            self._saved, self._next_keep = saved, next_keep
            is_saved = True
        finally:
            needed = self._segments.end_save(state, is_saved)
        for prefix in to_delete:
            _delete(prefix)
        if state is not None and os.path.isdir(self._segments.directory):
            self._segments.delete_others(needed | self._needed_before(final))
        return final

    def _needed_before(self, newest: str) -> Set[str]:
        """Returns the names of the segments of the state before the newest one."""
        for prefix in candidates(self.directory):
            # The search for a state to resume from logs what is damaged.
            with suppress(CheckpointCorrupt, UnsupportedState, OSError):
                if prefix != newest:
                    verify(prefix, content=False)
                    return {ref.name for ref in segments_of(prefix)}
        return set()

    def _open_directory(self) -> None:
        """Makes the directory if it is missing, and compares the lock in it with that of before."""
        make_directory(self.directory)
        path = os.path.join(self.directory, LOCK)
        if self._lock is not None and not os.path.exists(path):
            logger.warning(f"{path} was removed during the run; it is made again.")
            DirectoryLock(self.directory)  # held until the process ends
            self._lock = _inode(path)
        if self._lock not in (None, _inode(path)):
            raise DirectoryReplaced(
                f"{path} is not the one that this run had before: the directory was renamed or "
                "deleted, and another one has its name now, perhaps that of another run. Nothing "
                "more is saved. Resume this run from a directory that has its files alone."
            )

    def _plan(self, newest: str) -> Tuple[Dict[str, Optional[float]], float, List[str]]:
        """Returns what is kept, when the next one is kept for ever, and what is deleted, with
        `newest` saved.
        """
        saved = {prefix: when for prefix, when in self._saved.items() if prefix != newest}
        saved[newest] = self._clock()
        next_keep, to_delete = self._next_keep, []
        for prefix in list(saved)[: -self._max_to_keep] if self._max_to_keep else []:
            when = saved.pop(prefix)
            if when is not None and when >= next_keep:
                next_keep += self._keep_seconds
            else:
                to_delete.append(prefix)
        return saved, next_keep, to_delete

    def _point_to(self, prefixes: List[str]) -> None:
        """Writes the file `checkpoint`, which lists these, the newest last."""
        names = [os.path.basename(prefix) for prefix in prefixes]
        lines = [f'model_checkpoint_path: "{names[-1]}"']
        lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
        write_atomic(os.path.join(self.directory, POINTER), ("\n".join(lines) + "\n").encode())

    def _clean(self) -> None:
        """Removes what a save or a deletion that was cut short has left, and nothing else."""
        if not os.path.isdir(self.directory):
            return
        remove_temporaries(self.directory, shared=False)
        names = {*os.listdir(self.directory)}
        for name in filter(_UNFINISHED.fullmatch, names):
            discard(os.path.join(self.directory, name))
        for match in filter(None, map(_MANIFEST.fullmatch, names)):
            stem, target = match.groups()
            path = os.path.join(self.directory, stem)
            has_index = names & {stem + INDEX, target + REPLACED + INDEX}
            if not has_index and path not in pointed_to(self.directory):
                logger.info(f"Removing {path}, which was left unfinished.")
                _delete(path)


def _delete(prefix: str) -> None:
    try:
        remove_checkpoint(prefix)
        remove_checkpoint(prefix + REPLACED)
    except OSError as error:
        logger.warning(f"Cannot delete the old checkpoint {prefix}: {error}")


def copy_checkpoint(source: str, target: str) -> None:
    """Copies a checkpoint with its manifest; the target is the old or the new one, and whole.

    Raises:
      CheckpointCorrupt: the copy, and so perhaps the source, is damaged. Nothing has changed.
      OSError: it failed, or may have. Nothing has changed.
    """

    def copy(prefix: str) -> None:
        for suffix in suffixes(source):
            shutil.copyfile(source + suffix, prefix + suffix)
        verify(prefix)

    verify(source, content=False)  # nothing is copied that has another size
    replace_checkpoint(target, copy)


def _inode(path: str) -> Optional[int]:
    """Returns what tells a file from others, whatever its name; None if there is none."""
    return os.stat(path).st_ino if os.path.exists(path) else None
