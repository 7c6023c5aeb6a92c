"""Transitions on their way from an actor to the replay memory of a learner: in chunks.

A chunk is a dictionary of arrays, with a row for each transition: `frames` (seen before the
action), `actions`, `rewards`, `over`, `truncated`, `begins` (an episode), and `lanes`, the game it
is of. `ticks` says how many rows each tick has, in order; `final_frames` has a frame for each row
that was cut off.
"""

from typing import Any, Dict, List, Optional, Set, Tuple

import numpy as np

from ..replay import ReplayMemory

_COLUMNS = ("frames", "actions", "rewards", "over", "truncated", "begins", "lanes")


class Recorder:
    """Takes what a `Simulator` stores, as a `ReplayMemory` does, and hands it over in chunks."""

    def __init__(self) -> None:
        self._ended: Set[int] = set()  # lanes whose next rows begin episodes
        self._ticks: List[Tuple[np.ndarray, ...]] = []  # the columns of each
        self._final_frames: List[np.ndarray] = []

    def __len__(self) -> int:
        return sum(len(actions) for _, actions, *_ in self._ticks)

    def append(
        self,
        frames: np.ndarray,
        actions: np.ndarray,
        rewards: np.ndarray,
        terminated: np.ndarray,
        truncated: np.ndarray,
        lanes: Optional[np.ndarray] = None,
        final_frames: Optional[np.ndarray] = None,
    ) -> None:
        """Takes one tick; see `ReplayMemory.append`. The arrays must stay as they are."""
        cut = truncated & ~terminated
        if cut.any() and final_frames is not None:
            self._final_frames.append(final_frames[cut])
        lanes = np.arange(len(actions)) if lanes is None else lanes
        begins = np.array([lane in self._ended for lane in lanes.tolist()], np.bool_)
        self._ended.difference_update(lanes.tolist())
        self._ticks.append((frames, actions, rewards, terminated, cut, begins, lanes))

    def end_episodes(self, lanes: Optional[np.ndarray] = None) -> None:
        """Ends those of some lanes; of all the learner ends them, where an actor begins."""
        self._ended.update([] if lanes is None else lanes.tolist())

    def take(self) -> Dict[str, np.ndarray]:
        """Returns what came since the last time, at least one tick, as a chunk."""
        chunk = {name: np.concatenate(rows) for name, rows in zip(_COLUMNS, zip(*self._ticks))}
        chunk["ticks"] = np.array([len(actions) for _, actions, *_ in self._ticks])
        chunk["final_frames"] = np.concatenate(self._final_frames or [chunk["frames"][:0]])
        self._ticks, self._final_frames = [], []
        return chunk


def store_chunk(memory: ReplayMemory, chunk: Dict[str, Any], lanes: np.ndarray) -> int:
    """Appends a chunk to a memory, tick by tick; returns how many transitions these are.

    `lanes`, integers `[N]`, are those of the actor's games. ValueError or TypeError if it is not a
    chunk of these games.
    """
    _check(chunk, len(lanes))
    columns = [chunk[name] for name in _COLUMNS[:-1]]
    rows_of = lanes[chunk["lanes"]]
    cuts = np.cumsum(chunk["truncated"])  # final frames up to and with each row
    end = 0
    for count in chunk["ticks"].tolist():
        rows, end = slice(end, end + count), end + count
        frames, actions, rewards, over, truncated, begins = (column[rows] for column in columns)
        final_frames = None
        if truncated.any():
            final_frames = np.zeros_like(frames)
            final_frames[truncated] = chunk["final_frames"][cuts[rows][truncated] - 1]
        where = rows_of[rows]
        memory.end_episodes(where[begins])
        memory.append(frames, actions, rewards, over, truncated, where, final_frames)
    return end


def _check(chunk: Dict[str, Any], num_games: int) -> None:
    """Checks what `ReplayMemory.append` does not: the games and the numbers of rows."""
    get: Any = chunk.get
    lanes, ticks = get("lanes"), get("ticks")
    count = len(chunk.get("actions", ()))
    if not (
        _is_array(lanes, "iu", count)
        and all(_is_array(get(name), "b", count) for name in ("truncated", "begins"))
        and _is_array(ticks, "iu")
        and (ticks >= 0).all()
        and ticks.sum() == count
        and np.logical_and(lanes >= 0, lanes < num_games).all()
        and len(chunk.get("final_frames", ())) == np.count_nonzero(get("truncated"))
    ):
        raise ValueError(f"This is not a chunk of transitions of {num_games} games.")


def _is_array(value: Any, kinds: str, count: Optional[int] = None) -> bool:
    is_row = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in kinds
    return is_row and (count is None or len(value) == count)
