"""Clouds of points of 2018: convolutions over single points, one maximum over all of them.

Points are turned and shaken by functions of one component, in other processes.
"""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.summary import add_moving_summary, add_param_summary
from tensorpack.tfutils.symbolic_functions import *

POINTS, CLASSES = 32, 3


class Clouds(RNGDataFlow):
    """Points on a ball, a cube or a disc."""

    def __init__(self, count, shuffle=True):
        self.count, self.shuffle = count, shuffle

    def __len__(self):
        return self.count

    def __iter__(self):
        rng = self.rng if self.shuffle else np.random.RandomState(42)
        for _ in range(self.count):
            label = rng.randint(CLASSES)
            points = rng.normal(size=(POINTS, 3))
            if label == 2:
                points[:, 2] = 0
            norm = np.abs(points).max(1) if label == 1 else np.linalg.norm(points, axis=1)
            yield [(points / norm[:, None]).astype("float32"), label]


def turn(points):
    angle = np.random.uniform(0, 2 * np.pi)
    c, s = np.cos(angle), np.sin(angle)
    return np.dot(points, np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]], dtype="float32"))


class Shake(object):
    def __init__(self, sigma, drop):
        self.sigma, self.drop = sigma, drop

    def __call__(self, points):
        points = points + np.random.normal(size=points.shape) * self.sigma
        lost = np.random.rand(len(points)) < np.random.rand() * self.drop
        points[lost] = points[0]
        return points.astype("float32")


def get_data(train):
    ds = Clouds(600 if train else 90, shuffle=train)
    if not train:
        return BatchData(ds, 30, remainder=True)
    ds = MapDataComponent(ds, turn, 0)
    ds = MapDataComponent(ds, Shake(0.02, 0.3))
    ds = MapData(ds, lambda dp: None if len(np.unique(dp[0][:, 0])) < 4 else dp)
    ds = PrefetchDataZMQ(ds, 2)
    return BatchData(ds, 24)


@layer_register(use_scope=True)
def Alignment(points, size):
    """A matrix for each cloud, near to the identity, that its points are multiplied with."""
    x = Conv2D("conv", tf.expand_dims(points, 2), 16, 1)
    x = tf.reduce_max(x, axis=[1, 2])
    zero = tf.zeros_initializer()
    x = FullyConnected("fc", x, size * size, activation=tf.identity, kernel_initializer=zero)
    matrix = tf.reshape(x, [-1, size, size]) + tf.eye(size)
    return tf.matmul(points, matrix, name="output")


class Model(ModelDesc):
    def __init__(self, keep):
        super(Model, self).__init__()
        self.keep = keep

    def inputs(self):
        return [
            tf.placeholder(tf.float32, (None, POINTS, 3), "points"),
            tf.placeholder(tf.int32, (None,), "label"),
        ]

    def build_graph(self, points, label):
        is_training = get_current_tower_context().is_training
        with argscope([Conv2D, FullyConnected], activation=BNReLU), argscope(
            Conv2D, padding="VALID", use_bias=False
        ), argscope(BatchNorm, momentum=0.8):
            aligned = Alignment("align", points, 3)
            tower = (
                LinearWrap(tf.expand_dims(aligned, -1))
                .Conv2D("conv1", 16, [1, 3])
                .Conv2D("conv2", 32, kernel_size=(1, 1))
                .MaxPooling("pool", [POINTS, 1], strides=[POINTS, 1])
                .FullyConnected("fc1", 24)()
            )
        tower = tf.layers.dropout(tower, 1 - self.keep, training=is_training)
        logits = FullyConnected("logits", tower, CLASSES)
        tf.nn.softmax(logits, name="prob")
        wrong = prediction_incorrect(logits, label, name="wrong")
        add_moving_summary(tf.reduce_mean(wrong, name="train_error"))
        cost = tf.losses.sparse_softmax_cross_entropy(label, logits)
        cost = tf.identity(cost, name="xentropy")
        cost = tf.add_n([cost, regularize_cost(".*/W", l2_regularizer(1e-4), name="wd")], "cost")
        add_moving_summary(cost)
        add_param_summary((".*/W", ["histogram", "sparsity"]))
        return cost

    def optimizer(self):
        lr = tf.get_variable("learning_rate", (), trainable=False)
        tf.summary.scalar("lr", lr)
        return tf.train.AdamOptimizer(lr)


def get_config(args):
    return TrainConfig(
        model=Model(keep=0.8),
        dataflow=get_data(True),
        callbacks=[
            ModelSaver(),
            HyperParamSetterWithFunc("learning_rate", lambda e, x: 0.01 * 0.9**e),
            InferenceRunner(get_data(False), [ClassificationError("wrong"), ScalarStats("cost")]),
            MinSaver("validation_error"),
            RunOp(lambda: tf.Print(0, [0], "an epoch is over").op, run_before=False),
        ],
        session_init=get_model_loader(args.load) if args.load else None,
        steps_per_epoch=20,
        max_epoch=args.epochs,
    )


def predict(path):
    pred = OfflinePredictor(
        PredictConfig(
            model=Model(1.0),
            session_init=get_model_loader(path),
            input_names=["points"],
            output_names=["prob"],
        )
    )
    ds = get_data(False)
    ds.reset_state()
    right = RatioCounter()
    for points, label in ds:
        right.feed((pred(points)[0].argmax(1) == label).sum(), len(label))
    print("prediction:", right.ratio)


if __name__ == "__main__":
    from tensorpack.utils.stats import RatioCounter

    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict(args.load)
    else:
        logger.auto_set_dir()
        launch_train_with_config(get_config(args), SyncMultiGPUTrainerReplicated([0]))
