#!/usr/bin/env python
"""Trains a residual network on CIFAR-10, as section 4.2 of He et al., 2015 (arXiv:1512.03385) does.

    python cifar10_resnet.py --download       # or --fake, which needs no files

--depth is 6n + 2: n blocks of two convolutions on 32 x 32 pixels with 16 filters, n on 16 x 16 with
32, and n on 8 x 8 with 64. The paper reports errors on the test set of 8.75 % for 20 layers, 7.51 %
for 32, 6.97 % for 56 and 6.43 % for 110. It trains for 64,000 steps of 128 images, 164 epochs here.
For 110 layers it begins with a tenth of the learning rate until the error in training is below
80 %, which here is for the first epoch.
"""

import argparse
import functools
import os
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

import tensorpack as tp
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFlow, DataFromList, MapData, dataset

BATCH_SIZE = 128
PADDING = 4  # pixels on each side, for random crops
LEARNING_RATES = [(0, 0.1), (82, 0.01), (123, 0.001)]  # (epoch, value after it); 32k, 48k steps
EPOCHS = 164
WEIGHT_DECAY = 1e-4
MOMENTUM = 0.9


class ResNet(tp.ModelDesc):
    """The network of the paper, without bottlenecks and with shortcuts that have no weights."""

    def __init__(self, depth: int) -> None:
        """Takes the number of layers with weights, 6n + 2."""
        self.depth = depth

    def inputs(self) -> "List[tf.TensorSpec]":
        return [
            tf.TensorSpec([None, 32, 32, 3], tf.float32, "image"),
            tf.TensorSpec([None], tf.int32, "label"),
        ]

    def build_graph(self, image: "tf.Tensor", label: "tf.Tensor") -> "tf.Tensor":
        with tp.argscope(tp.Conv2D, kernel_size=3, use_bias=False):
            x = tp.Conv2D("conv0", image, 16, activation=tp.BNReLU)
            for group, filters in enumerate([16, 32, 64]):
                for number in range(self.depth // 6):
                    halves = group > 0 and number == 0
                    with tf.variable_scope(f"group{group}/block{number}"):
                        x = residual_block(x, filters, stride=2 if halves else 1)
        logits = tp.FullyConnected("fc", tp.GlobalAvgPooling("gap", x), 10)
        tf.nn.softmax(logits, name="probability")

        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cross_entropy")
        incorrect = tf.logical_not(tf.nn.in_top_k(logits, label, 1))
        incorrect = tf.cast(incorrect, tf.float32, name="incorrect")
        tp.add_moving_summary(cost, tf.reduce_mean(incorrect, name="train_error"))
        decay = tp.regularize_cost(".*/W", tp.l2_regularizer(WEIGHT_DECAY))
        return tf.add(cost, decay, name="cost")

    def optimizer(self) -> "tf.train.Optimizer":
        rate = tf.get_variable("learning_rate", initializer=0.1, trainable=False)
        return tf.train.MomentumOptimizer(rate, MOMENTUM)


def residual_block(x: "tf.Tensor", filters: int, stride: int) -> "tf.Tensor":
    """Adds to `x` what two convolutions make of it.

    Where the block halves the picture and doubles the channels, the shortcut takes every second
    pixel, and zeros for the new channels: "option A" of the paper.
    """
    change = tp.Conv2D("conv1", x, filters, strides=stride, activation=tp.BNReLU)
    change = tp.BatchNorm("bn2", tp.Conv2D("conv2", change, filters))
    if stride > 1:
        x = x[:, ::stride, ::stride]
        x = tf.pad(x, [[0, 0], [0, 0], [0, 0], [0, filters - int(x.shape[3])]])
    return tf.nn.relu(x + change)


def crop_and_flip(image: np.ndarray) -> np.ndarray:
    """Returns a random part of the padded image, as large as the image, mirrored or not."""
    height, width, _ = image.shape
    padded = np.pad(image, [(PADDING, PADDING), (PADDING, PADDING), (0, 0)], "constant")
    top, left = np.random.randint(2 * PADDING + 1, size=2)
    crop = padded[top : top + height, left : left + width]
    return crop[:, ::-1] if np.random.randint(2) else crop


def make_batch(datapoint: List[Any], mean: np.ndarray, augment: bool) -> List[np.ndarray]:
    """Makes a batch of lists of images and labels: float32, less the mean image, and int32.

    It draws from `numpy.random`, which a strict `MultiProcessMapData` seeds for each batch: a run
    that is resumed sees the same crops.
    """
    images, labels = datapoint
    images = [image - mean for image in images]
    images = [crop_and_flip(image) for image in images] if augment else images
    return [np.stack(images), np.array(labels, np.int32)]


def get_data(args: argparse.Namespace) -> Tuple[DataFlow, DataFlow]:
    """Returns training and test set, in batches of float32 `[N, 32, 32, 3]` and int32 `[N]`."""
    if args.fake:
        train, test = fake_images(640, seed=1), fake_images(200, seed=2)
        mean = np.full((32, 32, 3), 127.5, np.float32)
    else:
        train = dataset.Cifar10("train", dir=args.data, download=args.download)
        test = dataset.Cifar10("test", dir=args.data)
        mean = train.get_per_pixel_mean(["train"])
    train = BatchData(train, args.batch_size, use_list=True)
    test = BatchData(test, 250, remainder=True, use_list=True)
    augment = functools.partial(make_batch, mean=mean, augment=True)
    if args.processes:
        train = tp.MultiProcessMapData(train, args.processes, augment, buffer_size=20, strict=True)
    else:
        train = MapData(train, augment)
    return train, MapData(test, functools.partial(make_batch, mean=mean, augment=False))


def fake_images(count: int, seed: int) -> DataFromList:
    """Returns a flow like `Cifar10` whose ten classes are ten colours under noise."""
    colours = np.random.RandomState(0).uniform(0, 255, size=(10, 1, 1, 3))
    rng = np.random.RandomState(seed)
    images: List[Any] = []
    for label in rng.randint(10, size=count).tolist():
        image = (colours[label] + rng.uniform(0, 255, size=(32, 32, 3))) / 2
        images.append([image.astype(np.uint8), label])
    return DataFromList(images)


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    add = parser.add_argument
    add("--depth", type=int, default=20, metavar="6n+2", help="layers (default: 20)")
    add("--fake", action="store_true", help="train on small generated images: nothing is needed")
    add("--download", action="store_true", help="download CIFAR-10 (170 MB) where it is missing")
    add("--data", metavar="DIR", help="its folder (default: $TENSORPACK_DATASET/cifar10_data)")
    add("--processes", type=int, default=2, metavar="N", help="that prepare images (default: 2)")
    add("--batch-size", type=int, default=BATCH_SIZE, metavar="N", help=f"default: {BATCH_SIZE}")
    add("--steps-per-epoch", type=int, metavar="N", help="default: all images once")
    add("--max-epoch", type=int, default=EPOCHS, metavar="N", help=f"default: {EPOCHS}")
    add("--logdir", metavar="DIR", help="log directory (default: train_log/cifar10-resnetDEPTH)")
    add("--resume", default="never", choices=["never", "auto", "must"], help="default: never")
    args = parser.parse_args(argv)
    if args.depth < 8 or args.depth % 6 != 2:
        parser.error(f"--depth must be 6n + 2, such as 20, 32, 56 or 110, but is {args.depth}")
    if args.logdir is None:
        args.logdir = os.path.join("train_log", f"cifar10-resnet{args.depth}")
    return args


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Trains, or continues a training."""
    args = parse(argv)
    train, test = get_data(args)
    resume = tp.prepare_log_dir(args.logdir, args.resume)
    rates = LEARNING_RATES
    if args.depth >= 110:
        rates = [(0, 0.01), (1, 0.1), *rates[1:]]
    config = tp.TrainConfig(
        model=ResNet(args.depth),
        data=tp.QueueInput(train),
        callbacks=[
            tp.ModelSaver(),
            tp.InferenceRunner(
                test, [tp.ScalarStats("cross_entropy"), tp.ClassificationError("incorrect")]
            ),
            tp.MinSaver("validation_error"),
            tp.ScheduledHyperParamSetter("learning_rate", rates),
        ],
        steps_per_epoch=args.steps_per_epoch or len(train),
        max_epoch=args.max_epoch,
        resume=resume,
    )
    tp.launch_train_with_config(config, tp.SimpleTrainer())


if __name__ == "__main__":
    main()
