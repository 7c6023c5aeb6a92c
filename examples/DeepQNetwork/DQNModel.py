"""The Q networks, their target network and the loss, as a `ModelDesc`; loading of weights."""

import sys
from typing import Any, List, Sequence, Tuple, Union

from algorithm import NAMED, Algorithm, get_algorithm
from td import double_qlearning_target, qlearning_target, td_loss

from tensorpack.compat import tf_version
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.models import Conv2D, FullyConnected, LeakyReLU, PReLU
from tensorpack.tfutils.argscope import argscope
from tensorpack.tfutils.checkpoint import CheckpointReader, load_checkpoint_vars
from tensorpack.tfutils.common import PerGraph
from tensorpack.tfutils.gradproc import GlobalNormClip, SummaryGradient
from tensorpack.tfutils.optimizer import apply_grad_processors
from tensorpack.tfutils.sessinit import SessionInit, get_model_loader
from tensorpack.tfutils.summary import (
    add_moving_summary,
    add_param_summary,
    create_scalar_summary,
)
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.tfutils.variables import VariablePairs, build_twin, record_variables
from tensorpack.tfutils.varreplace import remap_variables
from tensorpack.utils import logger
from tensorpack.utils.gpu import get_num_gpu

__all__ = ["AllWeights", "Model", "OtherNetwork", "as_images"]

_WORD = 4  # bytes that are moved as one number


class Model(ModelDesc):
    """Learns the value of each action in each state.

    Tensors by name: `state` (float32 `[B, *frame_shape, history]`, in [0, 255]; predictors feed
    it), `Qvalue` (float32 `[B, num_actions]`), `cost`, `predict_reward` (scalars).

    Inputs, as the replay memory yields them: `comb_state`, uint8
    `[B, history + 1, *frame_shape]`, of which the first `history` frames are the state and the last
    `history` the next one; `action`, int64 `[B]`; `reward`, float32 `[B]`, as the game gives it;
    `isOver`, bool `[B]`.

    Args:
      num_actions: how many actions there are.
      algorithm: what is learned, or a name in `algorithm.NAMED`.
      frame_shape: height and width of a frame in pixels.
      history: frames that make one state.

    Raises:
      ValueError: there is no such algorithm.
    """

    def __init__(
        self,
        num_actions: int,
        algorithm: Union[str, Algorithm] = "Double",
        frame_shape: Sequence[int] = (84, 84),
        history: int = 4,
    ) -> None:
        self._num_actions = num_actions
        self._algorithm = get_algorithm(algorithm)
        known = self._algorithm._replace(max_gradient_norm=10.0)
        if known not in (NAMED["Double"], NAMED["DQN"], NAMED["Dueling"]):
            raise NotImplementedError(f"The model cannot learn {self._algorithm} yet.")
        self._frame_shape = tuple(frame_shape)
        self._history = history
        self._twins: PerGraph[List[VariablePairs]] = PerGraph(list)

    def inputs(self) -> List[tf.TensorSpec]:
        return [
            tf.TensorSpec((None, self._history + 1) + self._frame_shape, tf.uint8, "comb_state"),
            tf.TensorSpec((None,), tf.int64, "action"),
            tf.TensorSpec((None,), tf.float32, "reward"),
            tf.TensorSpec((None,), tf.bool, "isOver"),
        ]

    def build_graph(
        self, comb_state: tf.Tensor, action: tf.Tensor, reward: tf.Tensor, is_over: tf.Tensor
    ) -> Any:
        # Frames are stored one after the other; convolutions need them as channels.
        state, next_state = as_images(comb_state, self._history)
        state = tf.identity(state, name="state")
        q, online = record_variables(self._network, state)
        q = tf.identity(q, name="Qvalue")
        if not self.training:
            return None
        reward = tf.clip_by_value(reward, -1.0, 1.0)
        target = self._target(next_state, reward, is_over, online)
        cost = td_loss(q, action, target, name="cost")
        self._summarise(q, cost)
        return cost

    def optimizer(self) -> tf.train.Optimizer:
        algorithm = self._algorithm
        # A variable, which schedules and hyper.txt change.
        initial = tf.constant_initializer(algorithm.learning_rate)
        rate = tf.get_variable("learning_rate", [], initializer=initial, trainable=False)
        create_scalar_summary("learning_rate", rate)
        adam = tf.train.AdamOptimizer(rate, epsilon=algorithm.epsilon)
        clip = GlobalNormClip(algorithm.max_gradient_norm)
        return apply_grad_processors(adam, [clip, SummaryGradient()])

    def update_target(self) -> tf.Operation:
        """Returns a new op `update_target_network` that sets the target network to the online one.

        Raises:
          RuntimeError: the training graph has not been built.
        """
        twins = self._built_twins()
        for pairs in twins:
            for theirs, ours in pairs:
                logger.info(f"{theirs.op.name} <- {ours.op.name}")
        if len(twins) == 1:
            return twins[0].copy_op("update_target_network")
        copies = [pairs.copy_op("update_target_network_of_tower") for pairs in twins]
        return tf.group(*copies, name="update_target_network")

    def weights(self) -> List[tf.Variable]:
        """Returns the variables that a predictor of the values needs.

        Raises:
          RuntimeError: the training graph has not been built.
        """
        return [ours for _, ours in self._built_twins()[0]]

    def _built_twins(self) -> List[VariablePairs]:
        twins = self._twins.get()
        if not twins:
            raise RuntimeError("There is no target network yet: the trainer builds it in setup().")
        return twins

    def _network(self, image: tf.Tensor) -> tf.Tensor:
        """Returns the values of all actions, float32 `[B, num_actions]`."""
        with argscope(Conv2D, activation=PReLU.symbolic_function, padding="same"):
            with remap_variables(_for_bytes):
                x = Conv2D("conv0", image, 32, 8, strides=4)
            x = Conv2D("conv1", x, 64, 4, strides=2)
            x = Conv2D("conv2", x, 64, 3)
        x = FullyConnected("fc0", x, 512, activation=_leaky_relu)
        if not self._algorithm.dueling:
            return FullyConnected("fct", x, self._num_actions)
        value = FullyConnected("fctV", x, 1)
        advantage = FullyConnected("fctA", x, self._num_actions)
        return value + advantage - tf.reduce_mean(advantage, 1, keepdims=True)

    def _target(
        self,
        next_state: tf.Tensor,
        reward: tf.Tensor,
        is_over: tf.Tensor,
        online: Sequence[tf.Variable],
    ) -> tf.Tensor:
        q_next, pairs = build_twin("target", self._network, next_state, source=online)
        if get_current_tower_context().has_own_variables:
            self._twins.get().append(pairs)
        if not self._algorithm.double:
            return qlearning_target(q_next, reward, is_over, self._algorithm.discount)
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            q_next_online = self._network(next_state)
        return double_qlearning_target(
            q_next, q_next_online, reward, is_over, self._algorithm.discount
        )

    @staticmethod
    def _summarise(q: tf.Tensor, cost: tf.Tensor) -> None:
        predicted = tf.reduce_mean(tf.reduce_max(q, 1), name="predict_reward")
        add_moving_summary(cost, predicted)
        add_param_summary(("conv.*/W", ["histogram", "rms"]), ("fc.*/W", ["histogram", "rms"]))


