"""Finds the newest checkpoint in a directory that is whole, and reads the state of a run with it.

The file `checkpoint`, which TensorFlow keeps, is only a hint: it may be missing, damaged, or name a
checkpoint that is. The state of step 5000 is the file `model-5000.state`, which the manifest of the
checkpoint covers. It refers to files in the directory `segments`; these are kept for the newest two
states only.
"""

import os
import re
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .. import logger
from ..serialize import load_hashed
from .files import (
    INDEX,
    REPLACED,
    CheckpointCorrupt,
    errors_of,
    read_file,
    read_manifest,
    step_of,
    verify,
)
from .segments import SavedSegments, SegmentDamaged, SegmentRef, SegmentStore, load_segments

STATE = ".state"
SEGMENTS = "segments"
FORMAT = 2
POINTER = "checkpoint"

_LINE = re.compile(
    rb'^\s*(model_checkpoint_path|all_model_checkpoint_paths)\s*:\s*"((?:[^"\\\n]|\\.)*)"\s*$',
    re.MULTILINE,
)
_ESCAPED = re.compile(rb"\\([0-7]{1,3}|.)")


class NoValidCheckpoint(CheckpointCorrupt):
    """There are checkpoints in the directory `path`, and each of them is damaged."""

    def __str__(self) -> str:
        return (
            f"No checkpoint in {self.path} is whole: {self.reason}. Repair or restore one, or "
            "move them all away to start a new run."
        )


class UnsupportedState(RuntimeError):
    """A state has the format of another version of this library, which this one cannot read."""

    def __init__(self, prefix: str, version: Any) -> None:
        super().__init__(
            f"The state {prefix}{STATE} has format {version}, this version of tensorpack reads "
            f"format {FORMAT}. Resume the run with the version that saved it; or start a new run, "
            "in another log directory, from its weights: "
            f"TrainConfig(session_init=InitFrom({prefix!r})), in the example --load {prefix}."
        )


class RestorePoint(NamedTuple):
    """A checkpoint that has been verified, as a prefix, and the state of the run with it.

    Attributes:
      state: the tree that was saved, with `SavedSegments` for its `Segments`; None if there are
        variables only.
      problem: what is missing to continue the run exactly; None if nothing is.
    """

    prefix: str
    state: Optional[Dict[str, Any]]
    problem: Optional[str] = None


def newest_valid(directory: str, content: bool = True) -> Optional[str]:
    """Returns the newest whole checkpoint in a directory, as a prefix.

    That is the one which the file `checkpoint` names; otherwise one of those that it lists, from
    the end; otherwise the one of the highest step; None if there is no checkpoint, damaged or not.
    Each damaged one that is skipped is logged. For `content` see `verify`.
    """
    points = whole_checkpoints(directory, lambda prefix: verify(prefix, content))
    return next((prefix for prefix, _ in points), None)


def whole_checkpoints(directory: str, read: Callable[[str], Any]) -> Iterator[Tuple[str, Any]]:
    """Yields the checkpoints in a directory that are not damaged, the best first, as prefixes with
    what `read` returns for them, see `verify` for its errors; `NoValidCheckpoint` if all are.
    """
    problems, is_any_whole = [], False
    for prefix in candidates(directory):
        try:
            result = read(prefix)
        except (CheckpointCorrupt, FileNotFoundError) as error:
            reason = getattr(error, "reason", f"{prefix + INDEX} is missing")
            problems.append(f"{prefix} ({reason})")
            logger.warning(f"Skipping the checkpoint {prefix}: {reason}")
            continue
        if problems and not is_any_whole:
            logger.warning(f"The newest whole checkpoint in {directory} is {prefix}.")
        is_any_whole = True
        yield prefix, result
    if problems and not is_any_whole:
        raise NoValidCheckpoint(directory, "; ".join(problems))


def get_all_checkpoints(
    dir: "str | os.PathLike[str]", prefix: str = "model"
) -> List[Tuple[str, int]]:
    """Returns the checkpoints `{prefix}-{step}` in a directory, as (path, step), by step."""
    name = re.compile(re.escape(prefix) + r"-([0-9]{1,18})\.index")
    matches = filter(None, map(name.fullmatch, os.listdir(os.fsdecode(dir))))
    steps = [(int(match.group(1)), match.group()[: -len(INDEX)]) for match in matches]
    return [(os.path.join(os.fsdecode(dir), stem), step) for step, stem in sorted(steps)]


