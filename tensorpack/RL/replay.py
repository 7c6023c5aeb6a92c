"""Stores the transitions of players, and samples random batches of them.

Every frame is stored once; a state of several frames is assembled when it is sampled. Takes and
returns arrays; it does not depend on players, networks or exploration.
"""

import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.checkpoints.segments import SegmentRef, Segments
from tensorpack.utils.checks import as_count

from ._replay_batch import Batch, BatchReader, NStepBatch
from ._replay_storage import IMMUTABLE, Layout, Rings, SegmentIndex

# A segment has at most so many bytes, so many entries, and one in 16 of a lane.
_SEGMENT_BYTES, _SEGMENT_ENTRIES, _SEGMENT_PART = 32 << 20, 1 << 16, 16


class ReplayMemory:
    """The last transitions of several environments, one lane (a ring of entries) for each.

    An entry is a frame, the action taken in it, and the result. It can be sampled as soon as the
    next frame is known, and until a frame of its state is overwritten. A truncated episode takes
    one more entry, for its final frame. One thread may append while another samples.

    Each save (`state_dict`) writes only the E entries since the previous save; the last two states
    hold at most capacity + E entries on the disk and a sixteenth of the capacity (with the default
    `segment_entries`).

    A subclass that draws in another way overrides `_draw`, and `_complete` and `_forget` to know
    what there is to draw; and `_draw_state`, `_load_draw_state` and `_draw_bytes` if it has more
    state. All but the last are called with the lock held.

    Args:
      capacity: entries over all lanes; rounded up to a multiple of `lanes`.
      frame_shape: of one frame.
      history: frames that make one state.
      lanes: how many environments write to the memory.
      frame_dtype: of the frames.
      segment_entries: entries that are saved in one segment, at most. Default: a sixteenth of a
        lane, or what makes 32 MB if that is less.
    """

    def __init__(
        self,
        capacity: int,
        frame_shape: Sequence[int],
        history: int = 4,
        lanes: int = 1,
        frame_dtype: type = np.uint8,
        segment_entries: Optional[int] = None,
    ) -> None:
        self._layout = layout = Layout(capacity, frame_shape, history, lanes, frame_dtype)
        self._history = layout.history
        self._rings = Rings(layout.lanes, layout.lane_size)
        self._columns = layout.make()  # all are flat: [lanes * lane_size, values of a frame]
        self._frames, self._action, self._reward, self._terminated, self._depth = (
            self._columns[name] for name in IMMUTABLE
        )
        self._sampleable = self._columns["sampleable"]
        self._num_sampleable = 0
        self._reader = BatchReader(layout, self._columns, self._rings)
        self._after = np.arange(self._history)  # distances to entries whose state one is part of
        self._episode = np.zeros(layout.lanes, np.int64)  # entries of the running one, <= history
        if segment_entries is None:
            part = -(-layout.lane_size // _SEGMENT_PART)
            by_bytes = max(1, _SEGMENT_BYTES // layout.entry_bytes)
            segment_entries = min(part, _SEGMENT_ENTRIES, by_bytes)
        piece = as_count("ReplayMemory", "segment_entries", segment_entries)
        self._segments = SegmentIndex(layout.lane_size, piece)
        self._lock = threading.Lock()
        self._save_ended = threading.Condition(self._lock)

    @classmethod
    def required_bytes(
        cls,
        capacity: int,
        frame_shape: Sequence[int],
        history: int = 4,
        lanes: int = 1,
        frame_dtype: type = np.uint8,
    ) -> int:
        """Returns how many bytes a full memory takes."""
        layout = Layout(capacity, frame_shape, history, lanes, frame_dtype)
        return layout.nbytes + cls._draw_bytes(layout.lanes * layout.lane_size)

    @staticmethod
    def _draw_bytes(entries: int) -> int:
        """Returns how many bytes the draws need beside the entries."""
        return 0

    @property
    def num_sampleable(self) -> int:
        """How many transitions a batch is drawn from."""
        return self._num_sampleable

    def __len__(self) -> int:
        """Returns how many entries there are, including those that cannot be sampled."""
        return int(self._rings.filled().sum())

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
        """Stores one transition of each environment, or of some; copies its arguments.

        Where an episode ended, by `terminated` or `truncated`, the next entry of the lane begins
        another one. Waits while a save reads the entry that would be overwritten.

        Args:
          frames: `[L, *frame_shape]`, kept in the memory's dtype, seen before the action.
          actions: integers `[L]`.
          rewards: `[L]`, kept as float32.
          terminated: bool `[L]`, True where nothing follows, so nothing is to be bootstrapped; a
            lost life may count as that.
          truncated: bool `[L]`, True where the episode was cut off but would have continued.
            Ignored where `terminated`.
          lanes: integers `[L]`, no two alike: the lane of each row. Default: all, in order.
          final_frames: like `frames`, seen after the action; read only for truncated episodes,
            which need it.
        """
        lanes = self._rings.check(lanes)
        count = (len(lanes),)
        frames = self._check_frames("frames", frames, len(lanes))
        actions = _as("actions", actions, count, np.int64)
        rewards = _as("rewards", rewards, count, np.float64)
        if np.isnan(rewards).any():
            raise ValueError(f"The reward of environment {lanes[np.isnan(rewards)][0]} is NaN.")
        terminated = _as("terminated", terminated, count, np.bool_)
        cut = _as("truncated", truncated, count, np.bool_) & ~terminated
        if cut.any():
            if final_frames is None:
                raise ValueError("An episode was truncated: give its last frame as final_frames.")
            final_frames = self._check_frames("final_frames", final_frames, len(lanes))[cut]
        with self._lock:
            while self._segments.blocks(lanes, self._rings.written, cut):
                self._save_ended.wait()
            slots = self._claim(lanes)
            self._frames[slots] = frames
            self._action[slots] = actions
            self._reward[slots] = rewards
            self._terminated[slots] = terminated
            self._link(lanes, slots, terminated | cut)
            if final_frames is not None and cut.any():
                self._frames[self._claim(lanes[cut])] = final_frames

    def sample(
        self, batch_size: int, rng: np.random.RandomState, steps: int = 1
    ) -> Union[Batch, NStepBatch]:
        """Draws transitions, each with the same probability and independent of the others; a
        `PrioritizedReplay` draws by priorities, without weights.

        Args:
          batch_size: how many; one may be drawn more than once.
          rng: for the draws.
          steps: actions between the two states of a transition, at most.

        Returns:
          a `Batch` for one step, else an `NStepBatch`. RuntimeError if there is nothing yet.
        """
        with self._lock:
            return self._sample(batch_size, rng, steps)[1]

    def end_episodes(self, lanes: Optional[np.ndarray] = None) -> None:
        """Cuts the running episodes of some lanes, without final frames.

        For games that were replaced or cut off: the last entry of each lane, whose next frame stays
        unknown, cannot be sampled, and the next one begins an episode. None stands for all lanes.
        """
        lanes = self._rings.check(lanes)
        with self._lock:
            self._episode[lanes] = 0

    def state_dict(self) -> Dict[str, Any]:
        """Returns all that the memory holds, with the entries since the last save as segments.

        Until the segments are done (on_done) `append` waits where it would overwrite them, and
        another call is a RuntimeError.
        """
        with self._lock:
            state = {
                "layout": self._layout.state_dict(),
                "written": self._rings.written.copy(),
                "episode": self._episode.copy(),
                "sampleable": np.packbits(self._sampleable),
                **self._draw_state(),
            }
            saved, metas = self._segments.begin(self._rings.written)
            new = [(meta, self._entries(meta)) for meta in metas]
            return {**state, "entries": Segments(saved, new, self._end_save)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Replaces all entries by those of a saved memory; ValueError if it has other sizes.

        If a segment is damaged (`SegmentDamaged`), the memory is empty. RuntimeError during a save.
        """
        self._layout.check_state(state["layout"])
        entries, written = state["entries"], np.array(state["written"], np.int64)
        with self._lock:
            if self._segments.pending:
                raise RuntimeError("A replay memory cannot be loaded while it is being saved.")
            self._rings.written[:] = self._episode[:] = 0
            self._forget(np.flatnonzero(self._sampleable))
            self._segments.end([])
            for ref in entries.refs:
                arrays = entries.read(ref)
                for name, column in self._entries(ref.meta).items():
                    column[...] = arrays[name]
            self._rings.written[:] = written
            self._episode = np.array(state["episode"], np.int64)
            bits = np.unpackbits(np.asarray(state["sampleable"], np.uint8))
            self._complete(np.flatnonzero(bits[: len(self._sampleable)]))
            self._load_draw_state(state)
            if entries.reusable:
                self._segments.end(entries.refs)

    def _entries(self, meta: Dict[str, Any]) -> Dict[str, np.ndarray]:
        """Returns views of the entries of a segment."""
        size = self._rings.lane_size
        start = meta["lane"] * size + meta["first"] % size
        return {name: self._columns[name][start : start + meta["count"]] for name in IMMUTABLE}

    def _end_save(self, refs: Optional[List[SegmentRef]]) -> None:
        with self._lock:
            self._segments.end(refs)
            self._save_ended.notify_all()

    def _claim(self, lanes: np.ndarray) -> np.ndarray:
        """Returns the next slot of each lane; entries that it overwrites cannot be sampled."""
        rings = self._rings
        slots = rings.claim(lanes)
        if rings.written[lanes].max(initial=0) > rings.lane_size:  # else the slots were empty
            after = rings.neighbours(slots, self._after)
            # The slot itself, and states it is part of.
            lost = after[self._depth[after] >= self._after]
            self._forget(lost[self._sampleable[lost]])
        return slots

    def _link(self, lanes: np.ndarray, slots: np.ndarray, over: np.ndarray) -> None:
        """Links new entries to their episodes, and marks transitions that are now complete."""
        episode = self._episode[lanes]
        self._depth[slots] = np.minimum(episode, self._history - 1)
        self._episode[lanes] = np.where(over, 0, np.minimum(episode + 1, self._history))
        before = self._rings.neighbours(slots[episode > 0], np.array([-1]))[:, 0]
        self._complete(np.concatenate([before, slots[over]]))

    def _complete(self, slots: np.ndarray) -> None:
        """Makes transitions part of what is drawn; they were not."""
        self._sampleable[slots] = True
        self._num_sampleable += len(slots)

    def _forget(self, slots: np.ndarray) -> None:
        """Takes transitions out of what is drawn; they were part of it."""
        self._sampleable[slots] = False
        self._num_sampleable -= len(slots)

    def _draw_state(self) -> Dict[str, Any]:
        """Returns what else of the draws is part of a saved state."""
        return {}

    def _load_draw_state(self, state: Dict[str, Any]) -> None:
        """Restores what `_draw_state` returned; the transitions are complete, as if new."""

    def _sample(
        self, batch_size: int, rng: np.random.RandomState, steps: int
    ) -> Tuple[np.ndarray, Union[Batch, NStepBatch]]:
        """Returns the slots and the batch of a `sample`."""
        batch_size = as_count("sample", "batch_size", batch_size)
        steps = as_count("sample", "steps", steps)
        if self._num_sampleable == 0:
            raise RuntimeError(
                f"The replay memory holds {len(self)} entries and no whole transition: append "
                "more before the first sample."
            )
        slots, reader = self._draw(batch_size, rng), self._reader
        return slots, reader.one_step(slots) if steps == 1 else reader.n_steps(slots, steps)

    def _draw(self, count: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws slots that can be sampled: draws from all, and redraws those that cannot."""
        filled = self._rings.filled()
        ends = np.cumsum(filled)
        if 4 * self._num_sampleable < ends[-1]:  # so few only where there is little in all
            choices = np.flatnonzero(self._sampleable)
            return choices[rng.randint(len(choices), size=count)]
        shifts = self._rings.all_lanes * self._rings.lane_size - (ends - filled)
        drawn: List[np.ndarray] = []
        while count > 0:
            slots = rng.randint(ends[-1], size=count + count // 8)
            if shifts[-1]:  # a lane before the last one is not full
                slots = slots + shifts[np.searchsorted(ends, slots, side="right")]
            drawn.append(slots[self._sampleable[slots]][:count])
            count -= len(drawn[-1])
        return np.concatenate(drawn)

    def _check_frames(self, name: str, frames: np.ndarray, count: int) -> np.ndarray:
        frames = _as(name, frames, (count,) + self._layout.frame_shape, self._frames.dtype)
        return frames.reshape(count, self._frames.shape[1])


def _as(name: str, values: Any, shape: Tuple[int, ...], dtype: Any) -> np.ndarray:
    """Returns values as an array of a dtype; ValueError if it cannot hold them all."""
    values = np.asarray(values)
    array = values.astype(dtype, copy=False)
    exact = np.can_cast(values.dtype, dtype) or np.array_equal(values, array)
    if values.shape != shape or not exact:
        needed = f"{array.dtype} {list(shape)}"
        raise ValueError(f"{name} must be {needed}, got {values.dtype} {list(values.shape)}.")
    return array
