"""Where the entries of a replay memory are: in a ring of slots for each lane."""

from typing import Optional, Tuple

import numpy as np


class Rings:
    """The rings of all lanes: entry number n of a lane is in place n % lane_size of its ring.

    Slots are counted over all lanes: lane k has those from k * lane_size on. An entry also has a
    name that no other one ever has, so that an entry can be told from the one that replaced it.
    Has no lock: callers hold that of the memory.

    Args:
      lanes: how many.
      lane_size: slots of each.

    Attributes:
      lanes, lane_size: the same.
      all_lanes: their numbers.
      written: int64 `[lanes]`, entries so far, overwritten ones included.
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
        """Slots at these distances in the ring of the same lane, `[len(slots), K]`.

        Args:
          slots: integers `[B]`.
          offsets: integers `[K]`, or `[B, K]` where they differ.
        """
        place = slots % self.lane_size
        return (slots - place)[:, None] + (place[:, None] + offsets) % self.lane_size

    def claim(self, lanes: np.ndarray) -> np.ndarray:
        """Returns the slot of the next entry of each of these lanes, and counts it as written."""
        slots = lanes * self.lane_size + self.written[lanes] % self.lane_size
        self.written[lanes] += 1
        return slots

    def names(self, slots: np.ndarray) -> np.ndarray:
        """Returns the names of the entries that are in these slots now, int64."""
        lane, place = slots // self.lane_size, slots % self.lane_size
        newest = self.written[lane] - 1
        return (newest - (newest - place) % self.lane_size) * self.lanes + lane

    def find(self, names: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Returns the slots of named entries, and a bool each: whether it is still there."""
        lane, number = names % self.lanes, names // self.lanes
        written = self.written[lane]
        if not ((number >= 0) & (number < written)).all():
            raise ValueError(f"The memory never had all of the entries {names}.")
        slots = lane * self.lane_size + number % self.lane_size
        return slots, number >= written - self.lane_size

    def check(self, lanes: Optional[np.ndarray]) -> np.ndarray:
        """Returns numbers of lanes, no two alike, as int64; None stands for all."""
        if lanes is None:
            return self.all_lanes
        lanes = np.asarray(lanes)
        if lanes.ndim != 1:
            raise ValueError(f"lanes must have the shape [L], got {list(lanes.shape)}.")
        if not issubclass(lanes.dtype.type, np.integer):
            raise TypeError(f"lanes must be integers, got {lanes.dtype}.")
        rows = lanes.astype(np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.lanes:
            raise ValueError(f"lanes must be from 0 to {self.lanes - 1}, got {lanes}.")
        if (np.bincount(rows, minlength=1) > 1).any():
            raise ValueError(f"A lane takes one transition at a time, got lanes={lanes}.")
        return rows
