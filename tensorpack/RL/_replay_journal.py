"""Which entries of a replay memory are on the disk already, and which a save still reads."""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.segments import SegmentRef

__all__ = ["Journal", "check_complete"]

_NO_LIMIT = np.iinfo(np.int64).max


class Journal:
    """Divides the entries of a memory into those that were saved before and those that are new.

    An entry is known by its lane and by its running number in the lane; number n lies in slot
    n % lane_size, where number n + lane_size will overwrite it. Has no lock: whoever calls holds
    the memory's.

    Args:
      lanes: how many.
      lane_size: entries of a lane.
      piece: entries of a segment, at most. Segments that hold one last entry of the memory are
        kept whole, so that up to `lanes * (piece - 1)` entries are kept for nothing.
    """

    def __init__(self, lanes: int, lane_size: int, piece: int) -> None:
        self._lane_size = lane_size
        self._piece = piece
        self._refs: List[SegmentRef] = []
        self._upto = np.zeros(lanes, np.int64)  # what comes before is saved
        self._pending: Optional[np.ndarray] = None  # what will be, when the save is done
        self._limits = np.full(lanes, _NO_LIMIT)

    @property
    def pending(self) -> bool:
        """True from `begin` to `end`: the segments may be being read."""
        return self._pending is not None

    def blocks(self, lanes: np.ndarray, written: np.ndarray) -> bool:
        """Tells if a save still reads what these lanes overwrite until they have come so far.

        Args:
          lanes: integers `[L]`.
          written: integers `[L]`, entries that each of them will have got.
        """
        return self.pending and bool((written > self._limits[lanes]).any())

    def begin(self, written: np.ndarray) -> Tuple[List[SegmentRef], List[Dict[str, Any]]]:
        """Begins a save; `end` has to follow.

        Args:
          written: int64 `[lanes]`, entries of each lane so far.

        Returns:
          segments that still hold an entry of the memory, and the new ones as "lane", "first" and
          "count", none of which goes around the end of the ring.

        Raises:
          RuntimeError: a save is under way.
        """
        if self.pending:
            raise RuntimeError(
                "The replay memory is still being saved: wait until its segments are done (their "
                "on_done is called) before it is saved again."
            )
        oldest = np.maximum(written - self._lane_size, 0)
        self._refs = [ref for ref in self._refs if _end(ref) > oldest[ref.meta["lane"]]]
        first = np.maximum(self._upto, oldest)
        self._pending = written.copy()
        self._limits = np.where(first < written, first + self._lane_size, _NO_LIMIT)
        lanes = range(len(written))
        new = [meta for i in lanes for meta in self._pieces(i, int(first[i]), int(written[i]))]
        return list(self._refs), new

    def end(self, refs: Optional[Sequence[SegmentRef]]) -> None:
        """Ends a save: keeps in mind what was saved, or nothing if it failed (None)."""
        if refs is not None and self._pending is not None:
            self._refs, self._upto = list(refs), self._pending
        self._pending = None

    def restore(self, refs: Sequence[SegmentRef], written: np.ndarray) -> None:
        """Takes all entries so far for saved, in these segments."""
        self._refs, self._upto = list(refs), written.copy()

    def _pieces(self, lane: int, first: int, end: int) -> Iterator[Dict[str, Any]]:
        while first < end:
            around = (first // self._lane_size + 1) * self._lane_size
            stop = min(first + self._piece, around, end)
            yield {"lane": lane, "first": first, "count": stop - first}
            first = stop


def check_complete(refs: Sequence[SegmentRef], written: np.ndarray, lane_size: int) -> None:
    """Makes sure that segments hold every entry that a memory holds.

    Args:
      refs: the segments, with "lane", "first" and "count".
      written: int64 `[lanes]`, entries of each lane so far.
      lane_size: entries of a lane.

    Raises:
      ValueError: entries are missing, or there are some that were never written.
    """
    known = np.maximum(written - lane_size, 0)  # entries before these are found, or not needed
    for ref in sorted(refs, key=lambda ref: (ref.meta["lane"], ref.meta["first"])):
        lane, first = ref.meta["lane"], ref.meta["first"]
        if not 0 <= lane < len(known) or first > known[lane]:
            break
        known[lane] = max(known[lane], _end(ref))
    if not np.array_equal(known, written):
        raise ValueError(
            f"The saved replay memory has got {written.tolist()} entries in its lanes, but its "
            f"segments hold those up to {known.tolist()} without a gap."
        )


def _end(ref: SegmentRef) -> int:
    """The running number after the segment's last entry."""
    return ref.meta["first"] + ref.meta["count"]
