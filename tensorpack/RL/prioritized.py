"""A replay memory that draws transitions in proportion to how much the network erred on them."""

from typing import Any, Dict, NamedTuple, Union

import numpy as np

from tensorpack.utils.checks import as_number

from .replay import Batch, NStepBatch, ReplayMemory
from .sum_tree import SumTree

_LEAST = 1e-6  # added to priorities, so that every transition can be drawn again


class WeightedBatch(NamedTuple):
    """Transitions that were drawn by their priorities.

    Attributes:
      batch: the transitions.
      weight: float32 `[B]`, by which to multiply their losses; the largest one is 1.
      slot: int64 `[B]`, what to give to `update_priorities`.
    """

    batch: Union[Batch, NStepBatch]
    weight: np.ndarray
    slot: np.ndarray


class PrioritizedReplay(ReplayMemory):
    """A replay memory with a priority for each transition (Schaul et al., 2016, section 3.3).

    Transition i with the priority p_i, the size of its TD error, is drawn with the probability and
    its loss is to be multiplied by the weight::

        P(i) = p_i^alpha / sum_k p_k^alpha
        w_i = (N P(i))^-beta / max_j w_j        (N transitions; j over the batch)

    A new transition has the largest priority that there ever was, so that it is soon drawn. A draw
    is stratified, see `SumTree.draw`, so the transitions of a batch are in the order of the memory.

    The priorities take about 9 bytes for each entry, in memory, and 4 in each saved state.

    Args:
      *sizes, **options: see `ReplayMemory`.
      alpha: exponent of the priorities, above 0, at most 1; the larger, the greedier.
      beta: exponent of the weights, from 0 to 1: with 1 they correct the bias of the draws fully.
    """

    def __init__(self, *sizes: Any, alpha: float = 0.5, beta: float = 0.5, **options: Any) -> None:
        super().__init__(*sizes, **options)
        self._alpha = np.float32(as_number("PrioritizedReplay", "alpha", alpha, 0.0, 1.0))
        self._beta = as_number("PrioritizedReplay", "beta", beta, least=0.0, most=1.0)
        # p^alpha of what can be sampled, else 0. All are numbers of float32, and saved as such.
        self._tree = SumTree(len(self._sampleable))
        self._largest = 1.0  # of all p^alpha so far

    def sample_weighted(
        self, batch_size: int, rng: np.random.RandomState, steps: int = 1
    ) -> WeightedBatch:
        """Does what `sample` does, and returns the weights and the slots as well."""
        with self._lock:
            slots, batch = self._sample(batch_size, rng, steps)
            drawn, ids = self._tree[slots], self._rings.ids(slots)
        # N and the sum of all priorities are the same for all of a batch.
        weight = (drawn.min() / drawn) ** self._beta
        return WeightedBatch(batch, weight.astype(np.float32), ids)

    def update_priorities(self, slots: np.ndarray, priorities: np.ndarray) -> None:
        """Sets the priorities of transitions; those that were overwritten meanwhile are skipped.

        `slots`, int64 `[B]`, are from `sample_weighted`; of equal ones the last counts. Priorities,
        `[B]`, such as absolute TD errors, are finite and not negative.
        """
        priorities = np.asarray(priorities, np.float32)
        if not (np.isfinite(priorities).all() and (priorities >= 0).all()):
            raise ValueError(
                f"Priorities must be finite and not negative, got {priorities}: the loss may have "
                "diverged; try a smaller learning rate."
            )
        powers = (priorities + _LEAST) ** self._alpha
        with self._lock:
            slots, in_memory = self._rings.find(np.asarray(slots, np.int64))
            in_memory &= self._sampleable[slots]
            self._tree.set(slots[in_memory], powers[in_memory])
            self._largest = max(self._largest, float(powers.max(initial=0)))

    @staticmethod
    def _draw_bytes(entries: int) -> int:
        return SumTree.required_bytes(entries)

    def _draw(self, count: int, rng: np.random.RandomState) -> np.ndarray:
        return self._tree.draw(count, rng)

    def _complete(self, slots: np.ndarray) -> None:
        super()._complete(slots)
        self._tree.set(slots, self._largest)

    def _forget(self, slots: np.ndarray) -> None:
        super()._forget(slots)
        self._tree.set(slots, 0.0)

    def _draw_state(self) -> Dict[str, Any]:
        by_lane = self._tree[:].reshape(self._rings.lanes, -1)
        filled = int(self._rings.filled().max())
        return {"priorities": by_lane[:, :filled].astype(np.float32), "largest": self._largest}

    def _load_draw_state(self, state: Dict[str, Any]) -> None:
        if "priorities" not in state:  # it is of a memory without them: all are as if new
            return
        by_lane = np.zeros((self._rings.lanes, self._rings.lane_size))
        priorities = np.asarray(state["priorities"])
        by_lane[:, : priorities.shape[1]] = priorities
        self._tree.replace(by_lane.reshape(-1))
        self._largest = float(state["largest"])
