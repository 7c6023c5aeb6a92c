"""Returns, targets and errors of Q-learning, as pure functions of tensors.

Actions are indices in `[0, A)`. The action was taken in state t and led to state t+1, or after
further actions to state t+n. The discount is per agent step (of four emulator frames), not per
frame.
"""

from typing import Any, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.symbolic_functions import huber_loss

__all__ = ["action_value", "n_step_return", "td_losses", "td_target"]


def action_value(q: tf.Tensor, action: tf.Tensor, name: str = "action_value") -> tf.Tensor:
    """Returns the numbers of one action for each example, `q[i, action[i]]`.

    Args:
      q: float32 `[B, A]`, values of all actions, or `[B, A, N]`, their distributions.
      action: integer `[B]`.
      name: of the name scope.

    Returns:
      float32 `[B]`, or `[B, N]`.

    Raises:
      ValueError: a tensor has another rank, or A is not known.
    """
    if q.shape.ndims not in (2, 3):
        raise ValueError(f"{name}: q must have rank 2 or 3, got shape {q.shape}.")
    _check_ranks(name, action=(action, 1))
    num_actions = q.shape.as_list()[1]
    if num_actions is None:
        raise ValueError(f"{name}: the number of actions must be known, got shape {q.shape}.")
    with tf.name_scope(name):
        chosen = tf.one_hot(action, num_actions, dtype=q.dtype)
        return tf.reduce_sum(q * _like(chosen, q), 1)


def n_step_return(
    rewards: tf.Tensor, discount: float, limit: float = 1.0, name: str = "n_step_return"
) -> tf.Tensor:
    """Returns the discounted sum of clipped rewards, float32 `[B]`.

    `R_t = sum_{k<n} discount^k clip(r_{t+k}, -limit, limit)`

    Reference: Sutton, "Learning to predict by the methods of temporal differences", 1988.

    Args:
      rewards: float32 `[B, n]`, n known, with zeros after the last one; or `[B]`, for n = 1.
      discount: in [0, 1].
      limit: of a reward.
      name: of the name scope.

    Raises:
      ValueError: the rewards have another shape.
    """
    with tf.name_scope(name):
        clipped = tf.clip_by_value(rewards, -limit, limit)
        if rewards.shape.ndims == 1:
            return clipped
        if rewards.shape.ndims != 2 or rewards.shape.as_list()[1] is None:
            raise ValueError(f"{name}: rewards must be [B] or [B, n], got shape {rewards.shape}.")
        factors = [discount**k for k in range(rewards.shape.as_list()[1])]
        return tf.reduce_sum(clipped * tf.constant(factors, clipped.dtype), 1)


def td_target(
    next_value: tf.Tensor,
    reward: tf.Tensor,
    is_over: tf.Tensor,
    discount: Union[float, tf.Tensor],
    name: str = "td_target",
) -> tf.Tensor:
    """Returns the target of a value, or of samples of its distribution; no gradient flows back.

    `y_t = R_t + (1 - over_t) * discount * Q'(s_{t+n}, a)`

    Q' is the target network. Q-learning (Mnih et al., "Human-level control through deep
    reinforcement learning", 2015) takes its best action, `a = argmax_a Q'(s_{t+n}, a)`. In double
    Q-learning (van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning", 2015) the
    online network selects it, `a = argmax_a Q(s_{t+n}, a)`.

    Args:
      next_value: float32 `[B]`, or `[B, N]` samples: `Q'(s_{t+n}, a)`.
      reward: float32 `[B]`, R_t.
      is_over: bool `[B]`, True where the episode ended, so that the target is the reward alone.
      discount: in [0, 1]; the n-th power of that of one step. A number, or float32 `[B]`.
      name: of the name scope.

    Raises:
      ValueError: a tensor has another rank, or `discount` is out of range.
    """
    _check_ranks(name, reward=(reward, 1), is_over=(is_over, 1))
    if next_value.shape.ndims not in (1, 2):
        raise ValueError(f"{name}: next_value must have rank 1 or 2, got {next_value.shape}.")
    if isinstance(discount, (int, float)) and not 0 <= discount <= 1:
        raise ValueError(f"{name}: discount must be in [0, 1], got {discount}.")
    with tf.name_scope(name):
        # No multiplication by 0: the value after the end may be anything, NaN included.
        over = tf.broadcast_to(_like(is_over, next_value), tf.shape(next_value))
        followed = tf.where_v2(over, 0.0, next_value)
        return tf.stop_gradient(_like(reward, followed) + _like(discount, followed) * followed)


def td_losses(error: tf.Tensor, loss: str = "huber") -> tf.Tensor:
    """Returns the loss of each error, float32 `[B]`.

    "mse" is `x^2`. "huber" is `x^2 / 2` up to |x| = 1 and `|x| - 1/2` beyond, so that the gradient
    of one example is at most 1.

    Args:
      error: float32 `[B]`, `target - q[i, action[i]]`.
      loss: see `Algorithm`.
    """
    return huber_loss(error) if loss == "huber" else tf.square(error)


def _like(per_example: Any, x: tf.Tensor) -> Any:
    """Lets `[B, ...]` be broadcast with `x`, of a higher rank."""
    if isinstance(per_example, (int, float)):
        return per_example
    while per_example.shape.ndims < x.shape.ndims:
        per_example = per_example[..., None]
    return per_example


def _check_ranks(op: str, **tensors: Sequence) -> None:
    for name, (tensor, rank) in tensors.items():
        if tensor.shape.ndims != rank:
            raise ValueError(f"{op}: {name} must have rank {rank}, got shape {tensor.shape}.")
