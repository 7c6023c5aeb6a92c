"""Pose of 2018: images, masks and joints through the same warp, a border value for each."""

import argparse

import cv2
import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.dataflow import imgaug
from tensorpack.dataflow.imgaug.base import ImageAugmentor
from tensorpack.dataflow.imgaug.transform import Transform, WarpAffineTransform
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary

SIZE, STRIDE = 24, 4


class Sample(object):
    """What one person is: it goes through augmentors as a whole."""

    def __init__(self, image, mask, joints):
        self.image, self.mask, self.joints = image, mask, joints


class WholeTransform(Transform):
    """Applies a warp to all parts of a sample; masks are ones outside, images gray."""

    def __init__(self, warp):
        super(WholeTransform, self).__init__()
        self._init(locals())

    def apply_image(self, sample):
        warp = self.warp
        warp.borderValue = (128, 128, 128)
        image = warp.apply_image(sample.image)
        assert image.shape[:2] == warp.dsize[::-1] and warp.mat.shape == (2, 3)
        warp.borderValue = 1
        mask = warp.apply_image(sample.mask)
        return Sample(image, mask, warp.apply_coords(sample.joints))

    def apply_coords(self, coords):
        return coords


class TurnAll(ImageAugmentor):
    def __init__(self, most):
        super(TurnAll, self).__init__()
        self._init(locals())

    def _get_augment_params(self, sample):
        angle = self._rand_range(-self.most, self.most)
        mat = cv2.getRotationMatrix2D((SIZE / 2.0, SIZE / 2.0), angle, 1)
        return WholeTransform(
            WarpAffineTransform(mat, (SIZE, SIZE), borderMode=cv2.BORDER_CONSTANT)
        )

    def _augment(self, sample, param):
        return param.apply_image(sample)

    def _augment_coords(self, coords, param):
        return param.apply_coords(coords)


class People(RNGDataFlow):
    """A bright head above a body; the mask leaves out the lower right corner."""

    def __init__(self, count, augmentor):
        self.count, self.augmentor = count, augmentor

    def __len__(self):
        return self.count

    def reset_state(self):
        super(People, self).reset_state()
        self.augmentor.reset_state()

    def __iter__(self):
        for _ in range(self.count):
            image = self.rng.randint(0, 40, size=(SIZE, SIZE, 3)).astype(np.uint8)
            x, y = self.rng.randint(8, SIZE - 8, size=2)
            cv2.circle(image, (int(x), int(y) - 3), 2, (230, 230, 230), -1)
            mask = np.ones((SIZE, SIZE), np.float32)
            mask[-5:, -5:] = 0
            sample = Sample(image, mask, np.array([[x, y - 3]], np.float32))
            sample, _ = self.augmentor.augment_return_params(sample)
            assert sample.mask.max() <= 1, sample.mask.max()
            rows, columns = np.mgrid[:SIZE:STRIDE, :SIZE:STRIDE] + STRIDE / 2.0
            ((x, y),) = sample.joints
            heat = np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 18.0)
            small = cv2.resize(sample.mask, None, fx=1.0 / STRIDE, fy=1.0 / STRIDE)
            yield [sample.image, small, heat.astype(np.float32)]


def get_data(count):
    return BatchData(People(count, imgaug.AugmentorList([TurnAll(30)])), 16)


class Model(ModelDesc):
    def inputs(self):
        grid = (None, SIZE // STRIDE, SIZE // STRIDE)
        return [
            tf.placeholder(tf.uint8, (None, SIZE, SIZE, 3), "image"),
            tf.placeholder(tf.float32, grid, "mask"),
            tf.placeholder(tf.float32, grid, "heat"),
        ]

    def build_graph(self, image, mask, heat):
        x = tf.cast(image, tf.float32) / 255.0
        with argscope(Conv2D, activation=tf.nn.relu):
            for number in range(2):
                x = Conv2D("conv%d" % number, x, 12, 3)
                x = MaxPooling("pool%d" % number, x, 2)
        found = Conv2D("heat", x, 1, 1)
        found = tf.squeeze(found, [3], name="found")
        if not self.training:
            mask = tf.ones_like(mask)
        cost = tf.reduce_mean(tf.square(found - heat) * mask, name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.AdamOptimizer(0.01)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = OfflinePredictor(PredictConfig(
            model=Model(), session_init=get_model_loader(args.load),
            input_names=["image"], output_names=["found"]))  # fmt: skip
        print("prediction:", predictor(np.zeros((1, SIZE, SIZE, 3), np.uint8))[0].shape)
    else:
        logger.auto_set_dir()
        launch_train_with_config(
            TrainConfig(
                model=Model(),
                dataflow=get_data(160),
                callbacks=[ModelSaver(), InferenceRunner(get_data(32), ScalarStats("cost"))],
                session_init=get_model_loader(args.load) if args.load else None,
                max_epoch=args.epochs,
            ),
            SimpleTrainer(),
        )
