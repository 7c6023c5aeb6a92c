"""Weights of few bits in 2017: get_variable is replaced, gradients of rounding are overridden."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary, add_param_summary
from tensorpack.tfutils.varreplace import remap_get_variable

BITS = 3


def rounded(x, bits):
    """x in [0, 1], in 2**bits steps; its gradient is that of the identity."""
    steps = float(2**bits - 1)
    with tf.get_default_graph().gradient_override_map({"Round": "Identity"}):
        return tf.round(x * steps) / steps


def few_bits(variable):
    if not variable.op.name.endswith("W") or "first" in variable.op.name:
        return variable
    logger.info("Binarizing weight " + variable.op.name)
    x = tf.tanh(variable)
    x = x / tf.reduce_max(tf.abs(x)) * 0.5 + 0.5
    return 2 * rounded(x, BITS) - 1


def data(count, seed):
    rng = np.random.RandomState(seed)
    points = []
    for number in range(count):
        image = rng.normal(size=(12, 12)).astype("float32")
        image[: 6 if number % 2 else 12] += 1.0
        points.append([image, number % 2])
    return BatchData(DataFromList(points), 16)


class Model(ModelDesc):
    def _get_inputs(self):
        return [InputDesc(tf.float32, [None, 12, 12], "input"),
                InputDesc(tf.int32, [None], "label")]  # fmt: skip

    def _build_graph(self, inputs):
        image, label = inputs
        image = tf.expand_dims(image, 3)
        with remap_get_variable(few_bits), argscope(BatchNorm, decay=0.9, epsilon=1e-4), argscope(
            [Conv2D, FullyConnected], use_bias=False, nl=tf.identity
        ):
            logits = (
                LinearWrap(image)
                .Conv2D("first", 8, 3, padding="VALID", use_bias=True)
                .apply(lambda x: rounded(tf.clip_by_value(x, 0.0, 1.0), BITS))
                .Conv2D("conv1", 8, 3, padding="SAME")
                .BatchNorm("bn1")
                .MaxPooling("pool1", 2)
                .apply(tf.nn.relu)
                .FullyConnected("fc", 2)()
            )
        prob = tf.nn.softmax(logits, name="prob")
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cross_entropy_loss")
        wrong = tf.not_equal(tf.cast(tf.argmax(prob, 1), tf.int32), label)
        tf.cast(wrong, tf.float32, name="incorrect_vector")
        decay = regularize_cost("fc.*/W", l2_regularizer(1e-5))
        add_param_summary((".*/W", ["histogram", "rms"]))
        self.cost = tf.add_n([cost, decay], name="cost")
        add_moving_summary(cost, self.cost)

    def _get_optimizer(self):
        return tf.train.AdamOptimizer(5e-3, epsilon=1e-5)


def get_config(args):
    logger.auto_set_dir()
    return TrainConfig(
        dataflow=data(160, 0),
        callbacks=[
            ModelSaver(),
            InferenceRunner(data(32, 1), [ScalarStats("cost"), ClassificationError()]),
        ],
        model=Model(),
        session_init=get_model_loader(args.load) if args.load else None,
        max_epoch=args.epochs,
    )  # fmt: skip


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
        print("prediction:", predictor([np.ones((1, 12, 12), "float32")])[0])
    else:
        QueueInputTrainer(get_config(args)).train()
