"""Targets with the log-policy added to the reward, of values or of quantiles.

`y = R_t + alpha [tau log pi(a_t|s_t)]_{l0}^0
     + discount * sum_a pi(a|s_{t+n}) (Q'(s_{t+n}, a) - tau log pi(a|s_{t+n}))`

with `pi = softmax(Q' / tau)`, the policy of the target network Q'. Of several steps the first one
alone gets the bonus.

Reference: Vieillard et al., "Munchausen Reinforcement Learning", 2020.
"""

from td import action_value

from tensorpack.compat import tfv1 as tf

__all__ = ["ALPHA", "CLIP", "TAU", "munchausen_bonus", "soft_value"]

ALPHA = 0.9  # of the bonus
TAU = 0.03  # the temperature
CLIP = -1.0  # l0: the log-policy, which has no bound, is clipped there


def munchausen_bonus(q: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Returns `alpha [tau log pi(a_t|s_t)]_{l0}^0`, float32 `[B]`.

    Args:
      q: float32 `[B, A]`, values Q'(s_t, a).
      action: integer `[B]`, a_t.
    """
    with tf.name_scope("munchausen_bonus"):
        return ALPHA * tf.clip_by_value(action_value(_scaled_log_policy(q), action), CLIP, 0.0)


def soft_value(numbers: tf.Tensor, q: tf.Tensor) -> tf.Tensor:
    """Returns `sum_a pi(a|s) (Q'(s, a) - tau log pi(a|s))`, float32 `[B]`; of quantiles `[B, N]`.

    Args:
      numbers: float32 `[B, A]`, values; or `[B, A, N]`, their quantiles.
      q: float32 `[B, A]`, the values.
    """
    with tf.name_scope("soft_value"):
        policy, log_policy = tf.nn.softmax(q / TAU), _scaled_log_policy(q)
        if numbers.shape.ndims == 3:
            policy, log_policy = policy[..., None], log_policy[..., None]
        return tf.reduce_sum(policy * (numbers - log_policy), 1)


def _scaled_log_policy(q: tf.Tensor) -> tf.Tensor:
    return TAU * tf.nn.log_softmax(q / TAU)
