"""The model and the data that other examples import: in which quadrants is a point?"""

import numpy as np

import tensorpack as tp
from tensorpack.compat import tfv1 as tf

__all__ = ["Classifier", "batches", "train"]


class Classifier(tp.ModelDesc):
    """A hidden layer, and a learning rate that callbacks can set."""

    def inputs(self):
        return [
            tf.TensorSpec([None, 2], tf.float32, "point"),
            tf.TensorSpec([None], tf.int32, "label"),
        ]

    def build_graph(self, point, label):
        hidden = tp.FullyConnected("hidden", point, 16, activation=tf.nn.relu)
        logits = tp.FullyConnected("logits", hidden, 2)
        tf.nn.softmax(logits, name="probability")
        wrong = tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, 1)), tf.float32, name="wrong")
        cost = tf.losses.sparse_softmax_cross_entropy(label, logits)
        tp.add_moving_summary(tf.identity(cost, "cost"), tf.reduce_mean(wrong, name="error"))
        return cost

    def optimizer(self):
        rate = tf.get_variable("learning_rate", initializer=0.01, trainable=False)
        return tf.train.AdamOptimizer(rate)


def batches(number=20, seed=0):
    """A dataflow of `number` batches of 32 points and their labels."""
    points = np.random.RandomState(seed).uniform(-1, 1, size=(32 * number, 2)).astype("float32")
    labelled = [[point, int(point[0] * point[1] > 0)] for point in points]
    return tp.BatchData(tp.DataFromList(labelled), 32)


def train(callbacks=(), max_epoch=2, log_dir="train_log/points"):
    """Trains the model with these callbacks, in a graph of its own."""
    tp.logger.set_logger_dir(log_dir, action="d")
    with tf.Graph().as_default():
        config = tp.TrainConfig(
            model=Classifier(),
            data=tp.QueueInput(batches()),
            callbacks=list(callbacks),
            max_epoch=max_epoch,
        )
        tp.launch_train_with_config(config, tp.SimpleTrainer())
