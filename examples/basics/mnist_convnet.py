#!/usr/bin/env python
"""Trains a convolutional network on MNIST, with layers, validation, and an end when it is best.

    python mnist_convnet.py --download        # or --fake, which needs no files

After each epoch the network is tried on the test set. The model with the lowest error is kept as
`min-validation_error`, and the training ends when five epochs have brought no better one.
"""

from typing import List, Optional, Sequence

import mnist_data

import tensorpack as tp
from tensorpack.compat import tfv1 as tf


class Model(tp.ModelDesc):
    """Two convolutions, a hidden layer, and a softmax over ten digits."""

    def inputs(self) -> "List[tf.TensorSpec]":
        return [
            tf.TensorSpec([None, 28, 28], tf.float32, "image"),
            tf.TensorSpec([None], tf.int32, "label"),
        ]

    def build_graph(self, image: "tf.Tensor", label: "tf.Tensor") -> "tf.Tensor":
        image = tf.expand_dims(image, 3) * 2 - 1  # one channel, in [-1, 1]
        with tp.argscope(tp.Conv2D, kernel_size=3, activation=tf.nn.relu):
            logits = (
                tp.LinearWrap(image)
                .Conv2D("conv0", 32)
                .MaxPooling("pool0", 2)
                .Conv2D("conv1", 64)
                .MaxPooling("pool1", 2)
                .FullyConnected("fc0", 256, activation=tf.nn.relu)
                .Dropout("dropout", rate=0.5)
                .FullyConnected("fc1", 10)()
            )
        tf.nn.softmax(logits, name="probability")  # for those who use the trained model

        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cross_entropy")
        incorrect = tf.logical_not(tf.nn.in_top_k(logits, label, 1))
        incorrect = tf.cast(incorrect, tf.float32, name="incorrect")
        decay = tp.regularize_cost("fc.*/W", tp.l2_regularizer(1e-5))
        cost = tf.add(cost, decay, name="cost")

        tp.add_moving_summary(cost, tf.reduce_mean(incorrect, name="train_error"))
        return cost

    def optimizer(self) -> "tf.train.Optimizer":
        return tf.train.AdamOptimizer(1e-3)


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
            tp.InferenceRunner(
                test, [tp.ScalarStats("cross_entropy"), tp.ClassificationError("incorrect")]
            ),
            tp.MinSaver("validation_error"),
            tp.EarlyStop("validation_error", patience=5),
        ],
        steps_per_epoch=args.steps_per_epoch or len(train),
        max_epoch=args.max_epoch,
        resume=resume,
    )
    tp.launch_train_with_config(config, tp.SimpleTrainer())


if __name__ == "__main__":
    main()
