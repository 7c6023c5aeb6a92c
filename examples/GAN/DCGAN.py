#!/usr/bin/env python
"""Trains a DCGAN on the images of a folder, and draws new ones.

    python DCGAN.py --data faces/ --crop 140
    python DCGAN.py --sample --load train_log/DCGAN --out faces.png

Each epoch writes `samples-NNN.png` to the log directory, always of the same noise.

Reference: Radford et al., "Unsupervised Representation Learning with Deep Convolutional Generative
Adversarial Networks", arXiv:1511.06434. Here a layer has half as many channels as in figure 1.
"""

import argparse
import os
from typing import List, Optional, Sequence

import cv2
import numpy as np
from GAN import GANModelDesc, GANTrainer

from tensorpack import (
    BatchData,
    BatchNorm,
    Callback,
    Conv2D,
    Conv2DTranspose,
    DataFlow,
    DataFromList,
    FullyConnected,
    ImageFromFile,
    InitFrom,
    MapData,
    ModelSaver,
    OfflinePredictor,
    PredictConfig,
    QueueInput,
    SaverRestore,
    argscope,
    auto_reuse_variable_scope,
    get_rng,
    logger,
    prepare_log_dir,
    recursive_walk,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.utils.viz import stack_patches

GRID = (8, 8)  # rows and columns of a picture of samples
SMALLEST = 4  # pixels; where the generator begins
LEARNING_RATE = 2e-4
EXTENSIONS = (".jpg", ".jpeg", ".png")


class Model(GANModelDesc):
    """Draws square images in colour.

    Tensors by name: `z`, float32 `[B, z_dim]`, the noise, which is drawn evenly from [-1, 1] unless
    a predictor feeds it; `sample`, uint8 `[B, size, size, 3]`, RGB, what is drawn from it.

    Args:
      size: width and height in pixels: 8, 16, 32, ...
      z_dim: how many numbers make an image.
      filters: channels of the layers of half the size; those of a quarter have twice as many, ...
    """

    def __init__(self, size: int = 64, z_dim: int = 100, filters: int = 64) -> None:
        self._size, self._z_dim, self._filters = size, z_dim, filters
        self._steps = (size // SMALLEST).bit_length() - 1  # from the smallest size
        if self._steps < 1 or SMALLEST << self._steps != size:
            raise ValueError(f"size must be {2 * SMALLEST}, {4 * SMALLEST}, ..., got {size}.")

    def inputs(self) -> List[tf.TensorSpec]:
        return [tf.TensorSpec([None, self._size, self._size, 3], tf.uint8, "input")]

    def build_graph(self, image: tf.Tensor) -> None:
        z = tf.random_uniform([tf.shape(image)[0], self._z_dim], -1.0, 1.0, name="z")
        weights = tf.truncated_normal_initializer(stddev=0.02)
        with argscope([Conv2D, Conv2DTranspose, FullyConnected], kernel_initializer=weights):
            with tf.variable_scope("gen"):
                fake = self.generator(z)
            tf.saturate_cast(tf.round((fake + 1) * 127.5), tf.uint8, name="sample")
            if not self.training:
                return
            with tf.variable_scope("discrim"):
                logits_real = self.discriminator(tf.cast(image, tf.float32) / 127.5 - 1)
                logits_fake = self.discriminator(fake)
        self.build_losses(logits_real, logits_fake)
        self.collect_variables()

    def generator(self, z: tf.Tensor) -> tf.Tensor:
        """Returns images, float32 `[B, size, size, 3]` in [-1, 1]."""
        channels = self._filters << (self._steps - 1)
        x = FullyConnected("fc0", z, SMALLEST * SMALLEST * channels, use_bias=False)
        x = tf.reshape(x, [-1, SMALLEST, SMALLEST, channels])
        x = tf.nn.relu(BatchNorm("bn0", x))
        for i in range(1, self._steps):
            x = Conv2DTranspose(f"deconv{i}", x, channels >> i, 5, strides=2, use_bias=False)
            x = tf.nn.relu(BatchNorm(f"bn{i}", x))
        return Conv2DTranspose("image", x, 3, 5, strides=2, activation=tf.tanh)

    @auto_reuse_variable_scope
    def discriminator(self, image: tf.Tensor) -> tf.Tensor:
        """Returns logits, float32 `[B, 1]`, above 0 for images that seem real."""
        x = leaky_relu(Conv2D("conv0", image, self._filters, 5, strides=2))
        for i in range(1, self._steps):
            x = Conv2D(f"conv{i}", x, self._filters << i, 5, strides=2, use_bias=False)
            x = leaky_relu(BatchNorm(f"bn{i}", x))
        return FullyConnected("real", x, 1)

    def optimizer(self) -> tf.train.Optimizer:
        rate = tf.get_variable(
            "learning_rate", [], initializer=tf.constant_initializer(LEARNING_RATE), trainable=False
        )
        return tf.train.AdamOptimizer(rate, beta1=0.5)


def leaky_relu(x: tf.Tensor) -> tf.Tensor:
    """Returns `x` where it is positive, and a fifth of it elsewhere."""
    return tf.maximum(x, 0.2 * x)


class DrawSamples(Callback):
    """Writes a picture of samples to the log directory each epoch."""

    def __init__(self, z_dim: int) -> None:
        self._z = draw_noise(np.random.RandomState(0), z_dim)

    def _setup_graph(self) -> None:
        self._predict = self.trainer.get_predictor(["z"], ["sample"])

    def _trigger(self) -> None:
        path = os.path.join(logger.get_logger_dir(), f"samples-{self.epoch_num:03d}.png")
        write_grid(path, self._predict(self._z)[0])


def draw_noise(rng: np.random.RandomState, z_dim: int) -> np.ndarray:
    """Returns the noise for a picture of samples."""
    return rng.uniform(-1, 1, [GRID[0] * GRID[1], z_dim]).astype(np.float32)


def write_grid(path: str, images: np.ndarray) -> None:
    """Writes images, uint8 `[N, size, size, 3]` RGB, as one picture."""
    picture = stack_patches(images[:, :, :, ::-1], *GRID, border=2)
    if not cv2.imwrite(path, picture):
        raise OSError(f"Cannot write {path}. Check the free space and the permissions.")


def discs(size: int, count: int = 1024) -> DataFlow:
    """Returns a flow of `[image]` to try the script on: a disc of any place, size and colour."""
    rng = np.random.RandomState(0)
    rows, columns = np.mgrid[:size, :size]
    images = np.zeros([count, size, size, 3], np.uint8)
    for image in images:
        row, column = rng.uniform(0.3, 0.7, 2) * size
        radius = rng.uniform(0.15, 0.3) * size
        inside = (rows - row) ** 2 + (columns - column) ** 2 < radius**2
        image[inside] = rng.randint(100, 256, 3)
    return DataFromList([[image] for image in images])


def photos(directory: str, size: int, crop: Optional[int] = None) -> DataFlow:
    """Returns a flow of `[image]`, uint8 `[size, size, 3]` RGB, of all image files in a folder.

    Args:
      directory: the folder, with all those in it.
      size: width and height in pixels.
      crop: side of the square in the middle that is taken, in pixels; by default, and of smaller
        images, the largest.

    Raises:
      FileNotFoundError: there are no images.
    """
    files = [path for path in recursive_walk(directory) if path.lower().endswith(EXTENSIONS)]
    if not files:
        raise FileNotFoundError(f"{directory} has no files that end with {', '.join(EXTENSIONS)}.")

    def to_size(datapoint: List[np.ndarray]) -> List[np.ndarray]:
        height, width, _ = datapoint[0].shape
        side = min(crop or height, height, width)
        top, left = (height - side) // 2, (width - side) // 2
        square = datapoint[0][top : top + side, left : left + side]
        return [cv2.resize(square, (size, size), interpolation=cv2.INTER_AREA)]

    return MapData(ImageFromFile(files, shuffle=True), to_size)


def train(args: argparse.Namespace) -> None:
    """Trains until the last epoch."""
    images = discs(args.size) if args.fake else photos(args.data, args.size, args.crop)
    resume = prepare_log_dir(args.logdir, args.resume)
    batches = QueueInput(BatchData(images, args.batch_size))
    trainer = GANTrainer(batches, make_model(args), args.num_gpu)
    trainer.train_with_defaults(
        callbacks=[ModelSaver(), DrawSamples(args.z_dim)],
        session_init=InitFrom(args.load) if args.load else None,
        steps_per_epoch=args.steps_per_epoch,
        max_epoch=args.max_epoch,
        resume=resume,
    )


def sample(args: argparse.Namespace) -> None:
    """Writes a picture of samples to `args.out`."""
    config = PredictConfig(
        model=make_model(args),
        session_init=SaverRestore(args.load),
        input_names=["z"],
        output_names=["sample"],
    )
    with OfflinePredictor(config) as predict:
        write_grid(args.out, predict(draw_noise(get_rng(), args.z_dim))[0])
    logger.info(f"{GRID[0] * GRID[1]} samples are in {args.out}.")


def make_model(args: argparse.Namespace) -> Model:
    """Returns the model that the command line describes."""
    return Model(args.size, args.z_dim, args.filters)


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--data", metavar="DIR", help="the folder of images to learn from")
    add(
        "--crop", type=int, metavar="PIXELS", help="take this square of each (default: the largest)"
    )
    add("--fake", action="store_true", help="learn generated images instead: discs")
    add("--load", metavar="MODEL", help="a checkpoint or log directory to take the weights from")
    add(
        "--sample",
        action="store_true",
        help="draw images with the model of --load; needs its --size, --z-dim and --filters",
    )
    add("--out", default="samples.png", help="where --sample draws them (default: samples.png)")
    add("--size", type=int, default=64, help="of an image: 8, 16, 32, ... (default: 64)")
    add("--z-dim", type=int, default=100, help="numbers that make an image (default: 100)")
    add("--filters", type=int, default=64, help="channels of the largest layers (default: 64)")
    add("--batch-size", type=int, default=128, help="of each GPU (default: 128)")
    add("--num-gpu", type=int, default=1, help="GPUs that train (default: 1)")
    add("--steps-per-epoch", type=int, default=500, help="default: 500")
    add("--max-epoch", type=int, default=100, help="the last epoch (default: 100)")
    add("--logdir", default="train_log/DCGAN", help="default: train_log/DCGAN")
    add("--resume", default="never", choices=["never", "auto", "must"], help="default: never")
    args = parser.parse_args(argv)
    if args.sample:
        if not args.load:
            parser.error("--sample needs --load MODEL")
    elif (args.data is None) != args.fake:
        parser.error("give either --data DIR or --fake")
    return args


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Does what the command line says."""
    args = parse(argv)
    if args.sample:
        sample(args)
    else:
        train(args)


if __name__ == "__main__":
    main()
