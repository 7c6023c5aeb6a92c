#!/usr/bin/env python
"""MNIST of 2018 with slim: its argument scope, collections and batch normalisation; a runner of
processes, a callback that is given by its functions."""

import argparse

import numpy as np
import tensorflow as tf
from tensorflow.contrib import slim

from tensorpack import *
from tensorpack.dataflow import dataset
from tensorpack.tfutils.collection import backup_collection, restore_collection
from tensorpack.tfutils.summary import add_activation_summary, add_moving_summary
from tensorpack.utils.utils import get_rng

SIZE = 14


def draw(label, rng):
    """A digit is as many dots as it says."""
    image = np.zeros((SIZE, SIZE), dtype="float32")
    places = rng.permutation(16)[:label]
    for y, x in zip(places // 4 * 3 + 1, places % 4 * 3 + 1):
        image[y : y + 2, x : x + 2] = rng.uniform(0.6, 1)
    return image + rng.uniform(0, 0.2, image.shape)


def generate(seed, number):
    def gen():
        rng = get_rng() if seed is None else np.random.RandomState(seed)
        for _ in range(number):
            label = rng.randint(10)
            yield [draw(label, rng), label]

    return gen


def get_data():
    train = BatchData(FixedSizeData(DataFromGenerator(generate(None, 600)), 600), 40)
    train = PrefetchDataZMQ(train, nr_proc=1)
    test = DataFromList(list(generate(3, 120)()), shuffle=False)
    return train, BatchData(test, 60, remainder=True)


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.float32, (None, SIZE, SIZE), "input"),
            InputDesc(tf.int32, (None,), "label"),
        ]

    def _build_graph(self, inputs):
        image, label = inputs
        image = tf.expand_dims(image, 3)
        is_training = get_current_tower_context().is_training
        with slim.arg_scope(
            [slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(1e-5)
        ), slim.arg_scope([slim.batch_norm], is_training=is_training, decay=0.8):
            l = slim.conv2d(image, 8, [2, 2], normalizer_fn=slim.batch_norm, scope="conv0")
            l = slim.repeat(l, 2, slim.conv2d, 8, [3, 3], scope="conv1")
            l = slim.max_pool2d(l, [2, 2], scope="pool0")
            l = slim.flatten(l, scope="flatten")
            l = slim.fully_connected(l, 48, scope="fc0")
            l = slim.dropout(l, 0.9, is_training=is_training)
            logits = slim.fully_connected(l, 10, activation_fn=None, scope="fc1")
        add_activation_summary(logits, types=["rms"])
        tf.nn.softmax(logits, name="prob")

        wrong = tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, 1)), tf.float32, name="wrong")
        add_moving_summary(tf.reduce_mean(wrong, name="train_error"))
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        loss = tf.reduce_mean(loss, name="loss")
        if is_training:
            backup = backup_collection([tf.GraphKeys.SUMMARIES])
            tf.summary.histogram("not-wanted", logits)
            restore_collection(backup)
        self.cost = tf.add(loss, regularize_cost_from_collection(), name="cost")
        add_moving_summary(self.cost, loss)

    def _get_optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=5e-3, trainable=False)
        tf.summary.scalar("learning_rate", lr)
        return tf.train.AdamOptimizer(lr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", help="load model")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        session_init = get_model_loader(args.load)
        pred = PredictConfig(Model(), session_init=session_init, output_names=["prob"])
        pred.input_names = ["input"]
        prob = OfflinePredictor(pred)(np.stack([draw(k, get_rng()) for k in range(10)]))[0]
        print("prediction:", prob.argmax(axis=1))
        return
    logger.auto_set_dir()
    train, test = get_data()
    config = TrainConfig(
        model=Model(),
        dataflow=train,
        callbacks=[
            ModelSaver(),
            InferenceRunner(test, [ScalarStats("loss"), ClassificationError("wrong")]),
            CallbackFactory(
                before_train=lambda self: logger.info("of %d steps" % self.trainer.steps_per_epoch),
                trigger=lambda self: self.trainer.monitors.put_scalar("epoch", self.epoch_num),
            ),
        ],
        steps_per_epoch=15,
        max_epoch=args.epochs,
    )
    if args.load:
        config.session_init = SaverRestore(args.load)
    launch_train_with_config(config, SimpleTrainer())


if __name__ == "__main__":
    main()
