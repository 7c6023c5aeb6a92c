"""Lists the runs below a directory: how each stands, its best value, and when it last wrote."""

import os
import time
from contextlib import suppress
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from tensorpack.utils._epochs import Epoch, read_epochs
from tensorpack.utils._run_record import FILENAME, LOST, read_record

from ._curves import scalar_rank
from ._facts import result_of

__all__ = ["RunLine", "find_runs"]

_STATS = "stats.json"
_MOST_FOLDERS = 100000
_WORDS = {LOST: "died"}
_HIGH = ("score", "accuracy")  # of these the greatest is the best, of all others the least


class RunLine(NamedTuple):
    """A run in the list.

    Attributes:
      directory: below the one that was looked into, with that before it.
      state: "running", "finished", "stopped", "failed", "died", or "unknown" without a `run.json`.
      step, epoch: the last ones; None if not known.
      best: in words, such as "error 0.25 at step 3"; "" if not known.
      age: seconds since the last write.
      message: why it has failed or was stopped; what cannot be read.
    """

    directory: str
    state: str
    step: Optional[int]
    epoch: Optional[int]
    best: str
    age: float
    message: str


def find_runs(directory: str, clock: Callable[[], float] = time.time) -> List[RunLine]:
    """Returns the runs in a directory and below it, the youngest first; links are not followed.

    Raises:
      ValueError: there is no such directory.
    """
    if not os.path.isdir(directory):
        raise ValueError(f"{directory} is not a directory: give one below which runs are.")
    found = []
    for count, (folder, folders, names) in enumerate(os.walk(directory)):
        folders.sort()
        if count == _MOST_FOLDERS:
            break
        if FILENAME in names or _STATS in names:
            found.append(_line_of(folder, clock()))
    return sorted(found, key=lambda line: (line.age, line.directory))


def _line_of(folder: str, now: float) -> RunLine:
    troubles: List[str] = []
    sitting: Dict[str, Any] = {}
    with _noting(troubles):
        sitting = ((read_record(folder) or {}).get("sittings") or [{}])[-1]
    epochs: List[Epoch] = []
    with _noting(troubles):
        epochs.extend(read_epochs(os.path.join(folder, _STATS)))
    last = epochs[-1] if epochs else {}
    state = result_of(sitting) if sitting else "unknown"
    return RunLine(
        folder,
        _WORDS.get(state, state),
        _whole(sitting.get("step"), last.get("global_step")),
        _whole(sitting.get("epoch"), last.get("epoch_num")),
        _best(sitting.get("best"), epochs),
        max(0.0, now - max(_times(folder), default=now)),
        str(sitting.get("message") or "; ".join(troubles)),
    )


class _noting(suppress):
    """Suppresses errors of files, and notes what they say, except of files that do not exist."""

    def __init__(self, troubles: List[str]) -> None:
        super().__init__(OSError, ValueError)
        self._troubles = troubles

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if error is not None and not isinstance(error, FileNotFoundError):
            self._troubles.append(str(error))
        return super().__exit__(kind, error, trace)


def _whole(*values: Any) -> Optional[int]:
    numbers = [each for each in values if isinstance(each, (int, float)) and 0 <= each < 1e15]
    return int(numbers[0]) if numbers else None


def _best(kept: Any, epochs: List[Epoch]) -> str:
    """What a `MinSaver` has kept, or else the best of the scalar that a page shows first."""
    if isinstance(kept, list) and kept:
        return ", ".join(str(each).partition(" (")[2].rstrip(")") or str(each) for each in kept)
    names = {name for epoch in epochs for name in epoch} - {"epoch_num", "global_step"}
    name = min(names, key=scalar_rank, default="")
    values = [(each[name], each["global_step"]) for each in epochs if each.get(name) is not None]
    if not values:
        return ""
    high = any(word in name.lower() for word in _HIGH)
    value, step = (max if high else min)(values, key=lambda each: each[0] or 0.0)
    return f"{name} {value:.5g} at step {step:.0f}"


def _times(folder: str) -> Iterator[float]:
    for name in (FILENAME, _STATS, "log.log", "checkpoint"):
        with suppress(OSError):
            yield os.lstat(os.path.join(folder, name)).st_mtime
