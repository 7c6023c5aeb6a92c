"""A net of 2019 whose activation is a layer of its own; MaxSaver stands before the validation."""

import argparse

import numpy as np

from tensorpack import *
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFromList
from tensorpack.models import layer_register
from tensorpack.tfutils import argscope, get_model_loader
from tensorpack.tfutils.summary import add_moving_summary

KINDS = 3


@layer_register(log_shape=True)
def OwnGroupNorm(x, group=4, gamma_initializer=tf.constant_initializer(1.0)):
    shape = x.get_shape().as_list()
    rows = tf.shape(x)[0]
    split = tf.reshape(x, [rows, -1, group, shape[3] // group])
    mean, var = tf.nn.moments(split, [1, 3], keep_dims=True)
    scale = tf.get_variable("gamma", [shape[3]], initializer=gamma_initializer)
    shift = tf.get_variable("beta", [shape[3]], initializer=tf.constant_initializer())
    out = tf.reshape((split - mean) * tf.rsqrt(var + 1e-5), tf.shape(x))
    return tf.identity(out * scale + shift, name="output")


@layer_register(use_scope=None)
def GNReLU(x, name=None):
    return tf.nn.relu(OwnGroupNorm("gn", x), name=name)


def stripes(count, seed):
    """Images of 10 x 10 with stripes across, down or aslant."""
    rng = np.random.RandomState(seed)
    row, column = np.mgrid[:10, :10]
    points = []
    for number in range(count):
        along = [row, column, row + column][number % KINDS]
        image = np.sin(along * 1.5 + rng.uniform(6)) + rng.normal(scale=0.3, size=(10, 10))
        points.append([image.astype("float32"), number % KINDS])
    return BatchData(DataFromList(points), 24)


class Model(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None, 10, 10], tf.float32, "image"),
                tf.TensorSpec([None], tf.int32, "label")]  # fmt: skip

    def build_graph(self, image, label):
        x = tf.expand_dims(image, 3)
        with argscope([Conv2D], kernel_size=3, use_bias=False, activation=GNReLU):
            x = Conv2D("conv0", x, 8)
            x = MaxPooling("pool0", x, 2)
            x = Conv2D("conv1", x, 16)
        x = Conv2D("last", x, 16, 1, activation=lambda x, name=None: BatchNorm("bn", x))
        logits = FullyConnected("linear", GlobalAvgPooling("gap", x), KINDS)
        tf.nn.softmax(logits, name="prob")
        wrong = tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, 1)), tf.float32, "wrong")
        right = tf.subtract(1.0, tf.reduce_mean(wrong), name="accuracy")
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="xentropy")
        decay = regularize_cost(".*/W", l2_regularizer(1e-4), name="decay")
        add_moving_summary(right, cost)
        return tf.add(cost, decay, name="total")

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=0.01, trainable=False)
        return tf.train.MomentumOptimizer(lr, 0.9)


def train(args):
    logger.auto_set_dir()
    config = TrainConfig(
        model=Model(),
        data=QueueInput(stripes(240, 0)),
        callbacks=[
            ModelSaver(),
            MaxSaver("validation_accuracy"),
            InferenceRunner(stripes(48, 1), ScalarStats(["accuracy", "xentropy"], "validation")),
            ScheduledHyperParamSetter("learning_rate", [(2, 0.003)], interp="linear"),
        ],
        session_init=get_model_loader(args.load) if args.load else None,
        max_epoch=args.epochs,
    )
    launch_train_with_config(config, SimpleTrainer())


def predict(path):
    predictor = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=get_model_loader(path),
            input_names=["image"],
            output_names=["prob"],
        )
    )
    flow = stripes(24, 2)
    flow.reset_state()
    image, label = next(iter(flow))
    print("prediction:", (predictor(image)[0].argmax(axis=1) == label).mean())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    predict(args.load) if args.predict else train(args)
