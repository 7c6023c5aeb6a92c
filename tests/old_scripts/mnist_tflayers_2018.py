#!/usr/bin/env python
"""MNIST of 2018 with tf.layers: their batch normalisation and dropout, a QueueInput, a schedule."""

import argparse
import os

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow.image import MapDataComponent
from tensorpack.tfutils import summary
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.train.tower import get_current_tower_context

FONT = ["75557", "26227", "71747", "71717", "55711", "74717", "74757", "71111", "75757", "75717"]


class Digits(RNGDataFlow):
    """Digits of 5 x 3 points, each point of 3 x 3 pixels, anywhere in the image."""

    def __init__(self, size, shuffle):
        self._size, self.shuffle = size, shuffle

    def size(self):
        return self._size

    def get_data(self):
        rng = self.rng if self.shuffle else np.random.RandomState(0)
        for _ in range(self._size):
            label = rng.randint(10)
            glyph = [[int(row) >> bit & 1 for bit in (2, 1, 0)] for row in FONT[label]]
            image = rng.randint(80, size=(20, 20)).astype("uint8")
            y, x = rng.randint(5), rng.randint(11)
            image[y : y + 15, x : x + 9] += np.kron(glyph, np.ones((3, 3))).astype("uint8") * 170
            yield [image, label]


class Model(ModelDesc):
    def inputs(self):
        return [
            tf.placeholder(tf.float32, (None, 20, 20), "input"),
            tf.placeholder(tf.int32, (None,), "label"),
        ]

    def build_graph(self, image, label):
        training = get_current_tower_context().is_training
        x = tf.expand_dims(image * 2 - 1, 3)
        for k in range(2):
            x = tf.layers.conv2d(x, 8 << k, 3, padding="same", use_bias=False, name="conv%d" % k)
            x = tf.layers.batch_normalization(x, momentum=0.8, training=training, name="bn%d" % k)
            x = tf.layers.max_pooling2d(tf.nn.relu(x), 2, 2, name="pool%d" % k)
        x = tf.layers.flatten(x)
        x = tf.layers.dense(x, 32, activation=tf.nn.relu, name="fc0")
        x = tf.layers.dropout(x, rate=0.2, training=training)
        logits = tf.layers.dense(x, 10, name="fc1")
        tf.nn.softmax(logits, name="prob")

        correct = tf.to_float(tf.nn.in_top_k(predictions=logits, targets=label, k=1))
        wrong = tf.subtract(1.0, correct, name="incorrect_vector")
        summary.add_moving_summary(tf.reduce_mean(correct, name="accuracy"))
        summary.add_moving_summary(tf.reduce_mean(wrong, name="train_error"), decay=0.9)
        cost = tf.losses.sparse_softmax_cross_entropy(label, logits)
        cost = tf.identity(cost, name="cross_entropy_loss")
        decay = regularize_cost("fc.*/kernel", tf.contrib.layers.l2_regularizer(1e-4), name="decay")
        total = tf.add(cost, decay, name="total_cost")
        summary.add_moving_summary(cost, decay, total)
        summary.add_param_summary((".*/kernel", ["histogram", "rms"]), ("bn./gamma", ["mean"]))
        return total

    def optimizer(self):
        lr = tf.train.cosine_decay(2e-2, get_global_step_var(), decay_steps=200, name="lr")
        tf.summary.scalar("learning_rate", lr)
        return tf.train.AdamOptimizer(lr)


def get_data(size, isTrain):
    ds = Digits(size, shuffle=isTrain)
    ds = MapDataComponent(ds, lambda image: image / 255.0)
    return BatchData(ds, 32, remainder=not isTrain)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", help="load model")
    parser.add_argument("--gpu", help="comma separated list of GPU(s) to use.")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu
    if args.predict:
        pred = OfflinePredictor(
            PredictConfig(
                session_init=SaverRestore(args.load),
                model=Model(),
                input_names=["input"],
                output_names=["prob", "fc0/Relu"],
            )
        )
        for image, label in get_data(50, False).get_data():
            prob, features = pred(image)
            print("prediction:", (prob.argmax(axis=1) == label).mean(), features.shape)
    else:
        logger.auto_set_dir()
        train, test = get_data(640, True), get_data(100, False)
        config = TrainConfig(
            model=Model(),
            data=QueueInput(train),
            callbacks=[
                ModelSaver(max_to_keep=2),
                InferenceRunner(
                    test,
                    [ScalarStats(["cross_entropy_loss", "accuracy"]), ClassificationError()],
                ),
                MaxSaver("validation_accuracy"),
                GPUUtilizationTracker([0])
                if args.gpu
                else HookToCallback(tf.train.StepCounterHook()),
            ],
            extra_callbacks=[
                MovingAverageSummary(),
                ProgressBar(["train_error"]),
                MergeAllSummaries(),
                RunUpdateOps(),
            ],
            session_init=SaverRestore(args.load) if args.load else None,
            steps_per_epoch=train.size(),
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, SimpleTrainer())
