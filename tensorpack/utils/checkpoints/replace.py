"""Gives a checkpoint that was written under another name its final one, as a whole or not at all.

A checkpoint is several files, and the system renames one at a time. A checkpoint exists if its
index does, so the index is renamed last and removed first. A whole checkpoint that had the name
before is kept as `PREFIX.replaced` until the new one is safe.
"""

import os
import shutil
from contextlib import suppress
from typing import List, Optional

from ..atomic import fsync_path
from .files import (
    INDEX,
    MANIFEST,
    CheckpointCorrupt,
    check_manifest,
    discard,
    remove_checkpoint,
    suffixes,
)

UNFINISHED = ".unfinished"
REPLACED = ".replaced"


class AtomicReplace:
    """A context in which a checkpoint with a manifest is written as `unfinished.*`, in the same
    directory, and then renamed to `TARGET.*` by `publish`. If it raises, also after that, what was
    there before is restored as far as the disk allows.
    """

    def __init__(self, target: str) -> None:
        self.unfinished = target + UNFINISHED
        self._target = target
        self._directory = os.path.dirname(target) or "."
        self._moved: List[str] = []
        self._backup_begun = False
        self._withdrawn = False

    def __enter__(self) -> "AtomicReplace":
        discard(self.unfinished)
        return self

    def __exit__(self, kind: Optional[type], *_: object) -> None:
        if kind is not None:
            self._undo()
            discard(self.unfinished)
            return
        backup = self._target + REPLACED
        if any(os.path.lexists(backup + suffix) for suffix in (MANIFEST, INDEX)):
            with suppress(OSError):  # it is removed with the checkpoint that has its name now
                remove_checkpoint(backup)

    def publish(self, parts: List[str]) -> None:
        """Brings the files to the disk, renames them, and brings their names to the disk.

        Args:
          parts: their suffixes, in the order of `suffixes`.
        """
        for suffix in parts:
            fsync_path(self.unfinished + suffix)
        fsync_path(self._directory)
        if os.path.lexists(self._target + INDEX):
            self._back_up()
        for suffix in parts:
            os.replace(self.unfinished + suffix, self._target + suffix)
            self._moved.append(suffix)
        fsync_path(self._directory)

    def _back_up(self) -> None:
        backup = self._target + REPLACED
        try:
            whole = check_manifest(self._target) or not os.path.exists(backup + INDEX)
        except CheckpointCorrupt:
            whole = False  # an earlier backup is the better one
        if whole:
            self._backup_begun = True
            remove_checkpoint(backup)
            _clone(self._target, backup)
            fsync_path(self._directory)
        os.remove(self._target + INDEX)
        self._withdrawn = whole

    def _undo(self) -> None:
        with suppress(OSError):  # a backup that cannot be put back is as good where it is
            for suffix in reversed(self._moved):
                os.remove(self._target + suffix)
            if self._withdrawn:
                _clone(self._target + REPLACED, self._target)
                fsync_path(self._directory)
            if self._backup_begun:
                remove_checkpoint(self._target + REPLACED)


def _clone(source: str, target: str) -> None:
    """Gives a checkpoint a second name, in place of the files that have it."""
    for suffix in suffixes(source):
        unfinished = target + suffix + UNFINISHED
        discard(unfinished)
        try:
            os.link(source + suffix, unfinished)
        except OSError:  # not every file system has links
            shutil.copyfile(source + suffix, unfinished)
            fsync_path(unfinished)
        os.replace(unfinished, target + suffix)
