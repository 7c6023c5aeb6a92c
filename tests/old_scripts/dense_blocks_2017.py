"""Blocks of 2017 whose layers see all before them; two towers, their number is in the config."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary, add_param_summary
from tensorpack.tfutils.symbolic_functions import *

GROWTH = 6


class Pictures(RNGDataFlow):
    """Crosses and squares of 16 x 16, somewhere."""

    def __init__(self, train_or_test):
        self.count = 160 if train_or_test == "train" else 32

    def size(self):
        return self.count

    def get_data(self):
        for number in range(self.count):
            image = self.rng.uniform(0, 80, size=(16, 16, 3)).astype("float32")
            y, x = self.rng.randint(3, 13, size=2)
            if number % 2:
                image[y - 3 : y + 3, x] = image[y, x - 3 : x + 3] = 255
            else:
                image[y - 2 : y + 2, x - 2 : x + 2] = 255
            yield [image, number % 2]


class Model(ModelDesc):
    def __init__(self, depth):
        super(Model, self).__init__()
        self.per_block = (depth - 4) // 2

    def _get_inputs(self):
        return [InputDesc(tf.float32, [None, 16, 16, 3], "input"),
                InputDesc(tf.int32, [None], "label")]  # fmt: skip

    def _build_graph(self, input_vars):
        image, label = input_vars
        l = image / 128.0 - 1

        def add_layer(name, l):
            with tf.variable_scope(name):
                c = BatchNorm("bn1", l)
                c = tf.nn.relu(c)
                c = Conv2D("conv1", c, GROWTH, 3, stride=1, use_bias=False)
                return tf.concat([c, l], 3)

        def transition(name, l):
            with tf.variable_scope(name):
                l = BNReLU("bn1", l)
                l = Conv2D("conv1", l, l.get_shape().as_list()[3] // 2, 1, nl=tf.identity)
                return AvgPooling("pool", l, 2)

        l = Conv2D("conv0", l, 8, 3, W_init=tf.random_normal_initializer(stddev=0.15))
        for block in range(2):
            with tf.variable_scope("block%d" % block):
                for i in range(self.per_block):
                    l = add_layer("dense_layer.{}".format(i), l)
                if block == 0:
                    l = transition("transition", l)
        l = GlobalAvgPooling("gap", BNReLU("bnlast", l))
        logits = FullyConnected("linear", l, out_dim=2, nl=tf.identity)
        tf.nn.softmax(logits, name="output")
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cross_entropy_loss")
        wrong = prediction_incorrect(logits, label)
        add_moving_summary(tf.reduce_mean(wrong, name="train_error"))
        wd_cost = tf.multiply(1e-4, regularize_cost(".*/W", tf.nn.l2_loss), name="wd_cost")
        add_moving_summary(cost, wd_cost)
        add_param_summary((".*/W", ["histogram"]))
        self.cost = tf.add_n([cost, wd_cost], name="cost")

    def _get_optimizer(self):
        lr = get_scalar_var("learning_rate", 0.1, summary=True)
        return tf.train.MomentumOptimizer(lr, 0.9, use_nesterov=True)


def get_config(args):
    return TrainConfig(
        dataflow=BatchData(Pictures("train"), 16),
        callbacks=[
            ModelSaver(),
            InferenceRunner(
                BatchData(Pictures("test"), 16), [ScalarStats("cost"), ClassificationError()]
            ),
            ScheduledHyperParamSetter("learning_rate", [(1, 0.1), (2, 0.01)]),
        ],
        model=Model(depth=8),
        steps_per_epoch=10,
        max_epoch=args.epochs,
        nr_tower=2,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load", help="load model")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = OfflinePredictor(PredictConfig(
            model=Model(8), session_init=get_model_loader(args.load),
            input_names=["input"], output_names=["output"]))  # fmt: skip
        ds = BatchData(Pictures("test"), 8)
        ds.reset_state()
        for image, label in ds.get_data():
            print("prediction:", predictor([image])[0].argmax(axis=1), label)
            break
    else:
        logger.auto_set_dir()
        config = get_config(args)
        if args.load:
            config.session_init = get_model_loader(args.load)
        SyncMultiGPUTrainerParameterServer(config, ps_device="cpu").train()
