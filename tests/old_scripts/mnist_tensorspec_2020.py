#!/usr/bin/env python
"""MNIST of 2020: tf.TensorSpec, compat.tfv1, MultiProcessMapData, callbacks of release 0.11."""

import argparse
import os

import numpy as np

from tensorpack.callbacks import *
from tensorpack.compat import tfv1 as tf
from tensorpack.compat import is_tfv2
from tensorpack.dataflow import BatchData, DataFlow, MultiProcessMapData, imgaug
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import QueueInput, StagingInput
from tensorpack.models import *
from tensorpack.predict import OfflinePredictor, PredictConfig
from tensorpack.tfutils import SmartInit, argscope, optimizer, gradproc, summary
from tensorpack.train import SimpleTrainer, TrainConfig, launch_train_with_config
from tensorpack.utils import logger
from tensorpack.utils.gpu import get_num_gpu

FONT = ["75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717"]
SIDE = 18


class Digits(DataFlow):
    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def __iter__(self):
        rng = np.random.RandomState(self.seed)
        for _ in range(self.count):
            label = rng.randint(10)
            glyph = np.array([[int(row) >> bit & 1 for bit in (2, 1, 0)] for row in FONT[label]])
            image = np.zeros((SIDE, SIDE), "uint8")
            y, x = rng.randint(1, 4, size=2)
            image[y : y + 15, x : x + 12] = np.kron(glyph, np.full((3, 4), 255))
            yield image, label


def get_data(count, is_train):
    ds = Digits(count, int(is_train))
    if is_train:
        aug = imgaug.AugmentorList([imgaug.Brightness(20), imgaug.GaussianNoise(2, clip=True)])

        def augment(dp):
            image, label = dp
            return aug.augment(image.astype("float32")).astype("uint8"), label

        ds = MultiProcessMapData(ds, 2, augment, buffer_size=32, strict=True)
    return BatchData(ds, 32, remainder=not is_train, use_list=False)


class Model(ModelDesc):
    def inputs(self):
        return [
            tf.TensorSpec((None, SIDE, SIDE), tf.uint8, "input"),
            tf.TensorSpec((None,), tf.int64, "label"),
        ]

    def build_graph(self, image, label):
        if is_tfv2():
            logger.info("Graph mode of TensorFlow {}".format(tf.__version__))
        image = tf.expand_dims(tf.cast(image, tf.float32), -1) / 255.0 - 0.5
        init = tf.variance_scaling_initializer(2.0, "fan_out", "untruncated_normal")
        with argscope(Conv2D, kernel_size=3, activation=BNReLU, kernel_initializer=init):
            x = Conv2D("conv0", image, 12, strides=2)
            x = Conv2D("conv1", x, 16, strides=2)
        x = GlobalAvgPooling("gap", tf.concat([x, tf.square(x)], axis=-1))
        logits = FullyConnected("linear", x, 10)
        tf.nn.softmax(logits, name="prob")
        cost = tf.losses.sparse_softmax_cross_entropy(label, logits)
        wrong = tf.cast(
            tf.not_equal(tf.argmax(logits, 1), label), tf.float32, name="incorrect_vector"
        )
        summary.add_moving_summary(cost, tf.reduce_mean(wrong, name="train_error"))
        decay = regularize_cost(".*/W", tf.keras.regularizers.l2(1e-5), name="decay")
        return tf.add(cost, decay, name="total_cost")

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=tf.constant(0.01), trainable=False)
        summary.add_moving_summary(tf.identity(lr, name="lr"))
        opt = tf.train.AdamOptimizer(lr)
        return optimizer.apply_grad_processors(
            opt, [gradproc.GlobalNormClip(5.0), gradproc.SummaryGradient()]
        )


def main(args):
    logger.set_logger_dir(os.path.join("train_log", "mnist_tensorspec_2020"), action="k")
    data = QueueInput(get_data(640, True))
    config = TrainConfig(
        model=Model(),
        data=StagingInput(data) if get_num_gpu() else data,
        callbacks=[
            PeriodicCallback(ModelSaver(max_to_keep=3), every_k_epochs=1),
            InferenceRunner(
                get_data(100, False),
                [ScalarStats("total_cost"), ClassificationError(summary_name="validation_error")],
            ),
            MinSaver("validation_error"),
            EnableCallbackIf(GPUUtilizationTracker(), lambda self: get_num_gpu() > 0),
            ScheduledHyperParamSetter("learning_rate", [(1, 0.01), (2, 0.003)]),
            CheckNumerics(),
            SessionRunTimeout(60000),
        ],
        steps_per_epoch=20,
        max_epoch=args.epochs,
        session_init=SmartInit(args.load, ignore_mismatch=True),
    )
    launch_train_with_config(config, SimpleTrainer())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = OfflinePredictor(
            PredictConfig(
                model=Model(),
                session_init=SmartInit(args.load),
                input_names=["input"],
                output_names=["prob"],
            )
        )
        image, label = next(iter(Digits(1, 7)))
        print("prediction:", predictor(image[np.newaxis])[0].argmax(), "of", label)
    else:
        main(args)
