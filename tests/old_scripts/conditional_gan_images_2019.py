"""A conditional GAN of 2019 from outlines to filled images.

A net with skips, one crop for both images of a pair, two losses for the generator, images dumped.
"""

import argparse

import cv2
import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.scope_utils import auto_reuse_variable_scope, under_name_scope
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.tfutils.tower import TowerContext, TowerFunc
from tensorpack.utils.viz import stack_patches

SHAPE, LAMBDA = 16, 10.0


@layer_register(log_shape=True)
def Down(x, channels, norm=True):
    x = Conv2D("conv", x, channels, kernel_size=4, strides=2, activation=tf.identity)
    return tf.nn.leaky_relu(InstanceNorm("in", x) if norm else x)


class Model(ModelDesc):
    def inputs(self):
        shape = (None, SHAPE, SHAPE, 1)
        return [tf.TensorSpec(shape, tf.float32, name) for name in ("outline", "filled")]

    def generator(self, outline):
        d1 = Down("down1", outline, 8, norm=False)
        d2 = Down("down2", d1, 16)
        d3 = Down("down3", d2, 16)
        with argscope(Conv2DTranspose, kernel_size=4, strides=2, activation=BNReLU):
            return (
                LinearWrap(d3)
                .Conv2DTranspose("up3", 16)
                .Dropout(rate=0.3)
                .ConcatWith(d2, 3)
                .Conv2DTranspose("up2", 8)
                .ConcatWith(d1, 3)
                .Conv2DTranspose("up1", 1, activation=tf.tanh)()
            )

    @auto_reuse_variable_scope
    def discriminator(self, outline, filled):
        pair = tf.concat([outline, filled], 3)
        return LinearWrap(pair).Down("d1", 8).Down("d2", 8).Conv2D("score", 1, 3)()

    @under_name_scope()
    def losses(self, on_real, on_fake, filled, fake):
        entropy = tf.nn.sigmoid_cross_entropy_with_logits
        real = entropy(labels=tf.ones_like(on_real), logits=on_real)
        made = entropy(labels=tf.zeros_like(on_fake), logits=on_fake)
        self.d_loss = tf.reduce_mean(real + made, name="d_loss")
        fooled = entropy(labels=tf.ones_like(on_fake), logits=on_fake)
        l1 = tf.reduce_mean(tf.abs(filled - fake), name="l1")
        self.g_loss = tf.add(tf.reduce_mean(fooled), LAMBDA * l1, name="g_loss")
        add_moving_summary(self.d_loss, self.g_loss, l1)

    def build_graph(self, outline, filled):
        outline, filled = outline / 127.5 - 1, filled / 127.5 - 1
        with tf.variable_scope("gen"):
            fake = self.generator(outline)
        strip = tf.concat([outline, filled, fake], 2)
        tf.cast(tf.clip_by_value((strip + 1) * 127.5, 0, 255), tf.uint8, name="strip")
        if not self.training:
            tf.reduce_mean(tf.abs(filled - fake), name="difference")
            return
        with tf.variable_scope("discrim"):
            on_real = self.discriminator(outline, filled)
            on_fake = self.discriminator(outline, fake)
        self.losses(on_real, on_fake, filled, fake)
        self.g_vars = tf.trainable_variables("gen")
        self.d_vars = tf.trainable_variables("discrim")

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=2e-3, trainable=False)
        return tf.train.AdamOptimizer(lr, beta1=0.5, epsilon=1e-3)


class PairTrainer(TowerTrainer):
    def __init__(self, data, model):
        super().__init__()
        signature = model.get_input_signature()
        self.register_callback(data.setup(signature))
        self.tower_func = TowerFunc(model.build_graph, signature)
        with TowerContext("", is_training=True):
            self.tower_func(*data.get_input_tensors())
        opt = model.get_optimizer()
        g_min = opt.minimize(model.g_loss, var_list=model.g_vars, name="g_op")
        with tf.control_dependencies([g_min]):
            self.train_op = opt.minimize(model.d_loss, var_list=model.d_vars, name="d_op")


class Shapes(RNGDataFlow):
    """Circles: the outline, and the same filled."""

    def __init__(self, size):
        self.count = size

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            outline, filled = np.zeros((2, 20, 20, 1), dtype="float32")
            at = tuple(int(each) for each in self.rng.randint(6, 14, size=2))
            radius = int(self.rng.randint(3, 6))
            cv2.circle(outline, at, radius, 255, 1)
            cv2.circle(filled, at, radius, 255, -1)
            yield [outline, filled]


def get_data(size):
    ds = Shapes(size)
    augs = [imgaug.RandomCrop(SHAPE), imgaug.Flip(horiz=True)]
    ds = AugmentImageComponents(ds, augs, index=(0, 1))
    return BatchData(ds, 8)


class Draw(Callback):
    """Puts a few results beside what they should be."""

    def _setup_graph(self):
        self.pred = self.trainer.get_predictor(["outline", "filled"], ["strip"])

    def _before_train(self):
        ds = get_data(8)
        ds.reset_state()
        self.batch = next(iter(ds))

    def _trigger(self):
        page = stack_patches(list(self.pred(*self.batch)[0]), nr_row=4, nr_col=2, border=2)
        self.trainer.monitors.put_image("strips", page)


def predict(path):
    config = PredictConfig(
        model=Model(),
        session_init=SmartInit(path),
        input_names=["outline", "filled"],
        output_names=["strip"],
    )
    ds = SimpleDatasetPredictor(config, get_data(16))
    for number, (strips,) in enumerate(ds.get_result()):
        print("prediction:", number, strips.shape, strips.dtype, strips[..., 2 * SHAPE :, :].max())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", help="load model")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict(args.load)
    else:
        logger.auto_set_dir("k")
        PairTrainer(QueueInput(get_data(200)), Model()).train_with_defaults(
            callbacks=[
                ModelSaver(),
                PeriodicTrigger(Draw(), every_k_epochs=1, before_train=True),
                DumpTensorAsImage("strip", prefix="strip", scale=1),
                InferenceRunner(get_data(32), ScalarStats("difference")),
                MinSaver("validation_difference"),
            ],
            session_init=SmartInit(args.load),
            steps_per_epoch=12,
            max_epoch=args.epochs,
        )
