#!/usr/bin/env python
"""A residual net on CIFAR's shapes in 2017: stages in loops, augmentors, a mean per pixel."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow import imgaug
from tensorpack.tfutils.summary import *
from tensorpack.tfutils.symbolic_functions import *
from tensorpack.utils.gpu import get_nr_gpu

BATCH_SIZE = 32
NUM_UNITS = 1


class Colours(RNGDataFlow):
    """Images of 32 x 32 x 3: a bright square of one of four colours."""

    def __init__(self, train_or_test, count):
        assert train_or_test in ["train", "test"]
        self.train, self.count = train_or_test == "train", count

    def size(self):
        return self.count

    def get_per_pixel_mean(self):
        return np.full((32, 32, 3), 100.0, "float32")

    def get_data(self):
        rng = self.rng if self.train else np.random.RandomState(3)
        for _ in range(self.count):
            label = rng.randint(4)
            image = rng.randint(100, size=(32, 32, 3)).astype("uint8")
            y, x = rng.randint(16, size=2)
            for channel in range(3):
                if label == 3 or label == channel:
                    image[y : y + 16, x : x + 16, channel] += 140
            yield [image, label]


def get_data(train_or_test, count):
    is_train = train_or_test == "train"
    ds = Colours(train_or_test, count)
    mean = ds.get_per_pixel_mean()
    if is_train:
        augmentors = [
            imgaug.CenterPaste((40, 40)),
            imgaug.RandomCrop((32, 32)),
            imgaug.Flip(horiz=True),
            imgaug.MapImage(lambda x: x - mean),
        ]
    else:
        augmentors = [imgaug.MapImage(lambda x: x - mean)]
    ds = AugmentImageComponent(ds, augmentors)
    ds = BatchData(ds, BATCH_SIZE, remainder=not is_train)
    if is_train:
        ds = PrefetchData(ds, 3, 2)
    return ds


class Model(ModelDesc):
    def __init__(self, n):
        super(Model, self).__init__()
        self.n = n

    def _get_inputs(self):
        return [InputDesc(tf.float32, [None, 32, 32, 3], "input"),
                InputDesc(tf.int32, [None], "label")]  # fmt: skip

    def _build_graph(self, inputs):
        image, label = inputs
        image = tf.transpose(image / 128.0, [0, 1, 2, 3])

        def unit(name, l, grow=False, first=False):
            width = l.get_shape().as_list()[3]
            out, stride = (width * 2, 2) if grow else (width, 1)
            with tf.variable_scope(name):
                active = l if first else BNReLU(l)
                c = Conv2D("conv1", active, out, stride=stride, nl=BNReLU)
                c = Conv2D("conv2", c, out)
                if grow:
                    l = AvgPooling("pool", l, 2)
                    l = tf.pad(l, [[0, 0], [0, 0], [0, 0], [width // 2, width // 2]])
                return c + l

        with argscope(
            Conv2D,
            nl=tf.identity,
            use_bias=False,
            kernel_shape=3,
            W_init=tf.contrib.layers.variance_scaling_initializer(mode="FAN_OUT"),
        ):
            l = Conv2D("conv0", image, 8, nl=BNReLU)
            for stage in range(3):
                for k in range(self.n):
                    name = "res{}.{}".format(stage + 1, k)
                    l = unit(name, l, grow=stage > 0 and k == 0, first=stage == 0 and k == 0)
            l = BNReLU("bnlast", l)
            l = GlobalAvgPooling("gap", l)
        logits = FullyConnected("linear", l, out_dim=4, nl=tf.identity)
        tf.nn.softmax(logits, name="output")

        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cross_entropy_loss")
        wrong = prediction_incorrect(logits, label)
        add_moving_summary(tf.reduce_mean(wrong, name="train_error"))
        wd_w = tf.train.exponential_decay(0.0002, get_global_step_var(), 480000, 0.2, True)
        wd_cost = tf.multiply(wd_w, regularize_cost(".*/W", tf.nn.l2_loss), name="wd_cost")
        add_moving_summary(cost, wd_cost)
        add_param_summary((".*/W", ["histogram"]))
        self.cost = tf.add_n([cost, wd_cost], name="cost")

    def _get_optimizer(self):
        lr = get_scalar_var("learning_rate", 0.05, summary=True)
        return tf.train.MomentumOptimizer(lr, 0.9)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load", help="load model")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict = OfflinePredictor(PredictConfig(
            model=Model(n=NUM_UNITS), session_init=get_model_loader(args.load),
            input_names=["input", "label"], output_names=["output"]))  # fmt: skip
        ds = get_data("test", 8)
        ds.reset_state()
        for image, label in ds.get_data():
            print("prediction:", predict([image, label])[0].argmax(1), label)
    else:
        logger.auto_set_dir()
        config = TrainConfig(
            model=Model(n=NUM_UNITS),
            dataflow=get_data("train", 320),
            callbacks=[
                ModelSaver(),
                InferenceRunner(get_data("test", 64), [ScalarStats("cost"), ClassificationError()]),
                ScheduledHyperParamSetter("learning_rate", [(1, 0.05), (2, 0.01), (300, 0.0002)]),
            ],
            max_epoch=args.epochs,
            nr_tower=max(get_nr_gpu(), 1),
            session_init=SaverRestore(args.load) if args.load else None,
        )
        if config.nr_tower > 1:
            SyncMultiGPUTrainerParameterServer(config).train()
        else:
            QueueInputTrainer(config).train()
