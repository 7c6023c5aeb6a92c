"""A GAN of 2018 with a critic: a TowerTrainer with two update ops, weights that are clipped."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.tfutils.tower import TowerContext, TowerFuncWrapper
from tensorpack.utils.globvars import globalns as opt, use_global_argument

opt.SIZE = 8
opt.Z_DIM = 6


class Model(ModelDesc):
    def inputs(self):
        return [
            tf.placeholder(tf.uint8, (None, opt.SIZE, opt.SIZE), "image"),
            tf.placeholder(tf.float32, (None, opt.Z_DIM), "z"),
        ]

    def generator(self, z):
        quarter = opt.SIZE // 4
        x = FullyConnected("fc", z, 16 * quarter * quarter, activation=tf.nn.relu)
        x = tf.reshape(x, [-1, quarter, quarter, 16])
        x = Conv2DTranspose("up1", x, 8, 4, strides=2, activation=BNReLU)
        return Conv2DTranspose("up2", x, 1, 4, strides=2, activation=tf.tanh)

    @auto_reuse_variable_scope
    def critic(self, images):
        with argscope(Conv2D, kernel_size=3, strides=2, activation=tf.nn.leaky_relu):
            x = Conv2D("conv1", images, 8)
            x = Conv2D("conv2", x, 16)
        return FullyConnected("score", x, 1)

    def build_graph(self, image, z):
        real = tf.expand_dims(tf.cast(image, tf.float32) / 128.0 - 1, 3)
        normal = tf.truncated_normal_initializer(stddev=0.05)
        with argscope([Conv2D, Conv2DTranspose, FullyConnected], kernel_initializer=normal):
            with tf.variable_scope("gen"):
                fake = self.generator(z)
            with tf.variable_scope("critic"):
                on_real, on_fake = self.critic(real), self.critic(fake)
        tf.identity((fake + 1) * 128, name="picture")
        tf.summary.image("made", fake, max_outputs=4)
        self.d_loss = tf.reduce_mean(on_fake - on_real, name="d_loss")
        self.g_loss = tf.negative(tf.reduce_mean(on_fake), name="g_loss")
        add_moving_summary(self.d_loss, self.g_loss)

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=5e-3, trainable=False)
        tf.summary.scalar("learning_rate-summary", lr)
        return tf.train.RMSPropOptimizer(lr)


class CriticTrainer(TowerTrainer):
    """`critics` updates of the critic in each step, then one of the generator."""

    def __init__(self, input, model, critics=2):
        super(CriticTrainer, self).__init__()
        inputs_desc = model.get_inputs_desc()
        for cb in input.setup(inputs_desc):
            self.register_callback(cb)
        self.tower_func = TowerFuncWrapper(model.build_graph, inputs_desc)
        with TowerContext("", is_training=True):
            self.tower_func(*input.get_input_tensors())
        self._critics = critics

        sgd = model.get_optimizer()
        clipped = optimizer.VariableAssignmentOptimizer(
            sgd, lambda v: tf.clip_by_value(v, -0.1, 0.1)
        )
        with tf.name_scope("optimize"):
            of = tf.GraphKeys.TRAINABLE_VARIABLES
            self.d_min = clipped.minimize(
                model.d_loss, var_list=tf.get_collection(of, "critic"), name="d_min"
            )
            self.g_min = sgd.minimize(
                model.g_loss, var_list=tf.get_collection(of, "gen"), name="g_min"
            )
        self.train_op = self.g_min

    def run_step(self):
        for _ in range(self._critics):
            self.hooked_sess.run(self.d_min)
        self.hooked_sess.run(self.train_op)


def bars():
    """Images with one bright bar in each, and noise."""
    rng = np.random.RandomState(0)
    for _ in range(500):
        image = np.zeros((opt.SIZE, opt.SIZE), dtype="uint8")
        image[:, rng.randint(opt.SIZE - 1) :][:, :2] = 255
        yield [image if rng.rand() < 0.5 else image.T, rng.normal(size=opt.Z_DIM)]


def get_data():
    ds = CacheData(DataFromGenerator(bars, 500), shuffle=True)
    return PrefetchDataZMQ(BatchData(ds, 16), nr_proc=1)


def sample(path):
    predictor = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=get_model_loader(path),
            input_names=["z"],
            output_names=["picture", "gen/fc/output"],
        )
    )
    pictures, hidden = predictor(np.random.normal(size=(4, opt.Z_DIM)))
    viz = stack_patches(pictures.clip(0, 255).astype("uint8"), nr_row=2, nr_col=2, border=1)
    print("prediction:", pictures.shape, viz.shape, hidden.shape)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    use_global_argument(args)
    if args.predict:
        from tensorpack.utils.viz import stack_patches

        sample(args.load)
    else:
        logger.auto_set_dir()
        trainer = CriticTrainer(QueueInput(get_data()), Model())
        trainer.train_with_defaults(
            callbacks=[
                ModelSaver(max_to_keep=3),
                HyperParamSetterWithFunc("learning_rate", lambda epoch, old: old * 0.95),
            ],
            session_init=SaverRestore(args.load) if args.load else None,
            steps_per_epoch=10,
            max_epoch=opt.epochs,
        )
