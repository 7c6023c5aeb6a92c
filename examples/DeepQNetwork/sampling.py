"""How batches are drawn from the replay memory: uniformly, or by priorities that come back."""

from functools import partial
from typing import Any, List, Sequence

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import QueueInput
from tensorpack.RL import Player, PrioritizedReplay, ReplayMemory
from tensorpack.utils.checks import check_counts

__all__ = ["Sampler", "make_input"]

_BATCHES_AHEAD = 4  # in the queue, if they are drawn by priorities


class Sampler:
    """Makes the memory for a player, and datapoints from it; gives the priorities back to it.

    Args:
      memory_size: transitions in the memory.
      player: the environments; only its attributes are read.
      history: frames that make one state.
      n_step: rewards of a transition, at most.
      priority: exponent of prioritised replay, up to 1; 0 samples uniformly.

    Attributes:
      memory: the memory.
      prioritized: whether transitions are drawn by priorities.
    """

    def __init__(
        self, memory_size: int, player: Player, history: int, n_step: int, priority: float
    ) -> None:
        check_counts("ExpReplay", n_step=n_step)
        self.prioritized = priority != 0
        make: Any = partial(PrioritizedReplay, alpha=priority) if priority else ReplayMemory
        self.memory: Any = make(
            memory_size,
            player.frame_shape,
            history=history,
            lanes=player.num_envs,
            frame_dtype=np.dtype(player.frame_dtype).type,
        )
        self._n_step = n_step

    def sample(self, batch_size: int, rng: np.random.RandomState) -> List[np.ndarray]:
        """Returns a batch as a datapoint, see `ExpReplay`."""
        if not self.prioritized:
            return list(self.memory.sample(batch_size, rng, self._n_step))
        drawn = self.memory.sample_weighted(batch_size, rng, self._n_step)
        return [*drawn.batch, drawn.weight, drawn.slot]

    def learned(self, towers: Sequence[Any]) -> List[List[tf.Tensor]]:
        """Returns the slots and the new priorities of each tower of the training."""
        return [tower.get_tensors(["slot", "priority"]) for tower in towers]

    def take(self, learned: Sequence[Sequence[np.ndarray]]) -> None:
        """Takes what `learned` was in a step."""
        for slots, priorities in learned:
            self.memory.update_priorities(slots, priorities)


def make_input(expreplay: Any) -> QueueInput:
    """Returns what feeds a model from an `ExpReplay`: the `data` of a `TrainConfig`.

    With priorities the queue is short: a batch that waits was drawn by the priorities from before
    the steps ahead of it.
    """
    ahead = _BATCHES_AHEAD * expreplay.parts if expreplay.prioritized else None
    return QueueInput(expreplay, capacity=ahead)
