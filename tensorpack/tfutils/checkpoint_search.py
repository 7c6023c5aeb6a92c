"""Tells which checkpoint in a directory is the newest one that is whole.

The file `checkpoint`, which TensorFlow keeps, is a hint and no more: it may be missing, damaged,
or name a checkpoint that is.
"""

import os
from typing import Callable, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from ._prefix import names_with_prefix
from ._publication import REPLACED
from .checkpoint import CheckpointCorrupt, CheckpointReader, get_all_checkpoints
from .manifest import INDEX, MANIFEST, check_manifest

__all__ = ["NoValidCheckpoint", "candidates", "newest_valid", "pointed_to", "verify"]


class NoValidCheckpoint(CheckpointCorrupt):
    """There are checkpoints in a directory, and each of them is damaged.

    Attributes:
      path: of the directory.
      reason: what is wrong with each.
    """

    def __str__(self) -> str:
        return (
            f"No checkpoint in {self.path} is whole: {self.reason}. Repair or restore one, or "
            "move them all away to begin anew."
        )


def verify(prefix: str) -> None:
    """Checks that a checkpoint is as it was written.

    One without a manifest, which another program wrote, has to have all its files and an index
    that TensorFlow can read.

    Args:
      prefix: such as `train_log/run/model-5000`.

    Raises:
      FileNotFoundError: there is no such checkpoint.
      CheckpointCorrupt: a part of it is missing or damaged.
    """
    if not os.path.exists(prefix + INDEX) and os.path.exists(prefix + MANIFEST):
        raise CheckpointCorrupt(prefix, f"{prefix + INDEX} is missing")
    if not check_manifest(prefix):
        CheckpointReader(prefix)
        _check_shards(prefix)


def _check_shards(prefix: str) -> None:
    if not os.path.exists(prefix + INDEX):  # of a format that has none
        return
    paths = names_with_prefix(prefix + ".data-")
    totals = {path.rpartition("-of-")[2] for path in paths}
    if totals != {f"{len(paths):05d}"}:
        raise CheckpointCorrupt(prefix, f"a file {prefix}.data-* is missing")


def newest_valid(directory: str, check: Callable[[str], None] = verify) -> Optional[str]:
    """Returns the newest whole checkpoint in a directory, as a prefix.

    That is the one which the file `checkpoint` names; or else those that it lists, from the end;
    or else the one of the highest step. Each damaged one that is passed over is warned of.

    Args:
      directory: where it is.
      check: takes a prefix, and raises `CheckpointCorrupt` or `FileNotFoundError` if that one is
        not good enough.

    Returns:
      None if there is no checkpoint, damaged or not.

    Raises:
      NoValidCheckpoint: all that there are are damaged.
    """
    problems = []
    for prefix in candidates(directory):
        try:
            check(prefix)
        except (CheckpointCorrupt, FileNotFoundError) as error:
            reason = getattr(error, "reason", f"{prefix + INDEX} is missing")
            problems.append(f"{prefix} ({reason})")
            logger.warning(f"The checkpoint {prefix} is passed over: {reason}")
        else:
            if problems:
                logger.warning(f"The newest whole checkpoint in {directory} is {prefix}.")
            return prefix
    if problems:
        raise NoValidCheckpoint(directory, "; ".join(problems))
    return None


def candidates(directory: str) -> List[str]:
    """Returns all checkpoints in a directory, whole or not, the best first, each once."""
    if not os.path.isdir(directory):
        return []
    found = [prefix for prefix, _ in reversed(get_all_checkpoints(directory))]
    end = REPLACED + INDEX
    paths = names_with_prefix(os.path.join(directory, "model-"))
    behind = {path[: -len(end)] for path in paths if path.endswith(end)}
    every = list(dict.fromkeys(pointed_to(directory)[::-1] + found + sorted(behind)))
    ordered = []
    for prefix in every:
        # What is half replaced is behind what replaces it.
        if prefix not in behind or os.path.exists(prefix + INDEX):
            ordered.append(prefix)
        if prefix in behind:
            ordered.append(prefix + REPLACED)
    return ordered


def pointed_to(directory: str) -> List[str]:
    """Returns the checkpoints that the file `checkpoint` lists, the newest last.

    Those elsewhere do not count; if that, or damage, leaves none of them, it is warned of.
    """
    pointer = os.path.join(directory, "checkpoint")
    if not os.path.lexists(pointer):
        return []
    try:
        state = tf.train.get_checkpoint_state(directory)
    except (tf.errors.OpError, ValueError):
        state = None
    listed = [] if state is None else list(state.all_model_checkpoint_paths)
    if state is not None and state.model_checkpoint_path:
        newest = state.model_checkpoint_path
        listed = [path for path in listed if path != newest] + [newest]
    here = [
        os.path.join(directory, os.path.basename(path))
        for path in listed
        if os.path.abspath(os.path.dirname(path)) == os.path.abspath(directory)
    ]
    if not here:
        logger.warning(f"{pointer} names no checkpoint beside it, and is ignored.")
    return here
