"""Reads and verifies what a run resumes from, once.

The state of step 5000 is the file `model-5000.state`, which the manifest of the checkpoint covers.
It refers to files in the directory `segments`; these are kept for the newest two states only.
"""

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from .. import logger
from ..serialize import dump_hashed, load_hashed
from .files import check_manifest, corrupt, read_known, read_manifest, verify
from .find import first_whole
from .segments import SavedSegments, SegmentDamaged, SegmentRef, SegmentStore, load_segments

STATE = ".state"
SEGMENTS = "segments"
FORMAT = 2

_OLD = b"tp-state"  # how a state of format 1 begins


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
_Loaded = Dict[Tuple[str, str], Dict[str, np.ndarray]]


def write_state(path: str, tree: Any) -> Dict[str, Any]:
    """Writes a tree to a file, and returns the entry of the file in a manifest."""
    with open(path, "wb") as file:
        size, sha256 = dump_hashed({"format": FORMAT, "run": tree}, file)
    return {"sha256": sha256, "size": size}


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

    found = first_whole(directory, read)
    if found is None and incomplete:
        found = incomplete[0]
        logger.error(f"No state in {directory} is whole; the best one is {found.prefix}.")
    return found


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
    if manifest is None or STATE not in manifest["files"]:
        name = os.path.basename(prefix)
        return RestorePoint(prefix, None, f"{prefix} holds variables only, no {name}{STATE}")
    encoded = _read_state(prefix, manifest)
    directory = os.path.dirname(prefix) or "."
    store = SegmentStore(os.path.join(directory, SEGMENTS))
    loaded = {} if loaded is None else loaded
    refs = _refs_of(encoded)
    problem = _load(refs, store, loaded)
    reusable = next_directory is None or (
        os.path.realpath(next_directory) == os.path.realpath(directory)
    )
    verified = {} if problem else {ref.name: loaded[ref.name, ref.sha256] for ref in refs}
    state = load_segments(
        encoded["run"], lambda some: SavedSegments(some, store, reusable, verified)
    )
    return RestorePoint(prefix, state, problem)


def segments_of(prefix: str) -> List[SegmentRef]:
    """Returns the segments that a state needs; none if there are only variables."""
    manifest = read_manifest(prefix)
    if manifest is None or STATE not in manifest["files"]:
        return []
    return _refs_of(_read_state(prefix, manifest))


def _refs_of(tree: Any) -> List[SegmentRef]:
    refs: List[SegmentRef] = []
    load_segments(tree, refs.extend)
    return refs


def _read_state(prefix: str, manifest: Dict[str, Any]) -> Dict[str, Any]:
    try:
        memory: Any = read_known(prefix + STATE, **manifest["files"][STATE], keep=True)
        if memory[: len(_OLD)].tobytes() == _OLD:
            raise UnsupportedState(prefix, 1)
        tree = load_hashed(memory)
    except (OSError, ValueError) as error:
        raise corrupt(prefix, error) from error
    version = tree["format"]
    if version != FORMAT:
        raise UnsupportedState(prefix, version)
    return tree  # type: ignore[no-any-return]


def _load(refs: List[SegmentRef], store: SegmentStore, loaded: _Loaded) -> Optional[str]:
    """Reads all segments that have not been read yet; returns what is wrong with them."""
    try:
        for ref in refs:
            if (ref.name, ref.sha256) not in loaded:
                loaded[ref.name, ref.sha256] = store.read(ref)
    except (SegmentDamaged, OSError) as error:
        return str(error)
    return None
