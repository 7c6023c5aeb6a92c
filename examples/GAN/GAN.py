"""Models of a generator against a discriminator, and trainers that update the two.

A model derives from `GANModelDesc`; `DCGAN.py` shows how. Its `build_graph` ends like this::

    self.build_losses(logits_of_real_data, logits_of_generated_data)
    self.collect_variables()

and it is trained by `GANTrainer(QueueInput(dataflow), Model()).train_with_defaults(...)`.
"""

from typing import List, Tuple

from tensorpack import (
    DataParallelBuilder,
    InputSource,
    ModelDesc,
    StopIfNonFinite,
    TowerContext,
    TowerFunc,
    TowerTrainer,
    add_moving_summary,
)
from tensorpack.compat import tfv1 as tf

__all__ = ["GANModelDesc", "GANTrainer", "SeparateGANTrainer"]


class GANModelDesc(ModelDesc):
    """A model with two losses, each for some of the variables, and one optimizer.

    `build_graph` sets the attributes, usually by `build_losses` and `collect_variables`.

    Attributes:
      g_loss: scalar, which the generator minimizes.
      d_loss: scalar, which the discriminator minimizes.
      g_vars: the variables of the generator.
      d_vars: those of the discriminator.
    """

    g_loss: tf.Tensor
    d_loss: tf.Tensor
    g_vars: List[tf.Variable]
    d_vars: List[tf.Variable]

    def collect_variables(self, g_scope: str = "gen", d_scope: str = "discrim") -> None:
        """Sets `g_vars` and `d_vars` to the trainable variables of two variable scopes.

        Raises:
          ValueError: a scope has none.
        """
        self.g_vars = _variables_in(g_scope)
        self.d_vars = _variables_in(d_scope)

    def build_losses(self, logits_real: tf.Tensor, logits_fake: tf.Tensor) -> None:
        """Sets `g_loss` and `d_loss`, and logs them and the accuracy of the discriminator.

        `d_loss` is the mean cross-entropy of all its answers, half of them about real data;
        `g_loss` is the cross-entropy of the wrong answers that the generator hopes for.

        Reference: Goodfellow et al., "Generative Adversarial Networks", 2014, section 3.

        Args:
          logits_real: float32, any shape; above 0 where the discriminator takes data for real.
          logits_fake: the same for generated data.
        """
        with tf.name_scope("GAN_loss"):
            wrong_about_real = _cross_entropy(logits_real, is_real=True)
            wrong_about_fake = _cross_entropy(logits_fake, is_real=False)
            self.d_loss = tf.divide(wrong_about_real + wrong_about_fake, 2.0, name="d_loss")
            self.g_loss = tf.identity(_cross_entropy(logits_fake, is_real=True), name="g_loss")
            accuracies = [
                tf.reduce_mean(tf.cast(logits_real > 0, tf.float32), name="accuracy_real"),
                tf.reduce_mean(tf.cast(logits_fake <= 0, tf.float32), name="accuracy_fake"),
            ]
            add_moving_summary(self.g_loss, self.d_loss, *accuracies)


class GANTrainer(TowerTrainer):
    """Updates both networks in each step, on the same batch.

    Args:
      input: the data; not set up yet.
      model: what to train.
      num_gpu: how many towers share the work, each with batches of its own from a `FeedfreeInput`.
        They train as one does with batches so many times as large.
    """

    def __init__(self, input: InputSource, model: GANModelDesc, num_gpu: int = 1) -> None:
        super().__init__()
        self.model = model
        self.register_callback(input.setup(model.get_input_signature()))
        self.tower_func = TowerFunc(model.build_graph, model.get_input_signature())

        def build() -> Tuple[tf.Tensor, tf.Tensor]:
            self.tower_func(*input.get_input_tensors())
            return model.g_loss, model.d_loss

        if num_gpu == 1:
            with TowerContext("", is_training=True):
                build()
        else:
            losses = DataParallelBuilder.call_for_each_tower(list(range(num_gpu)), build)
            with tf.name_scope("mean_of_towers"):
                model.g_loss, model.d_loss = (tf.add_n(each) / num_gpu for each in zip(*losses))
        self.register_callback(StopIfNonFinite([model.g_loss, model.d_loss]))
        with tf.name_scope("optimize"):
            self._build_updates(model, model.get_optimizer())

    def _build_updates(self, model: GANModelDesc, optimizer: tf.train.Optimizer) -> None:
        g_min = _minimize(optimizer, model.g_loss, model.g_vars, "g_op")
        # The gradients of the generator go through the discriminator, which must not change before.
        with tf.control_dependencies([g_min]):
            self.train_op = _minimize(optimizer, model.d_loss, model.d_vars, "d_op")


class SeparateGANTrainer(GANTrainer):
    """Updates each network every so many steps; where it is both, each has a batch of its own.

    Args:
      input: the data; not set up yet.
      model: what to train.
      d_period: steps from one update of the discriminator to the next.
      g_period: the same of the generator. One of the two is 1, so that no step is empty.
      num_gpu: as in `GANTrainer`.

    Raises:
      ValueError: they are something else.
    """

    def __init__(
        self,
        input: InputSource,
        model: GANModelDesc,
        d_period: int = 1,
        g_period: int = 1,
        num_gpu: int = 1,
    ) -> None:
        if min(d_period, g_period) != 1:
            raise ValueError(f"One period must be 1, got d_period={d_period}, g_period={g_period}.")
        self._d_period, self._g_period = d_period, g_period
        super().__init__(input, model, num_gpu)

    def _build_updates(self, model: GANModelDesc, optimizer: tf.train.Optimizer) -> None:
        self.d_min = _minimize(optimizer, model.d_loss, model.d_vars, "d_op")
        self.g_min = _minimize(optimizer, model.g_loss, model.g_vars, "g_op")

    def run_step(self) -> None:
        """Runs the updates whose turn it is."""
        if self.global_step % self._d_period == 0:
            self.hooked_sess.run(self.d_min)
        if self.global_step % self._g_period == 0:
            self.hooked_sess.run(self.g_min)


def _minimize(
    optimizer: tf.train.Optimizer, loss: tf.Tensor, variables: List[tf.Variable], name: str
) -> tf.Operation:
    # The gradients of each tower are computed where the tower is.
    return optimizer.minimize(loss, var_list=variables, colocate_gradients_with_ops=True, name=name)


def _variables_in(scope: str) -> List[tf.Variable]:
    found = tf.trainable_variables(scope + "/")
    if not found:
        raise ValueError(
            f"There are no trainable variables in the scope {scope!r}: build the network under "
            f'tf.variable_scope("{scope}"), or give collect_variables() the scope that it has.'
        )
    return found


def _cross_entropy(logits: tf.Tensor, is_real: bool) -> tf.Tensor:
    labels = tf.fill(tf.shape(logits), float(is_real))
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
