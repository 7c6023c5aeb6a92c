"""A database of 2017: written, read by one runner inside another, augmented, trained on."""

import argparse
import os
import tempfile

import cv2
import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow import dftools, imgaug
from tensorpack.dataflow.common import BatchData, FixedSizeData, LocallyShuffleData, MapData
from tensorpack.dataflow.format import LMDBDataPoint
from tensorpack.dataflow.prefetch import PrefetchData, PrefetchDataZMQ
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary

SIZE = 16


class Discs(RNGDataFlow):
    """JPEGs of a disc, and whether it is large."""

    def __init__(self, count):
        self.count = count

    def size(self):
        return self.count

    def get_data(self):
        for number in range(self.count):
            large = number % 2
            image = np.full((SIZE, SIZE, 3), self.rng.randint(60), np.uint8)
            at = tuple(int(each) for each in self.rng.randint(6, SIZE - 6, size=2))
            cv2.circle(image, at, 5 if large else 2, (200, 220, 240), -1)
            yield [cv2.imencode(".jpg", image)[1].ravel(), large]


def read(path, is_train):
    ds = LMDBDataPoint(path, shuffle=False)
    if is_train:
        ds = LocallyShuffleData(ds, 50)
        ds = PrefetchData(ds, 50, 1)
    ds = MapData(ds, lambda dp: [cv2.imdecode(dp[0], cv2.IMREAD_COLOR), dp[1]])
    augmentors = [
        imgaug.RandomApplyAug(imgaug.Brightness(20), 0.5),
        imgaug.Contrast((0.8, 1.2), True),
        imgaug.Flip(horiz=True),
    ]
    ds = AugmentImageComponent(ds, augmentors if is_train else [imgaug.ToUint8()], copy=False)
    ds = BatchData(ds, 20, remainder=not is_train)
    if is_train:
        ds = PrefetchDataZMQ(ds, 2)
        ds = FixedSizeData(ds, "8")
    return ds


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.uint8, (None, SIZE, SIZE, 3), "input"),
            InputDesc(tf.int32, (None,), "label"),
        ]

    def _build_graph(self, inputs):
        image, label = inputs
        image = tf.cast(image, tf.float32) / 128.0 - 1
        with argscope(Conv2D, kernel_shape=3, nl=tf.nn.relu):
            logits = (
                LinearWrap(image)
                .Conv2D("conv0", out_channel=8)
                .MaxPooling("pool0", 2)
                .Conv2D("conv1", out_channel=8)
                .GlobalAvgPooling("gap")
                .FullyConnected("fc", 2, nl=tf.identity)()
            )
        tf.nn.softmax(logits, name="output")
        wrong = tf.cast(tf.logical_not(tf.nn.in_top_k(logits, label, 1)), tf.float32)
        tf.identity(wrong, name="incorrect")
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        self.cost = tf.reduce_mean(cost, name="cost")
        add_moving_summary(self.cost, tf.reduce_mean(wrong, name="train_error"))

    def _get_optimizer(self):
        return tf.train.AdamOptimizer(0.01)


def get_config(folder):
    paths = [os.path.join(folder, name + ".lmdb") for name in ("train", "val")]
    for path, count in zip(paths, (160, 40)):
        dftools.dump_dataflow_to_lmdb(Discs(count), path)
    return TrainConfig(
        model=Model(),
        dataflow=read(paths[0], True),
        callbacks=[
            ModelSaver(),
            InferenceRunner(
                read(paths[1], False), [ScalarStats("cost"), ClassificationError("incorrect")]
            ),
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        config = PredictConfig(
            model=Model(),
            session_init=get_model_loader(args.load),
            input_names=["input"],
            output_names=["output"],
        )
        images = np.zeros((2, SIZE, SIZE, 3), np.uint8)
        cv2.circle(images[1], (8, 8), 5, (200, 220, 240), -1)
        print("prediction:", OfflinePredictor(config)([images])[0].argmax(axis=1))
    else:
        logger.auto_set_dir()
        with tempfile.TemporaryDirectory() as folder:
            config = get_config(folder)
            config.max_epoch = args.epochs
            if args.load:
                config.session_init = get_model_loader(args.load)
            QueueInputTrainer(config).train()
