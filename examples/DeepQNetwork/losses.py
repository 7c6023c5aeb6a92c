"""What a DQN learns from a batch of transitions: targets and losses, as functions of tensors.

Plain DQN is the first screen: `learn` without its options, and `Head` without its docstrings.

    y_t = R_t + (1 - over_t) discount max_a Q'(s_{t+n}, a)        `td_target`; Q': target network
    loss = huber(y_t - Q(s_t, a_t))                               `Head.losses`

The variants follow, each as its difference to that: Double (a line of `learn`), n steps,
Munchausen, then the heads that learn distributions of returns, C51, QR and IQN. A loss belongs to
its head. A new one is a class in `HEADS` and a row of `algorithm.LEARNS`, which says which fields
of `Algorithm` it reads.

Actions are indices in `[0, A)`. The action was taken in state t and led to state t+1, or after
further actions to state t+n. The discount is per agent step (of four emulator frames), not per
frame.
"""

import math
from typing import Any, Callable, NamedTuple, Optional, Tuple, Union

import numpy as np
from algorithm import Algorithm
from layers import Draws, action_numbers
from networks import Layer

from tensorpack.compat import tfv1 as tf
from tensorpack.models import FullyConnected
from tensorpack.tfutils.symbolic_functions import huber_loss

Discount = Union[float, tf.Tensor]  # of the value of the next state: a number, or float32 [B]
Losses = Tuple[tf.Tensor, tf.Tensor]  # of each example, and its priority: float32 [B]
Network = Callable[[tf.Tensor], tf.Tensor]  # from images to the numbers of `Outputs`


class Transitions(NamedTuple):
    """A batch, as the losses need it."""

    state: tf.Tensor  # float32 [B, *frame_shape, history]
    next_state: tf.Tensor  # the same, n steps later
    action: tf.Tensor  # integer [B]
    reward: tf.Tensor  # float32 [B], clipped; the discounted sum of n
    is_over: tf.Tensor  # bool [B], True where the episode ended: the reward is all there is
    discount: Discount
    weight: Optional[tf.Tensor]  # of each example: float32 [B]


class Outputs(NamedTuple):
    """What a network gives for a batch of states."""

    numbers: tf.Tensor  # float32 [B, A], or [B, A, N]
    fractions: Optional[tf.Tensor] = None  # of quantiles: in [0, 1], float32 [B, N] or [1, N]


def learn(
    head: "Head", batch: Transitions, online: Outputs, target_network: Network, selector: Network
) -> Losses:
    """Returns the loss of each example, and what it counts in prioritised replay.

    Reference: Mnih et al., "Human-level control through deep reinforcement learning", 2015.

    Args:
      head: of the networks.
      batch: the transitions.
      online: what the network that is trained gives for `batch.state`.
      target_network: Q'.
      selector: the network that is trained; chooses actions in double Q-learning.
    """
    if head.algorithm.munchausen:
        batch, following = munchausen(head, batch, target_network)
    else:
        numbers = target_network(batch.next_state)
        # van Hasselt et al., "Deep Reinforcement Learning with Double Q-learning", 2015.
        choosing = selector(batch.next_state) if head.algorithm.double else numbers
        following = action_value(numbers, tf.argmax(head.values(choosing), 1))
    return head.losses(online, batch.action, head.target(following, batch))


class Head:
    """The end of a network, with its targets and its loss. This one has plain values."""

    atoms: Optional[int] = None  # numbers of each action where there are several
    samples = False  # whether it draws random numbers in training

    def __init__(self, algorithm: Algorithm, num_actions: int) -> None:
        self.algorithm = algorithm
        self._num_actions = num_actions
        if self.atoms is not None and algorithm.atoms:
            self.atoms = algorithm.atoms

    def outputs(self, x: tf.Tensor, layer: Layer, draws: Optional[Draws]) -> Outputs:
        """Builds the last layers on features x, float32 `[B, D]`; `layer` is fully connected.

        `draws` gives random numbers to a head that learns from samples; None is for its mean.
        """
        return Outputs(self._action_numbers(x, layer, self.atoms))

    def values(self, numbers: tf.Tensor) -> tf.Tensor:
        """Returns the values of all actions, float32 `[B, A]`."""
        return numbers

    def target(self, following: tf.Tensor, batch: Transitions) -> tf.Tensor:
        """Returns what is to be learned of the action that was taken; no gradient flows back.

        `following` are the numbers of one action of the next states, `[B]` or `[B, N]`.
        """
        return td_target(following, batch.reward, batch.is_over, batch.discount)

    def losses(self, outputs: Outputs, action: tf.Tensor, target: tf.Tensor) -> Losses:
        """Returns what `learn` does."""
        error = tf.stop_gradient(target) - action_value(outputs.numbers, action)
        return td_losses(error, self.algorithm.loss), tf.abs(error)

    def _action_numbers(self, x: tf.Tensor, layer: Layer, atoms: Optional[int]) -> tf.Tensor:
        return action_numbers(x, self._num_actions, atoms, self.algorithm.dueling, layer)


