"""A GAN of 2017 with two trainers of its own: both nets in one step, or one net a step.

Trains points on a ring. A run that goes on from a checkpoint uses the second trainer.
"""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils import symbolic_functions as symbf
from tensorpack.tfutils.summary import add_moving_summary

NOISE, BATCH = 4, 32


class GANModelDesc(ModelDesc):
    """What both trainers need: losses, and the variables of either side."""

    def collect_variables(self, g_scope="gen", d_scope="discrim"):
        everything = tf.trainable_variables()
        self.g_vars = [v for v in everything if v.op.name.startswith(g_scope)]
        assert self.g_vars
        self.d_vars = [v for v in everything if v.op.name.startswith(d_scope)]
        assert self.d_vars

    def build_losses(self, real, fake):
        loss = tf.losses.sigmoid_cross_entropy
        with tf.name_scope("losses"):
            on_real = loss(tf.ones_like(real), real, label_smoothing=0.2)
            on_fake = loss(tf.zeros_like(fake), fake)
            self.d_loss = tf.add(on_real, on_fake, name="d_loss")
            self.g_loss = tf.identity(loss(tf.ones_like(fake), fake), name="g_loss")
        caught = tf.reduce_mean(tf.cast(fake < 0, tf.float32), name="caught")
        add_moving_summary(self.g_loss, self.d_loss, caught)


class Model(GANModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.float32, (None, 2), "point"),
            InputDesc(tf.float32, (None, NOISE), "z"),
        ]

    def generator(self, z):
        with argscope(FullyConnected, nl=BNReLU):
            hidden = FullyConnected("fc0", z, 24)
            hidden = FullyConnected("fc1", hidden, 24)
        return FullyConnected("points", hidden, 2, nl=tf.identity)

    @auto_reuse_variable_scope
    def discriminator(self, points):
        return (
            LinearWrap(points)
            .FullyConnected("fc0", 24, nl=tf.identity)
            .LeakyReLU("leak0", 0.2)
            .FullyConnected("fc1", out_dim=24, nl=tf.nn.elu)
            .FullyConnected("logit", 1, nl=tf.identity)()
        )

    def _build_graph(self, inputs):
        real, z = inputs
        with argscope(FullyConnected, W_init=tf.truncated_normal_initializer(stddev=0.3)):
            with tf.variable_scope("gen"):
                fake = self.generator(z)
            tf.identity(fake, name="made")
            with tf.variable_scope("discrim"):
                logits_real = self.discriminator(real)
                logits_fake = self.discriminator(fake)
        self.build_losses(logits_real, logits_fake)
        self.collect_variables()
        add_param_summary(("gen/.*/W", ["histogram", "rms"]))

    def get_two_optimizers(self):
        lr = symbf.get_scalar_var("learning_rate", 2e-3, summary=True)
        return tf.train.AdamOptimizer(lr, beta1=0.5), tf.train.RMSPropOptimizer(lr)


class BothTrainer(FeedfreeTrainerBase):
    """Each step updates both."""

    def __init__(self, config):
        self._input_source = QueueInput(config.dataflow)
        super(BothTrainer, self).__init__(config)

    def _setup(self):
        super(BothTrainer, self)._setup()
        with TowerContext("", is_training=True):
            self.model.build_graph(self._input_source)
        g_opt, d_opt = self.model.get_two_optimizers()
        self.g_min = g_opt.minimize(self.model.g_loss, var_list=self.model.g_vars, name="g_op")
        self.d_min = d_opt.minimize(self.model.d_loss, var_list=self.model.d_vars, name="d_op")
        self.train_op = tf.group(self.g_min, self.d_min, name="both")


class TurnsTrainer(BothTrainer):
    """The discriminator has `ratio` steps for each of the generator."""

    def __init__(self, config, ratio=3):
        super(TurnsTrainer, self).__init__(config)
        self._ratio = ratio

    def run_step(self):
        turn = self.global_step % (self._ratio + 1)
        self.hooked_sess.run(self.g_min if turn == self._ratio else self.d_min)


class Ring(RNGDataFlow):
    def size(self):
        return 640

    def get_data(self):
        for _ in range(self.size()):
            angle = self.rng.uniform(0, 2 * np.pi)
            yield [np.array([np.cos(angle), np.sin(angle)]), self.rng.uniform(-1, 1, NOISE)]


def get_config(epochs):
    logger.auto_set_dir()
    return TrainConfig(
        model=Model(),
        dataflow=BatchData(PrefetchData(Ring(), 10, 1), BATCH),
        callbacks=[
            PeriodicTrigger(ModelSaver(), every_k_epochs=1),
            ScheduledHyperParamSetter("learning_rate", [(1, 1e-3), (10, 1e-4)]),
        ],
        session_config=get_default_sess_config(0.5),
        steps_per_epoch=20,
        max_epoch=epochs,
    )


def sample(path):
    pred = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=get_model_loader(path),
            input_names=["z"],
            output_names=["made"],
        )
    )
    points = pred([np.random.uniform(-1, 1, (5, NOISE))])[0]
    print("prediction:", np.linalg.norm(points, axis=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        sample(args.load)
    else:
        config = get_config(args.epochs)
        if args.load:
            config.session_init = SaverRestore(args.load)
            TurnsTrainer(config, ratio=2).train()
        else:
            BothTrainer(config).train()
