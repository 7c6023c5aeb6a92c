"""Checkpoints on the disk, and the states of runs in them: save, find, restore.

This package knows files, not variables, and works without TensorFlow: `tfutils.checkpoint` adds
the variables. A save is `CheckpointStore.save(step, write_variables, state)`. To restore, call
`find_restore_point`, which reads and verifies each file once and returns a `RestorePoint`.
"""

from .files import CheckpointCorrupt, check_manifest, verify
from .find import NoValidCheckpoint, candidates, get_all_checkpoints, newest_valid, pointed_to
from .restore import (
    SEGMENTS,
    STATE,
    RestorePoint,
    UnsupportedState,
    find_restore_point,
    read_restore_point,
)
from .segments import PendingSegments, SavedSegments, SegmentDamaged, SegmentRef, Segments
from .store import CheckpointStore, DirectoryReplaced, copy_checkpoint

__all__ = [
    "CheckpointCorrupt",
    "CheckpointStore",
    "DirectoryReplaced",
    "NoValidCheckpoint",
    "PendingSegments",
    "RestorePoint",
    "SEGMENTS",
    "STATE",
    "SavedSegments",
    "SegmentDamaged",
    "SegmentRef",
    "Segments",
    "UnsupportedState",
    "candidates",
    "check_manifest",
    "copy_checkpoint",
    "find_restore_point",
    "get_all_checkpoints",
    "newest_valid",
    "pointed_to",
    "read_restore_point",
    "verify",
]
