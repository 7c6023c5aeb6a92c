"""What the entries of a replay memory consist of, how many there are, and what that takes."""

from typing import Any, Dict, Sequence, Tuple

import numpy as np

__all__ = ["IMMUTABLE", "Layout"]

# Columns of which an entry is never changed once it is there; in the order they are saved.
IMMUTABLE = ("frame", "action", "reward", "terminated", "depth")


class Layout:
    """Sizes and types of a replay memory; see `ReplayMemory` for the arguments.

    Attributes:
      lane_size: entries of a lane.
      columns: what an entry consists of: name -> (shape, dtype).
      entry_bytes: size of an entry.
      nbytes: size of all entries.

    Raises:
      ValueError: a number is not positive, or a lane is too short to hold one transition.
    """

    def __init__(
        self, capacity: int, frame_shape: Sequence[int], history: int, lanes: int, frame_dtype: Any
    ) -> None:
        self.lane_size = _lane_size(capacity, history, lanes)
        self.frame_shape = tuple(int(n) for n in frame_shape)
        self.frame_dtype = np.dtype(frame_dtype)
        self.history = history
        self.lanes = lanes
        values = int(np.prod(self.frame_shape, dtype=np.int64))
        self.columns: Dict[str, Tuple[Tuple[int, ...], np.dtype]] = {
            "frame": ((values,), self.frame_dtype),
            "action": ((), np.dtype(np.int32)),
            "reward": ((), np.dtype(np.float32)),
            "terminated": ((), np.dtype(np.bool_)),
            "depth": ((), np.dtype(np.int32)),
            "sampleable": ((), np.dtype(np.bool_)),
        }
        self.entry_bytes = sum(
            int(np.prod(shape)) * dtype.itemsize for shape, dtype in self.columns.values()
        )
        self.nbytes = lanes * self.lane_size * self.entry_bytes

    def make(self) -> Dict[str, np.ndarray]:
        """Returns the columns, `[lanes * lane_size, ...]` each, all zeros but for the frames."""
        # The system backs either with memory only where something is written; what is not zeroed,
        # numpy lets it back by large pages, which takes a fraction of the time.
        rows = (self.lanes * self.lane_size,)
        return {
            name: (np.empty if name == "frame" else np.zeros)(rows + shape, dtype)
            for name, (shape, dtype) in self.columns.items()
        }

    def state_dict(self) -> Dict[str, Any]:
        """Returns what has to be alike in a memory that is saved and the one it is loaded into."""
        return {
            "capacity": self.lanes * self.lane_size,
            "frame_shape": list(self.frame_shape),
            "history": self.history,
            "lanes": self.lanes,
            "frame_dtype": self.frame_dtype.str,
        }

    def check_state(self, state: Dict[str, Any]) -> None:
        """Makes sure that a memory of this layout can take entries of the saved one.

        Raises:
          ValueError: a size or type differs.
        """
        ours = self.state_dict()
        theirs = {name: state.get(name) for name in ours}
        theirs["frame_shape"] = list(theirs["frame_shape"] or ())
        if theirs == ours:
            return
        differing = [name for name in ours if ours[name] != theirs[name]]
        saved = ", ".join(f"{name}={theirs[name]}" for name in differing)
        needed = ", ".join(f"{name}={ours[name]}" for name in differing)
        raise ValueError(
            f"The saved replay memory has {saved}, this one has {needed}. Make this one as the "
            "saved one is, or leave it empty and fill it anew."
        )

    def check_entries(self, arrays: Dict[str, np.ndarray], count: int) -> None:
        """Makes sure that arrays are what so many entries consist of.

        Raises:
          ValueError: an array is missing, or of another shape or dtype.
        """
        for name in IMMUTABLE:
            shape, dtype = self.columns[name]
            array = arrays.get(name)
            if array is None or array.shape != (count,) + shape or array.dtype != dtype:
                got = "nothing" if array is None else f"{array.dtype} {list(array.shape)}"
                raise ValueError(
                    f"Column {name!r} of {count} saved entries must be {dtype} "
                    f"{[count, *shape]}, got {got}."
                )


def _lane_size(capacity: int, history: int, lanes: int) -> int:
    if history < 1 or lanes < 1:
        raise ValueError(f"history and lanes must be at least 1, got {history} and {lanes}.")
    least = lanes * (history + 1)
    if capacity < least:
        raise ValueError(
            f"A replay memory with history={history} and lanes={lanes} needs a capacity of at "
            f"least {least} to hold one transition in each lane, got {capacity}."
        )
    return -(-capacity // lanes)
