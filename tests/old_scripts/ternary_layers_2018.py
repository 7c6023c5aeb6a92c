"""A copy of a layer of 2018 with ternary weights, whose wrapper renames the old arguments."""

import argparse
from functools import wraps

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.models import layer_register
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary

OLD = {"nl": "activation", "kernel_shape": "kernel_size", "W_init": "kernel_initializer"}


def takes_old_names(names):
    def decorate(func):
        @wraps(func)
        def wrapped(inputs, *args, **kwargs):
            given = dict(zip(names, args))
            given.update((OLD.get(key, key), value) for key, value in kwargs.items())
            given["filters"] = given.pop("out_channel", given.get("filters"))
            return func(inputs, **given)

        return wrapped

    return decorate


@layer_register(log_shape=True)
@takes_old_names(["filters", "kernel_size"])
def TernaryConv(inputs, filters, kernel_size, activation=tf.identity, kernel_initializer=None):
    channels = inputs.get_shape().as_list()[3]
    shape = [kernel_size, kernel_size, channels, filters]
    init = kernel_initializer or tf.contrib.layers.variance_scaling_initializer()
    W = tf.get_variable("W", shape, initializer=init)
    threshold = 0.7 * tf.reduce_mean(tf.abs(W))
    scale = tf.get_variable("scale", [], initializer=tf.constant_initializer(0.1))
    sign = tf.cast(tf.abs(W) > threshold, tf.float32) * tf.sign(W)
    ternary = W + tf.stop_gradient(sign - W)
    return activation(tf.nn.conv2d(inputs, ternary * scale, [1, 1, 1, 1], "SAME"), name="output")


def data(count):
    rng = np.random.RandomState(count)
    points = []
    for number in range(count):
        image = rng.uniform(size=(8, 8, 3)).astype("float32")
        image[..., number % 3] += 0.3
        points.append([image, number % 3])
    return BatchData(DataFromList(points, shuffle=True), 30)


class Model(ModelDesc):
    def inputs(self):
        return [tf.placeholder(tf.float32, (None, 8, 8, 3), "input"),
                tf.placeholder(tf.int32, (None,), "label")]  # fmt: skip

    def build_graph(self, image, label):
        with argscope(TernaryConv, kernel_shape=3, out_channel=16, nl=tf.nn.relu):
            x = TernaryConv("conv0", image - 0.5)
            x = TernaryConv("conv1", x, W_init=tf.truncated_normal_initializer(stddev=0.2))
        logits = FullyConnected("fc", GlobalAvgPooling("gap", x), 3)
        tf.argmax(logits, 1, name="predicted")
        cost = tf.losses.sparse_softmax_cross_entropy(label, logits)
        cost = tf.identity(cost, name="cost")
        accuracy = tf.reduce_mean(tf.to_float(tf.nn.in_top_k(logits, label, 1)), name="accuracy")
        add_moving_summary(cost, accuracy)
        return cost

    def optimizer(self):
        return tf.train.AdamOptimizer(0.01)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        config = PredictConfig(
            model=Model(),
            session_init=get_model_loader(args.load),
            input_names=["input"],
            output_names=["predicted"],
        )
        image = np.zeros((1, 8, 8, 3), "float32")
        image[..., 1] = 0.8
        print("prediction:", OfflinePredictor(config)(image)[0])
    else:
        logger.auto_set_dir()
        config = TrainConfig(
            model=Model(),
            dataflow=data(300),
            callbacks=[
                ModelSaver(max_to_keep=3),
                PeriodicTrigger(
                    InferenceRunner(data(60), [ScalarStats(["cost", "accuracy"])]),
                    every_k_epochs=1,
                ),
            ],
            session_init=get_model_loader(args.load) if args.load else None,
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, SimpleTrainer())
