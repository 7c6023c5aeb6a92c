"""How a replay memory is stored: its columns, its rings, and its segments on the disk."""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.checkpoints.segments import SegmentRef
from tensorpack.utils.checks import as_count

_NO_LIMIT = np.iinfo(np.int64).max
# Columns whose entries never change after they are written; in the order they are saved.
IMMUTABLE = ("frame", "action", "reward", "terminated", "depth")


class Layout:
    """Sizes and types of a replay memory; see `ReplayMemory` for the arguments and errors.

    A lane has `lane_size` entries of `entry_bytes` each. `columns` are the parts of an entry, by
    name: (shape, dtype).
    """

    def __init__(
        self, capacity: int, frame_shape: Sequence[int], history: int, lanes: int, frame_dtype: Any
    ) -> None:
        self.history = as_count("ReplayMemory", "history", history)
        self.lanes = as_count("ReplayMemory", "lanes", lanes)
        # Room for one transition in each lane.
        as_count("ReplayMemory", "capacity", capacity, least=self.lanes * (self.history + 1))
        self.lane_size = -(-int(capacity) // self.lanes)
        self.frame_shape = tuple(int(n) for n in frame_shape)
        self.frame_dtype = np.dtype(frame_dtype)
        values = int(np.prod(self.frame_shape, dtype=np.int64))
        self.columns: Dict[str, Tuple[Tuple[int, ...], np.dtype]] = {
            "frame": ((values,), self.frame_dtype),
            "action": ((), np.dtype(np.int32)),
            "reward": ((), np.dtype(np.float32)),
            "terminated": ((), np.dtype(np.bool_)),
            "depth": ((), np.dtype(np.int32)),  # frames of the episode before it, < history
            "sampleable": ((), np.dtype(np.bool_)),
        }
        self.entry_bytes = sum(
            int(np.prod(shape)) * dtype.itemsize for shape, dtype in self.columns.values()
        )
        self.nbytes = self.lanes * self.lane_size * self.entry_bytes

    def make(self) -> Dict[str, np.ndarray]:
        """Returns the columns, `[lanes * lane_size, ...]` each, all zeros but for the frames."""
        # Either takes memory only where something is written. For what is not zeroed, numpy lets
        # the system use large pages, which is several times as fast.
        rows = (self.lanes * self.lane_size,)
        return {
            name: (np.empty if name == "frame" else np.zeros)(rows + shape, dtype)
            for name, (shape, dtype) in self.columns.items()
        }

    def state_dict(self) -> Dict[str, Any]:
        """Returns what must be equal in a saved memory and the one that loads it."""
        return {
            "capacity": self.lanes * self.lane_size,
            "frame_shape": list(self.frame_shape),
            "history": self.history,
            "lanes": self.lanes,
            "frame_dtype": self.frame_dtype.str,
        }

    def check_state(self, state: Dict[str, Any]) -> None:
        """Raises ValueError unless a memory of this layout can load entries of the saved one."""
        needed = self.state_dict()
        saved = {**state, "frame_shape": list(state["frame_shape"])}
        names = [name for name in needed if saved[name] != needed[name]]
        if names:
            raise ValueError(
                f"The saved replay memory has {', '.join(f'{n}={saved[n]}' for n in names)}, this "
                f"one has {', '.join(f'{n}={needed[n]}' for n in names)}. Use the same sizes."
            )


class Rings:
    """The rings of all lanes: entry number n of a lane is in place n % lane_size of its ring.

    Slots are counted over all lanes: lane k has those from k * lane_size on. An entry also has an
    id, by which it differs from the one that replaces it. Callers hold the lock of the memory.
    `written`, int64 `[lanes]`, are the entries so far, overwritten ones included.
    """

    def __init__(self, lanes: int, lane_size: int) -> None:
        self.lanes = lanes
        self.lane_size = lane_size
        self.all_lanes = np.arange(lanes)
        self.written = np.zeros(lanes, np.int64)

    def filled(self) -> np.ndarray:
        """Entries that each lane keeps, `[lanes]`; they are the first ones of its ring."""
        return np.minimum(self.written, self.lane_size)

    def neighbours(self, slots: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Slots `[B, K]` at distances `[K]` or `[B, K]` from slots `[B]`, in the rings of these."""
        place = slots % self.lane_size
        return (slots - place)[:, None] + (place[:, None] + offsets) % self.lane_size

    def claim(self, lanes: np.ndarray) -> np.ndarray:
        """Returns the slot of the next entry of each of these lanes, and counts it as written."""
        slots = lanes * self.lane_size + self.written[lanes] % self.lane_size
        self.written[lanes] += 1
        return slots

    def ids(self, slots: np.ndarray) -> np.ndarray:
        """Returns the ids of the entries in these slots, int64."""
        lane, place = slots // self.lane_size, slots % self.lane_size
        newest = self.written[lane] - 1
        return (newest - (newest - place) % self.lane_size) * self.lanes + lane

    def find(self, ids: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Returns the slots of entries by id, and bools: which of them still hold their entry."""
        lane, number = ids % self.lanes, ids // self.lanes
        written = self.written[lane]
        if not ((number >= 0) & (number < written)).all():
            raise ValueError(f"The memory never had all of the entries {ids}.")
        slots = lane * self.lane_size + number % self.lane_size
        return slots, number >= written - self.lane_size

    def check(self, lanes: Optional[np.ndarray]) -> np.ndarray:
        """Returns numbers of lanes, no two alike, as int64; None stands for all."""
        if lanes is None:
            return self.all_lanes
        ids = np.asarray(lanes)
        fits = ids.ndim == 1 and ids.dtype.kind in "iu" and len(set(ids.tolist())) == len(ids)
        if not fits or (len(ids) and not 0 <= ids.min() <= ids.max() < self.lanes):
            raise ValueError(f"lanes are different numbers below {self.lanes}, got {lanes}.")
        return ids.astype(np.int64)


class SegmentIndex:
    """Records which entries of a memory are on the disk, and which a save still reads.

    A segment has at most `piece` entries. It stays as long as the memory has one of them, so up to
    `lanes * (piece - 1)` further entries stay on the disk. Callers hold the lock of the memory.
    """

    def __init__(self, lane_size: int, piece: int) -> None:
        self._lane_size = lane_size
        self._piece = piece
        self._refs: List[SegmentRef] = []
        self._limits: Optional[np.ndarray] = None  # of `written` during a save

    @property
    def pending(self) -> bool:
        """True from `begin` to `end`, while the save reads the segments."""
        return self._limits is not None

    def blocks(self, lanes: np.ndarray, written: np.ndarray, two: np.ndarray) -> bool:
        """Returns whether the pending save reads entries that are overwritten when these lanes get
        an entry more than the `written`, where `two`, bool `[L]`, two.
        """
        limits = self._limits
        return limits is not None and bool((written[lanes] + 1 + two > limits[lanes]).any())

    def begin(self, written: np.ndarray) -> Tuple[List[SegmentRef], List[Dict[str, Any]]]:
        """Begins a save of what is `written`, int64 `[lanes]`; `end` has to follow.

        Returns the segments that still hold an entry of the memory, and the new ones as "lane",
        "first" and "count", none of which crosses the end of the ring.
        """
        if self.pending:
            raise RuntimeError(
                "The replay memory is still being saved: wait until the on_done of its segments is "
                "called."
            )
        first = np.maximum(written - self._lane_size, 0)  # the oldest entry; then the first new one
        self._refs = [ref for ref in self._refs if _end(ref) > first[ref.meta["lane"]]]
        for ref in self._refs:
            first[ref.meta["lane"]] = max(first[ref.meta["lane"]], _end(ref))
        self._limits = np.where(first < written, first + self._lane_size, _NO_LIMIT)
        lanes = range(len(written))
        new = [meta for i in lanes for meta in self._pieces(i, int(first[i]), int(written[i]))]
        return list(self._refs), new

    def end(self, refs: Optional[Sequence[SegmentRef]]) -> None:
        """Ends a save: records its segments, which hold all entries so far; None if it failed."""
        if refs is not None:
            self._refs = list(refs)
        self._limits = None

    def _pieces(self, lane: int, first: int, end: int) -> Iterator[Dict[str, Any]]:
        while first < end:
            around = (first // self._lane_size + 1) * self._lane_size
            stop = min(first + self._piece, around, end)
            yield {"lane": lane, "first": first, "count": stop - first}
            first = stop


def _end(ref: SegmentRef) -> int:
    return ref.meta["first"] + ref.meta["count"]
