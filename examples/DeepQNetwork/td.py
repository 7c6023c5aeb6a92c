"""One-step targets of Q-learning and the loss, as pure functions of tensors.

Actions are indices in `[0, A)`. The action was taken in state t and led to state t+1. The discount
is per agent step (of four emulator frames), not per frame.
"""

from typing import Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.symbolic_functions import huber_loss

__all__ = ["action_value", "double_qlearning_target", "qlearning_target", "td_loss"]


def action_value(q: tf.Tensor, action: tf.Tensor, name: str = "action_value") -> tf.Tensor:
    """Returns the values of the actions that were taken, `q[i, action[i]]`, float32 `[B]`.

    Args:
      q: float32 `[B, A]`, values of all actions.
      action: integer `[B]`.
      name: of the name scope.

    Raises:
      ValueError: a tensor has another rank, or A is not known.
    """
    _check_ranks(name, q=(q, 2), action=(action, 1))
    num_actions = q.shape.as_list()[1]
    if num_actions is None:
        raise ValueError(f"{name}: the number of actions must be known, got shape {q.shape}.")
    with tf.name_scope(name):
        return tf.reduce_sum(q * tf.one_hot(action, num_actions, dtype=q.dtype), 1)


def qlearning_target(
    q_next: tf.Tensor,
    reward: tf.Tensor,
    is_over: tf.Tensor,
    discount: float,
    name: str = "qlearning_target",
) -> tf.Tensor:
    """Returns the target of Q-learning, float32 `[B]`; no gradient flows through it.

    `y_t = r_t + (1 - over_t) * discount * max_a Q'(s_{t+1}, a)`

    Reference: Mnih et al., "Human-level control through deep reinforcement learning", 2015.

    Args:
      q_next: float32 `[B, A]`, values Q' of the next state, by the target network.
      reward: float32 `[B]`.
      is_over: bool `[B]`, True where the episode ended, so that the target is the reward alone.
      discount: in [0, 1].
      name: of the name scope.

    Raises:
      ValueError: a tensor has another rank, or `discount` is out of range.
    """
    _check_ranks(name, q_next=(q_next, 2))
    with tf.name_scope(name):
        return _target(tf.reduce_max(q_next, 1), reward, is_over, discount, name)


def double_qlearning_target(
    q_next: tf.Tensor,
    q_next_selector: tf.Tensor,
    reward: tf.Tensor,
    is_over: tf.Tensor,
    discount: float,
    name: str = "double_qlearning_target",
) -> tf.Tensor:
    """Returns the target of double Q-learning, float32 `[B]`; no gradient flows through it.

    `y_t = r_t + (1 - over_t) * discount * Q'(s_{t+1}, argmax_a Q(s_{t+1}, a))`

    One network selects the action, the other gives its value.

    Reference: van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning", 2015.

    Args:
      q_next: float32 `[B, A]`, values Q' of the next state, by the target network.
      q_next_selector: float32 `[B, A]`, values Q of the next state, by the online network.
      reward: float32 `[B]`.
      is_over: bool `[B]`, True where the episode ended, so that the target is the reward alone.
      discount: in [0, 1].
      name: of the name scope.

    Raises:
      ValueError: a tensor has another rank, or `discount` is out of range.
    """
    _check_ranks(name, q_next=(q_next, 2), q_next_selector=(q_next_selector, 2))
    with tf.name_scope(name):
        best = tf.argmax(q_next_selector, 1)
        return _target(action_value(q_next, best), reward, is_over, discount, name)


def td_loss(
    q: tf.Tensor, action: tf.Tensor, target: tf.Tensor, name: Optional[str] = "td_loss"
) -> tf.Tensor:
    """Returns the mean Huber loss of `target - q[i, action[i]]`, a float32 scalar.

    The Huber loss is `x^2 / 2` up to |x| = 1 and `|x| - 1/2` beyond, so the gradient of one example
    is at most 1 / B. It flows into `q[i, action[i]]` alone: the target is held fixed.

    Args:
      q: float32 `[B, A]`, values of the states in which the actions were taken.
      action: integer `[B]`.
      target: float32 `[B]`.
      name: of the resulting op.

    Raises:
      ValueError: a tensor has another rank.
    """
    _check_ranks("td_loss", target=(target, 1))
    error = tf.stop_gradient(target) - action_value(q, action)
    return tf.reduce_mean(huber_loss(error), name=name)


def _target(
    next_value: tf.Tensor, reward: tf.Tensor, is_over: tf.Tensor, discount: float, name: str
) -> tf.Tensor:
    _check_ranks(name, reward=(reward, 1), is_over=(is_over, 1))
    if not 0 <= discount <= 1:
        raise ValueError(f"{name}: discount must be in [0, 1], got {discount}.")
    # No multiplication by 0: the value after the end may be anything, NaN included.
    followed = tf.where_v2(is_over, 0.0, next_value)
    return tf.stop_gradient(reward + discount * followed)


def _check_ranks(op: str, **tensors: Sequence) -> None:
    for name, (tensor, rank) in tensors.items():
        if tensor.shape.ndims != rank:
            raise ValueError(f"{op}: {name} must have rank {rank}, got shape {tensor.shape}.")
