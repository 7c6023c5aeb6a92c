#!/usr/bin/env python
"""Trains a convolutional network on MNIST that is written in plain TensorFlow.

    python mnist_tfnn.py --download           # or --fake, which needs no files

The graph is made of `tf.get_variable` and `tf.nn` alone: a model that you have already becomes a
`ModelDesc` as it is. `ErrorByDigit` shows how to write a validation of your own.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence

import mnist_data
import numpy as np

import tensorpack as tp
from tensorpack.compat import tfv1 as tf


def weights(shape: Sequence[int]) -> "tf.Variable":
    """A kernel or matrix, initialized as He et al. (2015) propose for rectifiers."""
    init = tf.variance_scaling_initializer(2.0, mode="fan_in")
    return tf.get_variable("weights", shape, initializer=init)


def biases(size: int) -> "tf.Variable":
    return tf.get_variable("biases", [size], initializer=tf.zeros_initializer())


def convolution(name: str, x: "tf.Tensor", filters: int) -> "tf.Tensor":
    """A 3 x 3 convolution and a rectifier, then the maxima of 2 x 2 pixels."""
    with tf.variable_scope(name):
        kernel = weights([3, 3, int(x.shape[3]), filters])
        x = tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME")
        x = tf.nn.relu(tf.nn.bias_add(x, biases(filters)))
        return tf.nn.max_pool2d(x, ksize=2, strides=2, padding="SAME")


def dense(name: str, x: "tf.Tensor", units: int, activation: Callable = tf.identity) -> "tf.Tensor":
    """A matrix product."""
    with tf.variable_scope(name):
        return activation(tf.matmul(x, weights([int(x.shape[1]), units])) + biases(units))


class Model(tp.ModelDesc):
    """Two convolutions, a hidden layer, and a softmax over ten digits."""

    def inputs(self) -> "List[tf.TensorSpec]":
        return [
            tf.TensorSpec([None, 28, 28], tf.float32, "image"),
            tf.TensorSpec([None], tf.int32, "label"),
        ]

    def build_graph(self, image: "tf.Tensor", label: "tf.Tensor") -> "tf.Tensor":
        x = tf.reshape(image, [-1, 28, 28, 1]) * 2 - 1
        x = convolution("conv0", x, 32)
        x = convolution("conv1", x, 64)
        x = dense("hidden", tf.reshape(x, [-1, 7 * 7 * 64]), 256, tf.nn.relu)
        if self.training:  # not where the model is validated
            x = tf.nn.dropout(x, rate=0.5)
        logits = dense("output", x, 10)
        tf.argmax(logits, axis=1, output_type=tf.int32, name="predicted")

        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cost")
        tp.add_moving_summary(cost)
        return cost

    def optimizer(self) -> "tf.train.Optimizer":
        rate = tf.get_variable("learning_rate", initializer=1e-3, trainable=False)
        return tf.train.AdamOptimizer(rate)


class ErrorByDigit(tp.Inferencer):
    """Logs which share of each digit was taken for another one, and of all."""

    def _get_fetches(self) -> List[str]:
        return ["predicted", "label"]

    def _before_inference(self) -> None:
        self.wrong, self.count = np.zeros(10), np.zeros(10)

    def _on_fetches(self, results: Any) -> None:
        predicted, label = results
        self.wrong += np.bincount(label[predicted != label], minlength=10)
        self.count += np.bincount(label, minlength=10)

    def _after_inference(self) -> Dict[str, float]:
        errors = {f"error/{i}": self.wrong[i] / max(self.count[i], 1) for i in range(10)}
        return {"validation_error": self.wrong.sum() / self.count.sum(), **errors}


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Trains, or continues a training."""
    args = mnist_data.parse(__file__, __doc__, argv)
    train, test = mnist_data.get_data(args)
    resume = tp.prepare_log_dir(args.logdir, args.resume)
    config = tp.TrainConfig(
        model=Model(),
        data=tp.QueueInput(train),
        callbacks=[
            tp.ModelSaver(),
            tp.InferenceRunner(test, [tp.ScalarStats("cost"), ErrorByDigit()]),
            tp.ScheduledHyperParamSetter("learning_rate", [(10, 3e-4), (15, 1e-4)]),
        ],
        steps_per_epoch=args.steps_per_epoch or len(train),
        max_epoch=args.max_epoch,
        resume=resume,
    )
    tp.launch_train_with_config(config, tp.SimpleTrainer())


if __name__ == "__main__":
    main()
