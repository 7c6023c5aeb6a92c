#!/usr/bin/env python
"""MNIST of 2018: layers of tensorpack in an argscope, data_format, steps that are given."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow import BatchData, DataFromList, MapData, PrefetchDataZMQ
from tensorpack.tfutils.summary import add_moving_summary, add_param_summary, add_tensor_summary
from tensorpack.utils.gpu import get_num_gpu

FONT = ["75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717"]


def digits(count, seed):
    rng = np.random.RandomState(seed)
    found = []
    for _ in range(count):
        label = rng.randint(10)
        glyph = np.array([[int(row) >> bit & 1 for bit in (2, 1, 0)] for row in FONT[label]])
        image = rng.randint(60, size=(16, 16)).astype("uint8")
        y, x = rng.randint(2), rng.randint(8)
        image[y : y + 15, x : x + 9] += np.kron(glyph, np.ones((3, 3))).astype("uint8") * 190
        found.append([image, label])
    return found


class Model(ModelDesc):
    def inputs(self):
        return [
            tf.placeholder(tf.uint8, (None, 16, 16), "input"),
            tf.placeholder(tf.int32, (None,), "label"),
        ]

    def build_graph(self, image, label):
        image = tf.expand_dims(tf.cast(image, tf.float32) / 128.0 - 1, 3)
        with argscope([Conv2D, MaxPooling], data_format="channels_last"), argscope(
            Conv2D, kernel_size=3, activation=tf.nn.relu, filters=12
        ):
            x = Conv2D("conv0", image)
            x = MaxPooling("pool0", x, 2, strides=2)
            x = Conv2D("conv1", x, padding="valid", use_bias=False)
            x = BatchNorm("bn", x)
            x = MaxPooling("pool1", x, 2)
        x = FullyConnected("fc0", x, units=32, activation=tf.nn.relu)
        x = Dropout("dropout", x, rate=0.1)
        logits = FullyConnected("fc1", x, units=10, activation=tf.identity)
        tf.nn.softmax(logits, name="prob")
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cross_entropy_loss")
        right = tf.cast(tf.nn.in_top_k(logits, label, 1), tf.float32)
        tf.subtract(1.0, right, name="incorrect")
        accuracy = tf.reduce_mean(right, name="accuracy")
        add_tensor_summary(x, ["sparsity"], name="fc0", main_tower_only=True)
        decay = tf.multiply(1e-5, regularize_cost("fc.*/W", tf.nn.l2_loss), name="regularize_loss")
        total = tf.add_n([decay, cost], name="total_cost")
        add_moving_summary(cost, decay, total, accuracy)
        add_param_summary((".*/W", ["histogram", "rms"]))
        return total

    def optimizer(self):
        lr = tf.train.exponential_decay(
            learning_rate=1e-2,
            global_step=get_global_step_var(),
            decay_steps=50,
            decay_rate=0.9,
            staircase=True,
            name="learning_rate",
        )
        tf.summary.scalar("lr", lr)
        return tf.train.AdamOptimizer(lr)


def get_data(count, is_train):
    ds = DataFromList(digits(count, int(is_train)), shuffle=is_train)
    if is_train:
        ds = MapData(ds, lambda dp: [np.clip(dp[0] + 4.0, 0, 255).astype("uint8"), dp[1]])
        ds = PrefetchDataZMQ(ds, 1)
    return BatchData(ds, 32, remainder=not is_train)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = OfflinePredictor(PredictConfig(
            session_init=get_model_loader(args.load), model=Model(),
            input_names=["input"], output_names=["prob"]))  # fmt: skip
        image, label = digits(1, 9)[0]
        print("prediction:", predictor(image[np.newaxis])[0].argmax(), "of", label)
    else:
        logger.auto_set_dir("k")
        config = TrainConfig(
            model=Model(),
            dataflow=get_data(640, True),
            callbacks=[
                ModelSaver(),
                InferenceRunner(
                    get_data(100, False),
                    [ScalarStats(["total_cost", "accuracy"]), ClassificationError("incorrect")],
                ),
                MaxSaver("validation_accuracy"),
                MergeAllSummaries(period=10),
                EstimatedTimeLeft(),
            ],
            steps_per_epoch=20,
            max_epoch=args.epochs,
            session_init=get_model_loader(args.load) if args.load else None,
        )
        trainer = SyncMultiGPUTrainerReplicated(2) if get_num_gpu() > 1 else SimpleTrainer()
        launch_train_with_config(config, trainer)
