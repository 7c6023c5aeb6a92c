"""Gives a checkpoint that was written under another name its own one, as a whole or not at all.

A checkpoint is several files, and the system renames one at a time. It counts as there when its
index is, so the index is renamed last and removed first. A whole checkpoint that had the name
before is kept under a third name, `PREFIX.replaced`, until the new one is safe.
"""

import os
import shutil
from typing import List

from tensorpack.utils.atomic import fsync_path

from ._prefix import discard
from .checkpoint import CheckpointCorrupt
from .manifest import INDEX, check_manifest, suffixes

__all__ = ["Publication", "REPLACED", "UNFINISHED", "remove_checkpoint"]

UNFINISHED = ".unfinished"
REPLACED = ".replaced"


class Publication:
    """Renames `SOURCE.*` to `TARGET.*`; `finish` or `undo` has to follow.

    Args:
      source: prefix of a checkpoint with a manifest.
      target: prefix that it gets, in the same directory.
    """

    def __init__(self, source: str, target: str) -> None:
        self._source = source
        self._target = target
        self._directory = os.path.dirname(target) or "."
        self._moved: List[str] = []
        self._set_aside_begun = False
        self._withdrawn = False

    def publish(self) -> None:
        """Sees to it that the files are on the disk, then renames them, then sees to that.

        Raises:
          OSError: it failed; call `undo`.
        """
        parts = suffixes(self._source)
        for suffix in parts:
            fsync_path(self._source + suffix)
        fsync_path(self._directory)
        if os.path.lexists(self._target + INDEX):
            self._set_aside()
        for suffix in parts:
            os.replace(self._source + suffix, self._target + suffix)
            self._moved.append(suffix)
        fsync_path(self._directory)

    def _set_aside(self) -> None:
        aside = self._target + REPLACED
        try:
            whole = check_manifest(self._target) or not os.path.exists(aside + INDEX)
        except CheckpointCorrupt:
            whole = False  # then one that was set aside before is the better one
        if whole:
            self._set_aside_begun = True
            remove_checkpoint(aside)
            _clone(self._target, aside)
            fsync_path(self._directory)
        os.remove(self._target + INDEX)
        self._withdrawn = whole

    def finish(self) -> None:
        """Forgets what had the name before, when nothing that may fail is to come."""
        try:
            remove_checkpoint(self._target + REPLACED)
        except OSError:
            pass  # it goes when what has its name now goes

    def undo(self) -> None:
        """Makes it as it was before `publish`, as far as the disk lets it.

        What was set aside stays so if it cannot be put back, and is as good there.
        """
        try:
            for suffix in reversed(self._moved):
                os.remove(self._target + suffix)
            if self._withdrawn:
                _clone(self._target + REPLACED, self._target)
                fsync_path(self._directory)
            if self._set_aside_begun:
                remove_checkpoint(self._target + REPLACED)
        except OSError:
            pass


def remove_checkpoint(prefix: str) -> None:
    """Removes a checkpoint, or what is left of one, its index first and its manifest last.

    Raises:
      OSError: a file cannot be removed.
    """
    for suffix in reversed(suffixes(prefix)):
        try:
            os.remove(prefix + suffix)
        except FileNotFoundError:
            pass


def _clone(source: str, target: str) -> None:
    """Gives a checkpoint a second name; what the files of that name held is gone."""
    for suffix in suffixes(source):
        unfinished = target + suffix + UNFINISHED
        discard(unfinished)
        try:
            os.link(source + suffix, unfinished)
        except OSError:  # not every file system has links
            shutil.copyfile(source + suffix, unfinished)
            fsync_path(unfinished)
        os.replace(unfinished, target + suffix)