def action_value(q: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Returns the numbers of one action for each example, `q[i, action[i]]`; `[B]` or `[B, N]`.

    Args:
      q: float32 `[B, A]`, values of all actions, or `[B, A, N]`, their distributions; A is known.
      action: integer `[B]`.

    Raises:
      ValueError: a tensor has another rank.
    """
    _check_rank("action_value: q", q, 2, 3)
    _check_rank("action_value: action", action, 1)
    with tf.name_scope("action_value"):
        chosen = tf.one_hot(action, q.shape.as_list()[1], dtype=q.dtype)
        return tf.reduce_sum(q * _like(chosen, q), 1)


def td_target(
    next_value: tf.Tensor, reward: tf.Tensor, is_over: tf.Tensor, discount: Discount
) -> tf.Tensor:
    """Returns the target of a value, or of samples of its distribution; no gradient flows back.

    `y_t = R_t + (1 - over_t) * discount * Q'(s_{t+n}, a)`

    Args:
      next_value: float32 `[B]`, or `[B, N]` samples: `Q'(s_{t+n}, a)`.
      reward, is_over, discount: see `Transitions`.

    Raises:
      ValueError: a tensor has another rank.
    """
    _check_rank("td_target: next_value", next_value, 1, 2)
    _check_rank("td_target: reward", reward, 1)
    _check_rank("td_target: is_over", is_over, 1)
    with tf.name_scope("td_target"):
        # No multiplication by 0: the value after the end may be anything, NaN included.
        over = tf.broadcast_to(_like(is_over, next_value), tf.shape(next_value))
        followed = tf.where_v2(over, 0.0, next_value)
        return tf.stop_gradient(_like(reward, followed) + _like(discount, followed) * followed)


def td_losses(error: tf.Tensor, loss: str = "huber") -> tf.Tensor:
    """Returns the loss of each error, float32 `[B]`.

    "mse" is `x^2`. "huber" is `x^2 / 2` up to |x| = 1 and `|x| - 1/2` beyond, so that the gradient
    of one example is at most 1.
    """
    return huber_loss(error) if loss == "huber" else tf.square(error)


def n_step_return(rewards: tf.Tensor, discount: float) -> tf.Tensor:
    """Returns the discounted sum of n clipped rewards, float32 `[B]`.

    `R_t = sum_{k<n} discount^k clip(r_{t+k}, -1, 1)`

    Reference: Sutton, "Learning to predict by the methods of temporal differences", 1988.

    Args:
      rewards: float32 `[B, n]`, n known, with zeros after the last one; or `[B]`, for n = 1.
      discount: in [0, 1].
    """
    with tf.name_scope("n_step_return"):
        clipped = tf.clip_by_value(rewards, -1.0, 1.0)
        if rewards.shape.ndims == 1:
            return clipped
        factors = [discount**k for k in range(rewards.shape.as_list()[1])]
        return tf.reduce_sum(clipped * tf.constant(factors, clipped.dtype), 1)


# Munchausen, of values or of quantiles: Vieillard et al., "Munchausen Reinforcement Learning",
# 2020. The log-policy is added to the reward, with the policy of the target network,
# pi = softmax(Q' / tau). Of several steps the first one alone gets the bonus.
#
#   y = R_t + alpha [tau log pi(a_t|s_t)]_{l0}^0
#       + discount sum_a pi(a|s_{t+n}) (Q'(s_{t+n}, a) - tau log pi(a|s_{t+n}))

ALPHA = 0.9  # of the bonus
TAU = 0.03  # the temperature
CLIP = -1.0  # l0: the log-policy, which has no bound, is clipped there


def munchausen(
    head: Head, batch: Transitions, target_network: Network
) -> Tuple[Transitions, tf.Tensor]:
    """Returns the batch with the bonus in its rewards, and the numbers that follow."""
    both = target_network(tf.concat([batch.state, batch.next_state], 0))
    now, following = tf.split(both, 2)
    bonus = munchausen_bonus(head.values(now), batch.action)
    rewarded = batch._replace(reward=batch.reward + bonus)
    return rewarded, soft_value(following, head.values(following))


def munchausen_bonus(q: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
    """Returns `alpha [tau log pi(a_t|s_t)]_{l0}^0`, float32 `[B]`; of `[B, A]` values Q'(s_t)."""
    with tf.name_scope("munchausen_bonus"):
        log_policy = action_value(_scaled_log_policy(q), action)
        return ALPHA * tf.clip_by_value(log_policy, CLIP, 0.0)


def soft_value(numbers: tf.Tensor, q: tf.Tensor) -> tf.Tensor:
    """Returns `sum_a pi(a|s) (Q'(s, a) - tau log pi(a|s))`, float32 `[B]` or `[B, N]`.

    Args:
      numbers: float32, Q': values `[B, A]`, or their quantiles `[B, A, N]`.
      q: float32 `[B, A]`, the values.
    """
    with tf.name_scope("soft_value"):
        policy, log_policy = tf.nn.softmax(q / TAU), _scaled_log_policy(q)
        return tf.reduce_sum(_like(policy, numbers) * (numbers - _like(log_policy, numbers)), 1)


def _scaled_log_policy(q: tf.Tensor) -> tf.Tensor:
    return TAU * tf.nn.log_softmax(q / TAU)


class C51(Head):
    """A distribution of each return over fixed values, the atoms, which lie in [-LIMIT, LIMIT].

    The network gives their logits; the loss is the cross entropy with the target. Reference:
    Bellemare et al., "A Distributional Perspective on Reinforcement Learning", 2017.
    """

    atoms = 51
    LIMIT = 10.0  # of a return

    def values(self, numbers: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.nn.softmax(numbers) * C51.support(self.atoms), 2)

    def target(self, following: tf.Tensor, batch: Transitions) -> tf.Tensor:
        return project(tf.nn.softmax(following), batch.reward, batch.is_over, batch.discount)

    def losses(self, outputs: Outputs, action: tf.Tensor, target: tf.Tensor) -> Losses:
        logits = action_value(outputs.numbers, action)
        losses = -tf.reduce_sum(tf.stop_gradient(target) * tf.nn.log_softmax(logits), 1)
        return losses, losses

    @classmethod
    def support(cls, atoms: int) -> np.ndarray:
        """Returns the atoms `z_i`, float32 `[N]`, evenly spaced."""
        return np.linspace(-cls.LIMIT, cls.LIMIT, atoms, dtype=np.float32)


def project(
    probabilities: tf.Tensor, reward: tf.Tensor, is_over: tf.Tensor, discount: Discount
) -> tf.Tensor:
    """Returns the distribution of `reward + discount * Z`, on the same atoms; float32 `[B, N]`.

    The probability of a value between two atoms is divided among them (equation 7); no gradient
    flows back:

    `m_i = sum_j clip(1 - |clip(r + discount z_j, -LIMIT, LIMIT) - z_i| / dz, 0, 1) p_j`

    Args:
      probabilities: float32 `[B, N]`, p_j, of the next states.
      reward, is_over, discount: see `Transitions`.
    """
    atoms = probabilities.shape.as_list()[1]
    z = C51.support(atoms)
    with tf.name_scope("project"):
        # What follows the end may be anything, NaN included.
        over = tf.broadcast_to(is_over[:, None], tf.shape(probabilities))
        p = tf.where_v2(over, 1.0 / atoms, probabilities)
        factor = tf.where_v2(is_over, 0.0, discount * tf.ones_like(reward))
        moved = tf.clip_by_value(reward[:, None] + factor[:, None] * z, -C51.LIMIT, C51.LIMIT)
        distance = tf.abs(moved[:, None, :] - z[:, None]) / (z[1] - z[0])  # [B, i, j]
        shares = tf.maximum(1.0 - distance, 0.0)
        return tf.stop_gradient(tf.reduce_sum(shares * p[:, None, :], 2))


class QR(Head):
    """A distribution of each return by its quantiles at fixed fractions; a value is their mean.

    Dabney et al., "Distributional Reinforcement Learning with Quantile Regression", 2018.
    """

    atoms = 200

    def outputs(self, x: tf.Tensor, layer: Layer, draws: Optional[Draws]) -> Outputs:
        numbers = self._action_numbers(x, layer, self.atoms)
        return Outputs(numbers, tf.constant(midpoints(self.atoms)[None]))

    def values(self, numbers: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(numbers, 2)

    def losses(self, outputs: Outputs, action: tf.Tensor, target: tf.Tensor) -> Losses:
        quantiles = action_value(outputs.numbers, action)
        losses = quantile_huber_losses(quantiles, outputs.fractions, target)
        return losses, losses


def midpoints(count: int) -> np.ndarray:
    """Returns the fractions `(2 i + 1) / 2N`, float32 `[N]`."""
    return ((np.arange(count) + 0.5) / count).astype(np.float32)


def quantile_huber_losses(
    quantiles: tf.Tensor, fractions: tf.Tensor, target: tf.Tensor
) -> tf.Tensor:
    """Returns the loss of each example, float32 `[B]`; its gradient flows into the quantiles.

    `sum_i mean_j |tau_i - [u_ij < 0]| L(u_ij)`, with `u_ij = target_j - quantile_i` and the Huber
    loss L of `td_losses` (equation 10, with kappa = 1).

    Args:
      quantiles: float32 `[B, N]`.
      fractions: float32 `[B, N]` or `[1, N]`: tau_i, in [0, 1].
      target: float32 `[B, M]`, samples.
    """
    with tf.name_scope("quantile_huber"):
        u = tf.stop_gradient(target)[:, None, :] - quantiles[:, :, None]
        # L'(u) is clip(u), and L(u) = L'(u) (u - L'(u) / 2). With all but the first u held fixed
        # the gradient is the right one, and costs one product: N x M numbers are many.
        slope = tf.clip_by_value(u, -1.0, 1.0)
        weight = tf.abs(fractions[:, :, None] - tf.cast(u < 0, u.dtype))
        half, weighted = tf.stop_gradient(0.5 * slope), tf.stop_gradient(weight * slope)
        return tf.reduce_sum(tf.reduce_mean(weighted * (u - half), 2), 1)


class IQN(QR):
    """A distribution of each return by its quantiles at any fraction, in training random ones.

    Reference: Dabney et al., "Implicit Quantile Networks for Distributional Reinforcement
    Learning", 2018. Three things differ, for the sake of speed. The embedding of a fraction is
    multiplied with the 512 features that all fractions share; in the paper with the image before
    those, so that a layer of 4 million weights is computed for each fraction (16 times the work of
    all the others). Acting takes the mean over the midpoints of intervals, where the paper draws
    as many fractions. And the next actions of the targets are chosen, without double Q-learning,
    by the fractions whose values become the targets, where the paper draws others.
    """

    atoms, samples = 64, True
    COSINES = 64
    POLICY_SAMPLES = 32  # fractions whose mean is a value, of which actions are chosen

    def outputs(self, x: tf.Tensor, layer: Layer, draws: Optional[Draws]) -> Outputs:
        if draws is None:
            fractions = tf.constant(midpoints(self.POLICY_SAMPLES)[None])
        else:
            fractions = draws.uniform([tf.shape(x)[0], self.atoms])
            fractions.set_shape([None, self.atoms])
        samples, size = fractions.shape.as_list()[1], x.shape.as_list()[1]
        mixed = tf.reshape(x[:, None, :] * self._embed(fractions, size), [-1, size])
        numbers = self._action_numbers(mixed, layer, atoms=None)
        numbers = tf.reshape(numbers, [-1, samples, self._num_actions])
        return Outputs(tf.transpose(numbers, [0, 2, 1]), fractions)

    def _embed(self, fractions: tf.Tensor, size: int) -> tf.Tensor:
        """Returns `relu(sum_i cos(pi i tau) w_ij + b_j)`, 0 <= i < 64; float32 `[B, N, size]`."""
        frequencies = tf.constant(math.pi * np.arange(self.COSINES, dtype=np.float32))
        cosines = tf.reshape(tf.cos(fractions[..., None] * frequencies), [-1, self.COSINES])
        embedded = FullyConnected("embedding", cosines, size, activation=tf.nn.relu)
        return tf.reshape(embedded, [-1, fractions.shape.as_list()[1], size])


HEADS = {"values": Head, "c51": C51, "qr": QR, "iqn": IQN}  # by `Algorithm.learns`


def _like(per_example: Any, x: tf.Tensor) -> Any:
    """Lets `[B, ...]` be broadcast with `x`, of a higher rank."""
    while isinstance(per_example, tf.Tensor) and per_example.shape.ndims < x.shape.ndims:
        per_example = per_example[..., None]
    return per_example


def _check_rank(what: str, tensor: tf.Tensor, *ranks: int) -> None:
    if tensor.shape.ndims not in ranks:
        needed = " or ".join(map(str, ranks))
        raise ValueError(f"{what} must have rank {needed}, got shape {tensor.shape}.")
