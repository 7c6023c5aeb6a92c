#!/usr/bin/env python
"""MNIST of 2016: a chain of layers, an argument scope, files of MNIST, feeding without a queue."""

import argparse
import gzip
import os
import struct

import numpy as np
import tensorflow as tf

from tensorpack import *
import tensorpack.tfutils.symbolic_functions as symbf
from tensorpack.tfutils.summary import *
from tensorpack.tfutils.varmanip import *
from tensorpack.utils.fs import mkdir_p

BATCH_SIZE = 32
SEGMENTS = ["abcefg", "cf", "acdeg", "acdfg", "bcdf", "abdfg", "abdefg", "acf", "abcdefg", "abcdfg"]
BARS = dict(
    zip("adgbcef", [(0, 3, 0, 12), (8, 11, 0, 12), (16, 19, 0, 12), (0, 10, 0, 3), (0, 10, 9, 12)])
)
BARS.update(e=(9, 19, 0, 3), f=(9, 19, 9, 12))


def write_digits(directory, prefix, number):
    """Digits of a pocket calculator, in the files of MNIST."""
    rng = np.random.RandomState(number)
    labels = rng.randint(10, size=number).astype("uint8")
    images = rng.randint(60, size=(number, 28, 28)).astype("uint8")
    for image, label in zip(images, labels):
        y, x = rng.randint(3, 7), rng.randint(5, 11)
        for segment in SEGMENTS[label]:
            y0, y1, x0, x1 = BARS[segment]
            image[y + y0 : y + y1, x + x0 : x + x1] = rng.randint(150, 255)
    for kind, array in [("images-idx3", images), ("labels-idx1", labels)]:
        with gzip.open(os.path.join(directory, "%s-%s-ubyte.gz" % (prefix, kind)), "wb") as f:
            header = (2048 + array.ndim,) + array.shape
            f.write(struct.pack(">%dI" % len(header), *header) + array.tobytes())


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.float32, (None, 28, 28), "input"),
            InputDesc(tf.int32, (None,), "label"),
        ]

    def _build_graph(self, inputs):
        is_training = get_current_tower_context().is_training
        keep_prob = tf.constant(0.7 if is_training else 1.0)
        image, label = inputs
        image = tf.expand_dims(image * 2 - 1, 3)
        with argscope(Conv2D, kernel_shape=3, nl=tf.nn.relu, out_channel=8, padding="VALID"):
            logits = (
                LinearWrap(image)
                .AvgPooling("shrink", 2)
                .Conv2D("conv0")
                .MaxPooling("pool0", 2)
                .Conv2D("conv1", out_channel=16)
                .PReLU("prelu1")
                .apply(symbf.batch_flatten)
                .FullyConnected("fc0", 32, nl=tf.nn.relu)
                .tf.nn.dropout(keep_prob)
                .FullyConnected("fc1", out_dim=10, nl=tf.identity)()
            )
        tf.nn.softmax(logits, name="prob")
        wrong = symbf.prediction_incorrect(logits, label)
        nr_wrong = tf.reduce_sum(wrong, name="wrong")
        train_error = tf.reduce_mean(wrong, name="train_error")

        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cross_entropy_loss")
        wd_cost = tf.multiply(1e-5, regularize_cost("fc.*/W", tf.nn.l2_loss), name="wd")
        self.cost = tf.add_n([cost, wd_cost], name="cost")
        add_moving_summary(cost, wd_cost, self.cost, train_error)
        add_param_summary(("conv.*/W", ["histogram", "rms"]), (".*/alpha", ["mean"]))

    def _get_optimizer(self):
        lr = tf.train.exponential_decay(
            learning_rate=5e-3,
            global_step=get_global_step_var(),
            decay_steps=100,
            decay_rate=0.5,
            staircase=True,
            name="learning_rate",
        )
        tf.summary.scalar("lr", lr)
        return tf.train.AdamOptimizer(lr)


def get_data():
    directory = "mnist_data"
    mkdir_p(directory)
    write_digits(directory, "train", 640)
    write_digits(directory, "t10k", 100)
    train = BatchData(dataset.Mnist("train", dir=directory), BATCH_SIZE)
    test = BatchData(dataset.Mnist("test", shuffle=False, dir=directory), 64, remainder=True)
    return train, test


def get_config(epochs):
    dataset_train, dataset_test = get_data()
    return TrainConfig(
        dataflow=dataset_train,
        callbacks=[
            ModelSaver(),
            InferenceRunner(
                dataset_test, [ScalarStats("cross_entropy_loss"), ClassificationError()]
            ),
        ],
        model=Model(),
        steps_per_epoch=dataset_train.size(),
        max_epoch=epochs,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", help="load model")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        config = PredictConfig(
            model=Model(),
            session_init=SaverRestore(args.load),
            input_names=["input"],
            output_names=["prob"],
        )
        predict = OfflinePredictor(config)
        print("prediction:", predict([np.zeros((2, 28, 28), dtype="float32")])[0].argmax(axis=1))
    else:
        logger.auto_set_dir()
        config = get_config(args.epochs)
        if args.load:
            config.session_init = SaverRestore(args.load)
        SimpleTrainer(config).train()
