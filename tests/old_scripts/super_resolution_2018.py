"""Super-resolution of 2018: three ways to go up by 2, PSNR in validation, images of many sizes.

Batches are of images of one size each, `BatchDataByShape`; what waits stays for the next pass.
"""

import argparse
import os

import cv2
import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow import BatchDataByShape, ImageFromFile, imgaug
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.tfutils.symbolic_functions import psnr


@layer_register(log_shape=True)
def SubPixel(x, out_channel, scale=2, nl=tf.identity):
    x = Conv2D("conv", x, out_channel * scale**2, kernel_shape=3, nl=nl)
    return tf.depth_to_space(x, scale)


class Model(ModelDesc):
    def __init__(self, up):
        self.up = up

    def inputs(self):
        return [
            tf.placeholder(tf.float32, (None, None, None, 3), "low"),
            tf.placeholder(tf.float32, (None, None, None, 3), "high"),
        ]

    def upscale(self, x):
        if self.up == "subpixel":
            return SubPixel("up", x, 8, nl=tf.nn.relu)
        if self.up == "deconv":
            return Deconv2D("up", x, 8, 4, stride=2, nl=tf.nn.relu)
        return Conv2D("up", FixedUnPooling("unpool", x, 2), 8, 3, nl=tf.nn.relu)

    def build_graph(self, low, high):
        low, high = low / 255.0, high / 255.0
        with argscope(Conv2D, nl=tf.nn.relu, kernel_shape=3):
            x = first = Conv2D("conv0", low, 12)
            for k in range(2):
                with tf.variable_scope("block%d" % k):
                    x = x + Conv2D("conv1", Conv2D("conv0", x, 12), 12, nl=tf.identity)
            x = self.upscale(x + first)
            detail = Conv2D("last", x, 3, nl=tf.identity)
        size = tf.shape(low)[1:3] * 2
        made = tf.add(tf.image.resize_images(low, size), detail, name="made")
        psnr(tf.clip_by_value(made, 0, 1), high, 1.0, name="psnr")
        tf.summary.image("made", tf.concat([made, high], 2), max_outputs=2)
        cost = tf.losses.absolute_difference(high, made)
        cost = tf.identity(cost, name="cost")
        add_moving_summary(cost, tf.get_default_graph().get_tensor_by_name("psnr:0"))
        return cost

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=1e-3, trainable=False)
        opt = tf.train.MomentumOptimizer(lr, 0.9)
        return optimizer.AccumGradOptimizer(opt, 2)


def write_images(folder, number):
    """PNG files of stripes, of three sizes."""
    rng = np.random.RandomState(number)
    names = []
    for k in range(number):
        h, w = [(24, 24), (24, 32), (32, 20)][k % 3]
        y, x = np.mgrid[:h, :w]
        wave = np.sin((x * rng.uniform(-1, 1) + y * rng.uniform(-1, 1)))
        image = (wave[:, :, None] * rng.uniform(40, 120, size=3) + 128).astype("uint8")
        names.append(os.path.join(folder, "%03d.png" % k))
        cv2.imwrite(names[-1], image)
    return names


def get_data(files, train):
    ds = ImageFromFile(files, channel=3, shuffle=train)
    if train:
        ds = AugmentImageComponent(ds, [imgaug.Flip(horiz=True), imgaug.Transpose()])

    def halve(dp):
        image = dp[0]
        low = cv2.resize(
            image, (image.shape[1] // 2, image.shape[0] // 2), interpolation=cv2.INTER_AREA
        )
        return [low.astype("float32"), image.astype("float32")]

    ds = MapData(ds, halve)
    if train:
        ds = BatchDataByShape(ds, 16, idx=1)
        return PrefetchData(ds, 8, 1)
    return BatchData(ds, 1)


def apply(path, up):
    pred = OfflinePredictor(
        PredictConfig(
            model=Model(up),
            session_init=get_model_loader(path),
            input_names=["low"],
            output_names=["made"],
        )
    )
    low = np.random.uniform(0, 255, size=(1, 7, 9, 3)).astype("float32")
    print("prediction:", pred(low)[0].shape)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--up", default="subpixel", choices=["subpixel", "deconv", "unpool"])
    args = parser.parse_args()
    if args.predict:
        apply(args.load, args.up)
    else:
        logger.auto_set_dir()
        files = write_images(logger.LOG_DIR, 40)
        config = TrainConfig(
            model=Model(args.up),
            dataflow=get_data(files[:30], True),
            callbacks=[
                ModelSaver(),
                PeriodicTrigger(
                    InferenceRunner(get_data(files[30:], False), [ScalarStats(["psnr", "cost"])]),
                    every_k_epochs=1,
                ),
                MaxSaver("validation_psnr"),
            ],
            session_init=get_model_loader(args.load) if args.load else None,
            steps_per_epoch=10,
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, QueueInputTrainer())
