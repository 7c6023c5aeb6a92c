"""Reads and verifies what a run resumes from, once.

The state of step 5000 is the file `model-5000.state`, which the manifest of the checkpoint covers.
It refers to files in the directory `segments`; these are kept for the newest two states only.
"""

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .. import logger
from ..serialize import load_hashed
from .files import check_manifest, corrupt, read_file, read_manifest, verify
from .find import first_whole
from .segments import (
    Arrays,
    SavedSegments,
    SegmentDamaged,
    SegmentRef,
    SegmentStore,
    load_segments,
)

STATE = ".state"
SEGMENTS = "segments"
FORMAT = 2


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
    """A checkpoint that has been verified, and the state of the run with it.

    Attributes:
      prefix: of the checkpoint with the variables.
      state: the tree that was saved, with `SavedSegments` for its `Segments`; None if there are
        variables only.
      problem: what is missing to continue the run exactly; None if nothing is.
    """

    prefix: str
    state: Optional[Dict[str, Any]]
    problem: Optional[str] = None


# Name and checksum of a segment to its arrays.
_Loaded = Dict[Tuple[str, str], Arrays]


def find_restore_point(
    directory: str, next_directory: Optional[str] = None
) -> Optional[RestorePoint]:
    """Returns the newest state in a directory that is whole, or else the newest that has at least
    its variables. Each that is skipped is logged.

    Returns None if there is no checkpoint, damaged or not. For `next_directory` see
    `read_restore_point`.

    Raises:
      UnsupportedState: the newest one was saved by another version of this library.
    """
    loaded: _Loaded = {}  # successive states share most segments
    incomplete: List[RestorePoint] = []

    def read(prefix: str) -> Optional[RestorePoint]:
        point = read_restore_point(prefix, next_directory, loaded)
        if point.problem is None:
            return point
        logger.warning(f"Skipping the checkpoint {prefix}: {point.problem}")
        incomplete.append(point)
        return None

    point = first_whole(directory, read)
    if point is None and incomplete:
        point = incomplete[0]
        logger.error(f"No state in {directory} is whole; the best one is {point.prefix}.")
    return point


def read_restore_point(
    prefix: str, next_directory: Optional[str] = None, loaded: Optional[_Loaded] = None
) -> RestorePoint:
    """Reads and verifies a checkpoint and its state, each file once.

    Args:
      next_directory: where the next state will be saved; None for beside this one.
      loaded: segments that have been read already; more are added.

    Raises:
      FileNotFoundError: there is no such checkpoint.
      CheckpointCorrupt: a part of it is missing or damaged; segments are a `problem` only.
      UnsupportedState: the state was saved by another version of this library.
    """
    manifest = check_manifest(prefix, except_for=[STATE])
    if manifest is None:
        verify(prefix)
    state, leaves = _read_state(prefix, manifest)
    if state is None:
        name = os.path.basename(prefix) + STATE
        return RestorePoint(prefix, None, f"{prefix} holds variables only, no {name}")
    folder = os.path.realpath(os.path.dirname(prefix) or ".")
    loaded, problem = {} if loaded is None else loaded, None
    for leaf in leaves:
        leaf.reusable = next_directory is None or os.path.realpath(next_directory) == folder
        try:
            for ref in leaf.refs:
                if (ref.name, ref.sha256) not in loaded:
                    loaded[ref.name, ref.sha256] = leaf.store.read(ref)
                leaf.loaded[ref.name] = loaded[ref.name, ref.sha256]
        except (SegmentDamaged, OSError) as error:
            problem = problem or str(error)
    return RestorePoint(prefix, state, problem)


def segments_of(prefix: str) -> List[SegmentRef]:
    """Returns the segments that a state needs; none if there are only variables."""
    _, leaves = _read_state(prefix, read_manifest(prefix))
    return [ref for leaf in leaves for ref in leaf.refs]


def _read_state(prefix: str, manifest: Optional[Dict[str, Any]]) -> Tuple[Any, List[SavedSegments]]:
    """Returns the state with a checkpoint, None if there is none, and the `SavedSegments` in it."""
    if manifest is None or STATE not in manifest["files"]:
        return None, []
    try:
        tree = load_hashed(read_file(prefix + STATE, **manifest["files"][STATE]))
    except (OSError, ValueError, TypeError) as error:
        raise corrupt(prefix, error) from error
    if tree["format"] != FORMAT:
        raise UnsupportedState(prefix, tree["format"])
    store = SegmentStore(os.path.join(os.path.dirname(prefix), SEGMENTS))
    leaves: List[SavedSegments] = []

    def make(refs: List[SegmentRef]) -> SavedSegments:
        leaves.append(SavedSegments(refs, store))
        return leaves[-1]

    return load_segments(tree["run"], make), leaves
