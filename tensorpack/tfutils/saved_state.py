"""Reads the states that runs have saved beside their variables, and finds the newest whole one.

The state of step 5000 is the checkpoint `model-5000` and, of the same name, `model-5000.state`,
which the checkpoint's manifest covers. What is too large to be written again each time lies in the
directory `segments` beside them; it is kept for the newest two states only.
"""

import os
from typing import Any, Dict, List, Optional

from tensorpack.utils import logger
from tensorpack.utils.segments import (
    SegmentDamaged,
    SegmentRef,
    SegmentStore,
    load_segments,
    refs_of,
)
from tensorpack.utils.state_file import read_state

from .checkpoint import CheckpointCorrupt, get_checkpoint_path
from .checkpoint_search import NoValidCheckpoint, newest_valid, verify
from .manifest import read_manifest

__all__ = ["SEGMENTS", "STATE", "SavedState", "newest_state", "segments_of", "state_at"]

STATE = ".state"
SEGMENTS = "segments"
FORMAT = 1


class SavedState:
    """One state on the disk; nothing of it has been read when this is made.

    Args:
      prefix: of the checkpoint.
      is_whole: whether it is known already that nothing is missing.

    Attributes:
      prefix: the same.
    """

    def __init__(self, prefix: str, is_whole: bool = False) -> None:
        self.prefix = prefix
        self._is_whole = is_whole

    @property
    def has_state(self) -> bool:
        """Whether there is more than variables, which the checkpoint knows to be its own."""
        return _has_state(self.prefix)

    def problem(self) -> Optional[str]:
        """Returns what is missing to continue the run exactly, None if nothing is."""
        if self._is_whole:
            return None
        if not self.has_state:
            return f"{self.prefix} holds variables only, no {os.path.basename(self.prefix)}{STATE}"
        store = _store(self.prefix)
        try:
            for ref in segments_of(self.prefix):
                store.check(ref)
        except (SegmentDamaged, OSError) as error:
            return str(error)
        return None

    def read(self, directory: Optional[str] = None) -> Optional[Dict[str, Any]]:
        """Returns the tree, None if there are only variables.

        Args:
          directory: where the next state will be saved; this one's by default.

        Raises:
          CheckpointCorrupt: it cannot be read, or was written by a later version of this library.
        """
        encoded = _read(self.prefix)
        if encoded is None:
            return None
        if encoded.get("format") != FORMAT:
            raise CheckpointCorrupt(
                self.prefix,
                f"its state has format {encoded.get('format')}, this version reads {FORMAT}",
            )
        here = os.path.realpath(os.path.dirname(self.prefix) or ".")
        reusable = directory is None or os.path.realpath(directory) == here
        tree: Dict[str, Any] = load_segments(encoded["run"], _store(self.prefix), reusable)
        return tree


def segments_of(prefix: str) -> List[SegmentRef]:
    """Returns which segments a state needs; none if there are only variables.

    Raises:
      CheckpointCorrupt: the state cannot be read.
    """
    return refs_of(_read(prefix) or {})


def state_at(path: str) -> SavedState:
    """Returns the state that a path means.

    Args:
      path: as in `get_checkpoint_path`; or a directory, for the newest whole state in it.

    Raises:
      FileNotFoundError: there is none.
      CheckpointCorrupt: it is damaged.
    """
    if os.path.isdir(path):
        found = newest_state(path)
        if found is None:
            raise FileNotFoundError(f"There is no checkpoint in {path}: nothing can be resumed.")
        return found
    prefix = get_checkpoint_path(path)
    verify(prefix)
    return SavedState(prefix)


def newest_state(directory: str) -> Optional[SavedState]:
    """Returns the newest state in a directory that is whole, or else the newest that has at least
    its variables. Each that is passed over is warned of.

    Returns:
      None if there is no checkpoint, damaged or not.

    Raises:
      NoValidCheckpoint: all that there are are damaged.
    """
    try:
        prefix = newest_valid(directory, _verify_all)
        return None if prefix is None else SavedState(prefix, is_whole=True)
    except NoValidCheckpoint as error:
        prefix = newest_valid(directory)
        logger.error(
            f"No state in {directory} is whole; the best that there is, is {prefix}. {error.reason}"
        )
        return None if prefix is None else SavedState(prefix)


def _verify_all(prefix: str) -> None:
    verify(prefix)
    problem = SavedState(prefix).problem()
    if problem is not None:
        raise CheckpointCorrupt(prefix, problem)


def _has_state(prefix: str) -> bool:
    """Whether the state belongs to the checkpoint, and is not left of one that was replaced."""
    manifest = read_manifest(prefix)
    return manifest is not None and STATE in manifest["files"]


def _read(prefix: str) -> Optional[Dict[str, Any]]:
    if not _has_state(prefix):
        return None
    try:
        tree: Dict[str, Any] = read_state(prefix + STATE)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CheckpointCorrupt(prefix, str(error)) from error
    return tree


def _store(prefix: str) -> SegmentStore:
    return SegmentStore(os.path.join(os.path.dirname(prefix), SEGMENTS))
