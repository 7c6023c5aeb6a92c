"""Checkpoints on the disk, and the states of runs in them: save, find, restore.

This package knows files, not variables, and works without TensorFlow: `tfutils.checkpoint` adds
the variables. A save is `CheckpointStore.save(step, write_variables, state)`. To restore, call
`find_restore_point`, which reads and verifies each file once and returns a `RestorePoint`.
"""

_NAMES = {  # module -> its public names, loaded when one is used
    "files": "CheckpointCorrupt verify",
    "find": (
        "NoValidCheckpoint RestorePoint SEGMENTS STATE UnsupportedState candidates "
        "find_restore_point get_all_checkpoints newest_valid pointed_to read_restore_point"
    ),
    "segments": "SavedSegments SegmentDamaged SegmentRef Segments abandon",
    "store": "CheckpointStore DirectoryReplaced copy_checkpoint",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
