"""What a replay memory returns: batches of transitions of one or of n steps."""

from typing import Dict, NamedTuple

import numpy as np

from tensorpack.utils.packing.packed_arrays import aligned_empty

from ._replay_storage import Layout, Rings


class Batch(NamedTuple):
    """Sampled transitions; the arrays are new and belong to the caller.

    Attributes:
      frames: `[B, history + 1, *frame_shape]`, oldest first, of the dtype of the frames. The first
        `history` are the state that `action` was taken in, the last `history` the one after it.
        Frames from before the episode, and after its end where `terminated`, are zeros.
      action: int64 `[B]`.
      reward: float32 `[B]`.
      terminated: bool `[B]`, True where nothing follows.
    """

    frames: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray


class NStepBatch(NamedTuple):
    """Sampled transitions of up to n steps; the arrays are new and belong to the caller.

    The value of `action` is bootstrapped from the state m = `steps` actions later (Sutton, 1988)::

        reward[0] + d reward[1] + ... + d^(m-1) reward[m-1] + d^m value(next state)

    with the discount d, and without the last term where `terminated`. There are less than n steps
    before the end of an episode, and before the newest frame of an environment.

    Attributes:
      frames: `[B, 2 * history, *frame_shape]`: those of the state that `action` was taken in, then
        those of the state `steps` actions later; else as in a `Batch`.
      action: int64 `[B]`, the first one.
      reward: float32 `[B, n]`, of the first `steps` actions, then zeros.
      terminated: bool `[B]`, True where nothing follows the last of these rewards.
      steps: int32 `[B]`, from 1 to n.
    """

    frames: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    steps: np.ndarray


class BatchReader:
    """Puts transitions together from the columns of a memory, see `Layout`.

    Has no lock: callers hold that of the memory.
    """

    def __init__(self, layout: Layout, columns: Dict[str, np.ndarray], rings: Rings) -> None:
        self._columns = columns
        self._rings = rings
        self._frame_shape = layout.frame_shape
        self._history = layout.history
        self._after = np.arange(layout.history)
        self._state = np.arange(1 - layout.history, 1)  # distances to the frames of a state
        self._around = np.arange(1 - layout.history, 2)  # and of the next one as well

    def one_step(self, slots: np.ndarray) -> Batch:
        """Returns the transitions that begin in these slots, which can be sampled."""
        terminated = self._columns["terminated"][slots]
        blank = np.empty((len(slots), self._history + 1), bool)
        blank[:, :-1] = self._before_episode(self._columns["depth"][slots])
        blank[:, -1] = terminated
        frames = self._frames(self._rings.neighbours(slots, self._around), blank)
        return Batch(frames, self._actions(slots), self._columns["reward"][slots], terminated)

    def n_steps(self, slots: np.ndarray, n: int) -> NStepBatch:
        """Returns the transitions of up to n steps that begin in these slots."""
        ahead = self._rings.neighbours(slots, np.arange(n))
        over = self._columns["terminated"][ahead]
        # An entry whose result is known is followed by its next frame, unless that is the end. The
        # next frame has a known result too, unless it is a final frame, or the newest one.
        taken = self._columns["sampleable"][ahead]
        taken[:, 1:] &= ~over[:, :-1]
        taken = np.logical_and.accumulate(taken, axis=1)
        reward = np.where(taken, self._columns["reward"][ahead], np.float32(0))
        terminated, steps = (over & taken).any(axis=1), np.count_nonzero(taken, axis=1)
        depth = self._columns["depth"][slots]
        begins = np.zeros_like(steps)
        states = [(depth + ahead, ahead[:, None] + self._state) for ahead in (begins, steps)]
        blank = np.concatenate([self._before_episode(before) for before, _ in states], axis=1)
        blank[:, -1] = terminated
        places = self._rings.neighbours(slots, np.concatenate([at for _, at in states], axis=1))
        columns = self._frames(places, blank), self._actions(slots), reward, terminated
        return NStepBatch(*columns, steps.astype(np.int32))

    def _before_episode(self, depth: np.ndarray) -> np.ndarray:
        """Which frames of states with `depth` frames before the newest are not of its episode."""
        return self._after < (self._history - 1 - depth)[:, None]

    def _frames(self, slots: np.ndarray, blank: np.ndarray) -> np.ndarray:
        """Returns the frames of these slots, with zeros for those that are blank."""
        stored = self._columns["frame"]
        # A new array each time: TensorFlow may still read one that it was fed.
        frames = aligned_empty((slots.size, stored.shape[1]), stored.dtype)
        # "clip" is for speed: other modes check all indices first and buffer `out`.
        np.take(stored, slots.reshape(-1), axis=0, out=frames, mode="clip")
        frames[blank.reshape(-1)] = 0
        return frames.reshape(slots.shape + self._frame_shape)

    def _actions(self, slots: np.ndarray) -> np.ndarray:
        return self._columns["action"][slots].astype(np.int64)