def candidates(directory: str) -> List[str]:
    """Returns all checkpoints in a directory, whole or not, the best first, each once."""
    if not os.path.isdir(directory):
        return []
    whole = {name[: -len(INDEX)] for name in os.listdir(directory) if name.endswith(INDEX)}
    replaced = {name[: -len(REPLACED)] for name in whole if name.endswith(REPLACED)}
    ours = [name for name in whole | replaced if step_of(name) is not None]
    by_step = sorted(ours, key=lambda name: step_of(name) or 0, reverse=True)
    listed = [os.path.basename(path) for path in reversed(pointed_to(directory))]
    names = []
    for name in dict.fromkeys(listed + by_step):
        # One whose replacement was cut short comes after its replacement.
        names += [name] * (name in whole or name not in replaced)
        names += [name + REPLACED] * (name in replaced)
    return [os.path.join(directory, name) for name in names]


def pointed_to(directory: str) -> List[str]:
    """Returns the checkpoints in this directory that the file `checkpoint` lists, the newest last;
    logs a warning if there are none of them.
    """
    pointer = os.path.join(directory, POINTER)
    try:
        with open(pointer, "rb") as file:
            lines = _LINE.findall(file.read())
    except FileNotFoundError:
        return []
    except OSError as error:
        logger.warning(f"{pointer} is ignored: {error}")
        return []
    lines.sort(key=lambda line: line[0] == b"model_checkpoint_path")  # the newest last
    names: Dict[str, None] = {}
    for _, text in lines:
        text = _ESCAPED.sub(lambda m: bytes([int(m[1], 8) & 255]) if m[1].isdigit() else m[1], text)
        parent, name = os.path.split(os.fsdecode(text))
        if name and (not parent or os.path.abspath(parent) == os.path.abspath(directory)):
            names.pop(name, None)
            names[name] = None
    if not names:
        logger.warning(f"{pointer} names no checkpoint beside it, and is ignored.")
    return [os.path.join(directory, name) for name in names]


def find_restore_point(
    directory: str, next_directory: Optional[str] = None
) -> Optional[RestorePoint]:
    """Returns the newest state in a directory that is whole, or else the newest that has at least
    its variables; None if there is no checkpoint, damaged or not. Each that is skipped is logged.
    See `read_restore_point`.
    """
    best: Optional[RestorePoint] = None
    read = partial(read_restore_point, next_directory=next_directory)
    for prefix, point in whole_checkpoints(directory, read):
        if point.problem is None:
            return point  # type: ignore[no-any-return]
        logger.warning(f"Skipping the checkpoint {prefix}: {point.problem}")
        best = best or point
    if best is not None:
        logger.error(f"No state in {directory} is whole; the best one is {best.prefix}.")
    return best


def read_restore_point(prefix: str, next_directory: Optional[str] = None) -> RestorePoint:
    """Reads and verifies a checkpoint and its state, each file once.

    The next state will be saved in `next_directory`, None for beside this one. Errors are those of
    `verify`, and `UnsupportedState`; damaged segments are a `problem` only.
    """
    state, leaves = _read_state(prefix, verify(prefix, except_for=STATE))
    if state is None:
        name = os.path.basename(prefix) + STATE
        return RestorePoint(prefix, None, f"{prefix} holds variables only, no {name}")
    folder, problem = os.path.realpath(os.path.dirname(prefix)), None
    try:
        for leaf in leaves:
            leaf.reusable = next_directory is None or os.path.realpath(next_directory) == folder
            leaf.loaded = {ref.name: leaf.store.read(ref) for ref in leaf.refs}
    except (SegmentDamaged, OSError) as error:
        problem = str(error)
    return RestorePoint(prefix, state, problem)


def segments_of(prefix: str) -> List[SegmentRef]:
    """Returns the segments that a state needs; none if there are only variables."""
    _, leaves = _read_state(prefix, read_manifest(prefix))
    return [ref for leaf in leaves for ref in leaf.refs]


def _read_state(prefix: str, manifest: Optional[Dict[str, Any]]) -> Tuple[Any, List[SavedSegments]]:
    """Returns the state with a checkpoint, None if there is none, and the `SavedSegments` in it."""
    if manifest is None or STATE not in manifest["files"]:
        return None, []
    with errors_of(prefix):
        tree = load_hashed(read_file(prefix + STATE, **manifest["files"][STATE]))
    if tree["format"] != FORMAT:
        raise UnsupportedState(prefix, tree["format"])
    store = SegmentStore(os.path.join(os.path.dirname(prefix), SEGMENTS))
    leaves: List[SavedSegments] = []

    def make(refs: List[SegmentRef]) -> SavedSegments:
        leaves.append(SavedSegments(refs, store))
        return leaves[-1]

    return load_segments(tree["run"], make), leaves