def _for_bytes(variable: Any) -> Any:
    """Scales the kernel of a convolution for inputs in [0, 255] instead of [0, 1]."""
    # It has a few thousand numbers to divide; the images have a few million.
    return variable / 255.0 if variable.shape.ndims == 4 else variable


def _leaky_relu(x: tf.Tensor, name: str = "output") -> tf.Tensor:
    return LeakyReLU(x, 0.01, name=name)


def as_images(frames: tf.Tensor, history: int) -> Tuple[tf.Tensor, tf.Tensor]:
    """Returns the first `history` frames and the last ones, each as float32 `[B, H, W, history]`.

    The values are not scaled: they stay in [0, 255].

    Args:
      frames: uint8 `[B, N, H, W]`, N known.
      history: how many frames make one image, at most N.

    Raises:
      ValueError: the frames have another shape.
    """
    count = frames.shape.as_list()[1] if frames.shape.ndims == 4 else None
    if count is None or not 1 <= history <= count:
        raise ValueError(
            f"as_images needs frames [B, N, H, W] with a known N >= history={history}, got shape "
            f"{frames.shape}."
        )
    with tf.name_scope("as_images"):
        if history == _WORD and _words_are_faster():
            planes = tf.unstack(frames, axis=1)
            return _as_words(planes[:history]), _as_words(planes[-history:])
        images = tf.cast(tf.transpose(frames, [0, 2, 3, 1]), tf.float32)
        return images[..., :history], images[..., -history:]


def _words_are_faster() -> bool:
    # A GPU transposes fast, a CPU does not. TensorFlow 1 casts too slowly for it to pay.
    return sys.byteorder == "little" and tf_version()[0] >= 2 and get_num_gpu() == 0


def _as_words(planes: List[tf.Tensor]) -> tf.Tensor:
    """Packs four frames into one, each pixel of which is a number of four bytes, lowest first."""
    first, second, third, last = planes
    # The sign is in the highest byte. Multiplications, because shifts are slower.
    bytes_of_word = [tf.cast(each, tf.int32) for each in [first, second, third]]
    bytes_of_word.append(tf.cast(tf.bitcast(last, tf.int8), tf.int32))
    shifted = [each * (1 << 8 * i) if i else each for i, each in enumerate(bytes_of_word)]
    return tf.cast(tf.bitcast(tf.add_n(shifted), tf.uint8), tf.float32)


class OtherNetwork(ValueError):
    """A file has the weights of another network."""


class AllWeights(SessionInit):
    """Loads all variables of a network that is to act; a missing one is an error.

    Args:
      path: as in `get_model_loader`.

    Raises:
      OtherNetwork: in `init`; names the variables that the file does not have.
      Exception: see `get_model_loader`.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._loader = get_model_loader(path)

    def _run_init(self, sess: Any) -> None:
        archive = self._path.endswith(".npz")
        reader = load_checkpoint_vars(self._path) if archive else CheckpointReader(self._path).names
        saved = frozenset(reader)
        needed = [each.op.name for each in tf.global_variables()]
        missing = [name for name in needed if name not in saved]
        if missing:
            raise OtherNetwork(
                f"it has no {', '.join(missing)}, which this network needs: give the --algo and "
                "the game that it was trained with"
            )
        self._loader.init(sess)
