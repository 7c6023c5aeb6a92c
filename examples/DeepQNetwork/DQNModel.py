"""The network of a DQN, its target network and its cost, as a `ModelDesc`."""

from typing import Any, List, Optional, Sequence, Union

from algorithm import Algorithm, get_algorithm
from layers import Draws, as_images, float32_from_here, noise_number, noisy_layer
from losses import HEADS, Network, Outputs, Transitions, learn, n_step_return
from networks import NETWORKS, initialized_as

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.models import FullyConnected
from tensorpack.tfutils.common import PerGraph, get_global_step_var
from tensorpack.tfutils.gradproc import GlobalNormClip, GradientProcessor, SummaryGradient
from tensorpack.tfutils.optimizer import apply_grad_processors
from tensorpack.tfutils.summary import add_moving_summary, add_param_summary, create_scalar_summary
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.tfutils.variables import VariablePairs, build_twin, record_variables
from tensorpack.utils import logger

RMS_DECAY = 0.95  # of the averages of RMSProp


class Model(ModelDesc):
    """Learns the value of each action in each state.

    Tensors by name: `state` (float32 `[B, *frame_shape, history]`, in [0, 255]; predictors feed
    it), `Qvalue` (float32 `[B, num_actions]`; of distributions the means), `cost`, `predict_reward`
    (scalars). With noisy layers, predictors have `Qnoisy` too, values to explore with; `Qvalue` is
    without noise there. With prioritised replay there are `slot`, as it came, and `priority`,
    float32 `[B]`: the size of the error, or the loss where a distribution is learned.

    Inputs, as the replay memory yields them: `comb_state`, uint8 `[B, F, *frame_shape]`, of which
    the first `history` frames are the state and the last `history` the next one; `action`, int64
    `[B]`; `reward`, float32 `[B]`, as the game gives it; `isOver`, bool `[B]`. F is `history + 1`.

    With n steps F is `2 * history`, `reward` is `[B, n]`, with zeros after the end, and `steps`,
    int32 `[B]`, says how many actions lie between the two states. With prioritised replay come
    `weight`, float32 `[B]`, of each example, and `slot`, int64 `[B]`, where it is in the memory.

    Args:
      num_actions: how many actions there are.
      algorithm: what is learned, or a name in `algorithm.NAMED`.
      frame_shape: height and width of a frame in pixels.
      history: frames that make one state.

    Attributes:
      acting_output: name of the values that choose the actions to learn from.

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
        self._algorithm = get_algorithm(algorithm)
        learns = self._algorithm.learns
        if learns not in HEADS:
            raise ValueError(f"losses.HEADS has no {learns!r}, which the algorithm learns.")
        self._head = HEADS[learns](self._algorithm, num_actions)
        self._frame_shape = tuple(frame_shape)
        self._history = history
        self._twins: PerGraph[List[VariablePairs]] = PerGraph(list)
        self.acting_output = "Qnoisy" if self._algorithm.noisy else "Qvalue"

    def inputs(self) -> List[tf.TensorSpec]:
        n = self._algorithm.n_step
        frames = self._history + 1 if n == 1 else 2 * self._history
        specs = [
            tf.TensorSpec((None, frames) + self._frame_shape, tf.uint8, "comb_state"),
            tf.TensorSpec((None,), tf.int64, "action"),
            tf.TensorSpec((None,) if n == 1 else (None, n), tf.float32, "reward"),
            tf.TensorSpec((None,), tf.bool, "isOver"),
        ]
        more = [("steps", tf.int32)] if n > 1 else []
        more += [("weight", tf.float32), ("slot", tf.int64)] if self._algorithm.priority else []
        return specs + [tf.TensorSpec((None,), dtype, name) for name, dtype in more]

    def build_graph(self, *inputs: tf.Tensor) -> Any:
        batch = self._transitions(*inputs)
        state = tf.identity(batch.state, name="state")
        if not self.training:
            self._build_policies(state)
            return None
        online, variables = record_variables(self._network, state, self._draws(0), self._draws(1))
        q = tf.identity(self._head.values(online.numbers), name="Qvalue")
        networks = self._target_network(variables), self._selector
        losses, priorities = learn(self._head, batch, online, *networks)
        if batch.weight is not None:
            losses *= batch.weight if self._algorithm.importance_weights else 1.0
            tf.identity(priorities, name="priority")
        cost = tf.reduce_mean(losses, name="cost")
        predicted = tf.reduce_mean(tf.reduce_max(q, 1), name="predict_reward")
        add_moving_summary(cost, predicted)
        add_param_summary(("conv.*/W", ["histogram", "rms"]), ("fc.*/W", ["histogram", "rms"]))
        return cost

    def optimizer(self) -> tf.train.Optimizer:
        algorithm = self._algorithm
        # A variable, which schedules and hyper.txt change.
        initial = tf.constant_initializer(algorithm.learning_rate)
        rate = tf.get_variable("learning_rate", [], initializer=initial, trainable=False)
        create_scalar_summary("learning_rate", rate)
        if algorithm.optimizer == "adam":
            optimizer = tf.train.AdamOptimizer(rate, epsilon=algorithm.epsilon)
        else:
            optimizer = tf.train.RMSPropOptimizer(
                rate, decay=RMS_DECAY, epsilon=algorithm.epsilon, centered=True
            )
        processors: List[GradientProcessor] = [SummaryGradient()]
        if algorithm.max_gradient_norm:
            processors.insert(0, GlobalNormClip(algorithm.max_gradient_norm))
        return apply_grad_processors(optimizer, processors)

    def update_target(self) -> tf.Operation:
        """Returns a new op `update_target_network` that sets the target network to the online one.

        Raises:
          RuntimeError: the training graph has not been built.
        """
        twins = self._twins.get()
        if not twins:
            raise RuntimeError("There is no target network yet: the trainer builds it in setup().")
        for pairs in twins:
            for theirs, ours in pairs:
                logger.info(f"{theirs.op.name} <- {ours.op.name}")
        if len(twins) == 1:
            return twins[0].copy_op("update_target_network")
        copies = [pairs.copy_op("update_target_network_of_tower") for pairs in twins]
        return tf.group(*copies, name="update_target_network")

    def _transitions(self, *inputs: tf.Tensor) -> Transitions:
        given = dict(zip([each.name for each in self.inputs()], inputs))
        discount: Any = self._algorithm.discount
        state, next_state = as_images(given["comb_state"], self._history)
        reward = n_step_return(given["reward"], discount)
        if "steps" in given:
            discount = tf.pow(discount, tf.cast(given["steps"], tf.float32))
        if "slot" in given:
            tf.identity(given["slot"], name="slot")
        action, is_over, weight = (given.get(name) for name in ["action", "isOver", "weight"])
        return Transitions(state, next_state, action, reward, is_over, discount, weight)

    def _network(
        self, image: tf.Tensor, samples: Optional[Draws] = None, noise: Optional[Draws] = None
    ) -> Outputs:
        """Builds the network; without `samples` and `noise` it is a function of the images."""
        layer = noisy_layer(noise) if self._algorithm.noisy else FullyConnected
        with initialized_as(self._algorithm.network, self._algorithm.learns):
            x = NETWORKS[self._algorithm.network](image, layer)
            outputs = self._head.outputs(x, layer, samples)
        return outputs._replace(numbers=float32_from_here(outputs.numbers))

    def _build_policies(self, state: tf.Tensor) -> None:
        """Builds what predictors fetch."""
        head = self._head
        tf.identity(head.values(self._network(state).numbers), name="Qvalue")
        if self._algorithm.noisy:
            with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
                noisy = self._network(state, noise=Draws(noise_number(state), 0))
            tf.identity(head.values(noisy.numbers), name="Qnoisy")

    def _target_network(self, online: Sequence[tf.Variable]) -> Network:
        """Returns what builds the twin of the network with these variables."""

        def build(images: tf.Tensor) -> tf.Tensor:
            draws = self._draws(2), self._draws(3)
            outputs, pairs = build_twin("target", self._network, images, *draws, source=online)
            if get_current_tower_context().has_own_variables:
                self._twins.get().append(pairs)
            return outputs.numbers

        return build

    def _selector(self, images: tf.Tensor) -> tf.Tensor:
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            return self._network(images, noise=self._draws(4)).numbers

    def _draws(self, stream: int) -> Optional[Draws]:
        """Returns random numbers of this training step and tower; None if none are needed."""
        if not (self._algorithm.noisy or self._head.samples):
            return None
        return Draws(get_global_step_var(), 10 * get_current_tower_context().index + stream)
