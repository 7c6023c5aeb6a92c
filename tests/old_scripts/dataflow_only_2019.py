"""Only the data half, of 2019: files are written and read, a plain session is fed by hand."""

import argparse
import json
import os
import tempfile

import numpy as np
import tensorflow as tf

from tensorpack.dataflow import *
from tensorpack.utils import logger
from tensorpack.utils.utils import get_rng

LOG = os.path.join("train_log", "dataflow_only_2019")


class Rows(RNGDataFlow):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        for number in range(self.count):
            yield {"x": self.rng.normal(loc=number % 2, size=5).astype("float32"), "y": number % 2}


def write(folder):
    rows = MapData(Rows(200), lambda dp: [dp["x"], dp["y"]])
    TFRecordSerializer.save(rows, os.path.join(folder, "train.tfrecords"))
    LMDBSerializer.save(rows, os.path.join(folder, "val.lmdb"))


def read(folder, train):
    if train:
        ds = TFRecordSerializer.load(os.path.join(folder, "train.tfrecords"), size=200)
        ds = LocallyShuffleData(ds, 64)
        ds = MapDataComponent(ds, lambda x: x + get_rng(None).normal(scale=0.01, size=5), 0)
    else:
        ds = LMDBSerializer.load(os.path.join(folder, "val.lmdb"), shuffle=False)
    assert hasattr(dataset, "Mnist") and hasattr(imgaug, "Flip")
    ds = BatchData(ds, 20)
    TestDataSpeed(ds, size=5).start()
    return PrintData(ds, num=1)


def build():
    x = tf.placeholder(tf.float32, [None, 5], "x")
    y = tf.placeholder(tf.float32, [None], "y")
    w = tf.get_variable("w", [5], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
    logits = tf.reduce_sum(x * w, 1) + b
    cost = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=y)
    cost = tf.reduce_mean(cost, name="cost")
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.05).minimize(cost, global_step=step)
    return x, y, tf.sigmoid(logits), cost, step, train_op


def main(args):
    x, y, prob, cost, step, train_op = build()
    saver = tf.train.Saver()
    with tf.Session() as sess, tempfile.TemporaryDirectory() as folder:
        sess.run(tf.global_variables_initializer())
        if args.load:
            saver.restore(sess, tf.train.latest_checkpoint(os.path.dirname(args.load)))
            logger.info("Start with global_step={}".format(sess.run(step)))
        if args.predict:
            print("prediction:", sess.run(prob, {x: np.ones((1, 5))}))
            return
        logger.set_logger_dir(LOG + ("-more" if args.load else ""), "d")
        write(folder)
        train, val = read(folder, True), read(folder, False)
        train.reset_state()
        val.reset_state()
        stats = []
        for epoch in range(1, args.epochs + 1):
            for dp in train:
                sess.run(train_op, {x: dp[0], y: dp[1]})
            costs = [sess.run(cost, {x: dp[0], y: dp[1]}) for dp in val]
            now = int(sess.run(step))
            stats.append({"epoch_num": epoch, "global_step": now, "cost": float(np.mean(costs))})
            saver.save(sess, os.path.join(logger.get_logger_dir(), "model"), global_step=step)
        with open(os.path.join(logger.get_logger_dir(), "stats.json"), "w") as f:
            json.dump(stats, f)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    main(parser.parse_args())
