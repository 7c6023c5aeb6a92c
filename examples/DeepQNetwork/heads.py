"""What a network tells of each action, and how that is learned: the contract, and plain values."""

from typing import NamedTuple, Optional, Tuple, Union

from algorithm import Algorithm
from draws import Draws
from networks import Layer, action_numbers
from td import action_value, td_losses, td_target

from tensorpack.compat import tfv1 as tf

__all__ = ["Head", "Outputs", "Values"]


class Outputs(NamedTuple):
    """What a network gives for a batch of states."""

    numbers: tf.Tensor  # float32 [B, A], or [B, A, N]
    fractions: Optional[tf.Tensor] = None  # of quantiles: in [0, 1], float32 [B, N] or [1, N]


class Head:
    """The end of a network, with its targets and its loss. A training step is::

        online = head.outputs(features of the states)
        following = head.outputs(features of the next states, by the target network)
        action = argmax_a head.values(following.numbers)
        target = head.target(following.numbers of that action, reward, ...)
        losses, priorities = head.losses(online, action that was taken, target)

    Args:
      algorithm: what is learned.
      num_actions: how many actions there are.
    """

    atoms: Optional[int] = None  # numbers of each action where there are several

    def __init__(self, algorithm: Algorithm, num_actions: int) -> None:
        self._algorithm = algorithm
        self._num_actions = num_actions
        if self.atoms is not None and algorithm.atoms:
            self.atoms = algorithm.atoms

    def outputs(self, x: tf.Tensor, layer: Layer, draws: Optional[Draws]) -> Outputs:
        """Builds the last layers on features, float32 `[B, D]`.

        Args:
          x: the features.
          layer: makes fully connected layers.
          draws: gives random numbers to a head that learns from samples; None for its mean.
        """
        del draws
        return Outputs(self._action_numbers(x, layer, self.atoms))

    def values(self, numbers: tf.Tensor) -> tf.Tensor:
        """Returns the values of all actions, float32 `[B, A]`."""
        raise NotImplementedError

    def target(
        self,
        following: tf.Tensor,
        reward: tf.Tensor,
        is_over: tf.Tensor,
        discount: Union[float, tf.Tensor],
    ) -> tf.Tensor:
        """Returns what is to be learned of the action that was taken; no gradient flows back.

        Args:
          following: numbers of one action of the next states, `[B]` or `[B, N]`.
          reward: see `td.td_target`, as the others.
          is_over: the same.
          discount: the same.
        """
        return td_target(following, reward, is_over, discount)

    def losses(
        self, outputs: Outputs, action: tf.Tensor, target: tf.Tensor
    ) -> Tuple[tf.Tensor, tf.Tensor]:
        """Returns the loss of each example, and what it counts in prioritised replay; `[B]`."""
        raise NotImplementedError

    def _action_numbers(self, x: tf.Tensor, layer: Layer, atoms: Optional[int]) -> tf.Tensor:
        return action_numbers(x, self._num_actions, atoms, self._algorithm.dueling, layer)


class Values(Head):
    """Q-learning: one number for each action, its value."""

    def values(self, numbers: tf.Tensor) -> tf.Tensor:
        return numbers

    def losses(
        self, outputs: Outputs, action: tf.Tensor, target: tf.Tensor
    ) -> Tuple[tf.Tensor, tf.Tensor]:
        error = tf.stop_gradient(target) - action_value(outputs.numbers, action)
        return td_losses(error, self._algorithm.loss), tf.abs(error)
