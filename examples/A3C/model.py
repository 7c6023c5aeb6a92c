"""The policy and value network, its loss and its optimizer, as a `ModelDesc`."""

from typing import Any, List, NamedTuple, Sequence, Tuple

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.models import Conv2D, FullyConnected
from tensorpack.tfutils.argscope import argscope
from tensorpack.tfutils.gradproc import GlobalNormClip, SummaryGradient
from tensorpack.tfutils.optimizer import apply_grad_processors
from tensorpack.tfutils.summary import (
    add_moving_summary,
    add_param_summary,
    create_scalar_summary,
)
from tensorpack.tfutils.varreplace import remap_variables

RMS_DECAY = 0.99
RMS_EPSILON = 1e-5
MAX_GRADIENT_NORM = 0.5  # of all gradients together
VALUE_WEIGHT = 0.5  # of the loss of the value, beside that of the policy
ENTROPY_WEIGHT = 0.01  # of the entropy of the policy, which is to stay high


class Model(ModelDesc):
    """Learns which action to take in each state, and the value of the state.

    Tensors by name: `state` (the input), `policy` (float32 `[B, num_actions]`, probabilities),
    `value` (float32 `[B]`), `cost` (a scalar).

    Inputs, as `Rollouts` yields them: `state`, uint8 `[B, *frame_shape, history]`; `action`, int64
    `[B]`; `target`, float32 `[B]`, what the value should have been.

    Args:
      num_actions: how many actions there are.
      frame_shape: height and width of a frame in pixels.
      history: frames that make one state.
      learning_rate: initial value of a variable, which schedules and hyper.txt change.
    """

    def __init__(
        self,
        num_actions: int,
        frame_shape: Sequence[int] = (84, 84),
        history: int = 4,
        learning_rate: float = 7e-4,
    ) -> None:
        self._num_actions = num_actions
        self._state_shape = (*frame_shape, history)
        self._learning_rate = learning_rate

    def inputs(self) -> List[tf.TensorSpec]:
        return [
            tf.TensorSpec((None, *self._state_shape), tf.uint8, "state"),
            tf.TensorSpec((None,), tf.int64, "action"),
            tf.TensorSpec((None,), tf.float32, "target"),
        ]

    def build_graph(self, state: tf.Tensor, action: tf.Tensor, target: tf.Tensor) -> Any:
        logits, value = self._network(state)
        tf.nn.softmax(logits, name="policy")
        value = tf.identity(value, name="value")
        if not self.training:
            return None
        losses = actor_critic_losses(logits, value, action, target)
        cost = tf.add_n(
            [losses.policy, VALUE_WEIGHT * losses.value, -ENTROPY_WEIGHT * losses.entropy],
            name="cost",
        )
        add_moving_summary(cost, *losses, tf.reduce_mean(value, name="predict_value"))
        add_param_summary(("conv.*/W", ["rms"]), ("fc.*/W", ["rms"]))
        return cost

    def optimizer(self) -> tf.train.Optimizer:
        rate = tf.get_variable(
            "learning_rate",
            [],
            initializer=tf.constant_initializer(self._learning_rate),
            trainable=False,
        )
        create_scalar_summary("learning_rate", rate)
        rmsprop = tf.train.RMSPropOptimizer(rate, decay=RMS_DECAY, epsilon=RMS_EPSILON)
        clip = GlobalNormClip(MAX_GRADIENT_NORM)
        return apply_grad_processors(rmsprop, [clip, SummaryGradient()])

    def _network(self, state: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
        """Returns logits of the actions, float32 `[B, num_actions]`, and values, float32 `[B]`."""
        image = tf.cast(state, tf.float32)
        layers = argscope(
            [Conv2D, FullyConnected],
            activation=tf.nn.relu,
            kernel_initializer=tf.orthogonal_initializer(np.sqrt(2.0)),
        )
        with layers, argscope(Conv2D, padding="valid"):
            with remap_variables(_for_bytes):
                x = Conv2D("conv0", image, 32, 8, strides=4)
            x = Conv2D("conv1", x, 64, 4, strides=2)
            x = Conv2D("conv2", x, 64, 3)
            x = FullyConnected("fc0", x, 512)
        logits = FullyConnected(
            "fc-pi", x, self._num_actions, kernel_initializer=tf.orthogonal_initializer(0.01)
        )
        value = FullyConnected("fc-v", x, 1, kernel_initializer=tf.orthogonal_initializer(1.0))
        return logits, tf.squeeze(value, 1)


def _for_bytes(variable: Any) -> Any:
    """Scales the kernel of a convolution for inputs in [0, 255] instead of [0, 1]."""
    return variable / 255.0 if variable.shape.ndims == 4 else variable


class Losses(NamedTuple):
    """Scalars, means over a batch; the entropy is to be high, the others low."""

    policy: tf.Tensor
    value: tf.Tensor
    entropy: tf.Tensor


def actor_critic_losses(
    logits: tf.Tensor, value: tf.Tensor, action: tf.Tensor, target: tf.Tensor
) -> Losses:
    """Returns what an advantage actor-critic minimises, in parts::

        policy:   mean of -log pi(a|s) * (R - V(s)), of which R - V(s) is held fixed
        value:    mean of (R - V(s))^2
        entropy:  mean of -sum_a pi(a|s) log pi(a|s)

    Reference: Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning", 2016.

    Args:
      logits: float32 `[B, A]`; pi is their softmax.
      value: float32 `[B]`, V(s).
      action: integer `[B]`, a, in [0, A).
      target: float32 `[B]`, R, see `returns.nstep_targets`.

    Raises:
      ValueError: a tensor has another rank.
    """
    for tensor, rank in [(logits, 2), (value, 1), (action, 1), (target, 1)]:
        if tensor.shape.ndims != rank:
            raise ValueError(f"{tensor.name} must have rank {rank}, got shape {tensor.shape}.")
    with tf.name_scope("losses"):
        log_policy = tf.nn.log_softmax(logits)
        taken = tf.one_hot(action, logits.shape.as_list()[1], dtype=logits.dtype)
        advantage = tf.stop_gradient(target - value)
        policy = -tf.reduce_mean(tf.reduce_sum(log_policy * taken, 1) * advantage)
        entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(log_policy) * log_policy, 1))
        return Losses(
            tf.identity(policy, name="policy_loss"),
            tf.reduce_mean(tf.squared_difference(target, value), name="value_loss"),
            tf.identity(entropy, name="entropy"),
        )
