#!/usr/bin/env python
"""Trains a convolutional network on MNIST, in the spelling of 2017.

    python mnist_2017.py --download           # or --fake, which needs no files

Both spellings run on every TensorFlow; docs/migration.md has a table of the two. What differs from
`mnist_convnet.py` are names alone: `_get_inputs`, `_build_graph`, which sets `self.cost`,
`_get_optimizer`, the arguments of layers, the scalar `val_error`, and a trainer that takes the
configuration.
"""

# ruff: noqa: F403, F405
import mnist_data

from tensorpack import *
from tensorpack.compat import tfv1 as tf


class Model(ModelDesc):
    """Two convolutions, a hidden layer, and a softmax over ten digits."""

    def _get_inputs(self):
        return [
            InputDesc(tf.float32, (None, 28, 28), "input"),
            InputDesc(tf.int32, (None,), "label"),
        ]

    def _build_graph(self, inputs):
        image, label = inputs
        image = tf.expand_dims(image, 3) * 2 - 1  # one channel, in [-1, 1]
        with argscope(Conv2D, kernel_shape=3, nl=tf.nn.relu):
            logits = (
                LinearWrap(image)
                .Conv2D("conv0", out_channel=32)
                .MaxPooling("pool0", 2)
                .Conv2D("conv1", out_channel=64)
                .MaxPooling("pool1", 2)
                .FullyConnected("fc0", out_dim=256, nl=tf.nn.relu)
                .Dropout("dropout", keep_prob=0.5)
                .FullyConnected("fc1", out_dim=10, nl=tf.identity)()
            )
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cross_entropy_loss")
        wrong = symbolic_functions.prediction_incorrect(logits, label, name="incorrect_vector")
        decay = tf.multiply(1e-5, regularize_cost("fc.*/W", tf.nn.l2_loss), name="regularize_loss")
        self.cost = tf.add_n([cost, decay], name="total_cost")
        summary.add_moving_summary(
            cost, decay, self.cost, tf.reduce_mean(wrong, name="train_error")
        )

    def _get_optimizer(self):
        rate = symbolic_functions.get_scalar_var("learning_rate", 1e-3, summary=True)
        return tf.train.AdamOptimizer(rate)


def main(argv=None):
    """Trains, or continues a training."""
    args = mnist_data.parse(__file__, __doc__, argv)
    train, test = mnist_data.get_data(args)
    resume = prepare_log_dir(args.logdir, args.resume)
    config = TrainConfig(
        model=Model(),
        dataflow=train,
        callbacks=[
            ModelSaver(),
            InferenceRunner(test, [ScalarStats("cross_entropy_loss"), ClassificationError()]),
            MinSaver("val_error"),
            HumanHyperParamSetter("learning_rate"),
        ],
        steps_per_epoch=args.steps_per_epoch or train.size(),
        max_epoch=args.max_epoch,
        resume=resume,
    )
    QueueInputTrainer(config).train()


if __name__ == "__main__":
    main()
