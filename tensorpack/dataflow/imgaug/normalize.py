"""Augmentors that bring the values of an image into a common range."""

from typing import Tuple

import numpy as np

from tensorpack.utils.checks import as_range
from tensorpack.utils.optional import require

from ._pixels import channels_of, linear, readable
from .base import PhotometricAugmentor


class MeanVarianceNormalize(PhotometricAugmentor):
    """Gives the values mean 0 and standard deviation 1, as float32.

    They are divided by at least `1 / sqrt(h * w * c)`, so an image of one colour becomes 0; see
    `tf.image.per_image_standardization`.

    Args:
      all_channel: whether mean and standard deviation are those of all channels together.
    """

    def __init__(self, all_channel: bool = True) -> None:
        require("cv2")
        self.all_channel = all_channel

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        if self.all_channel or channels_of(img) <= 4:
            values = img.reshape(len(img), -1) if self.all_channel else img
            mean, std = (each[:, 0] for each in require("cv2").meanStdDev(readable(values)))
        else:  # more than OpenCV takes
            mean, std = img.mean((0, 1), np.float64), img.std((0, 1), np.float64)
        scale = 1 / np.maximum(std, 1 / np.sqrt(img.size))
        centred = linear(img.astype(np.float32), 1, -mean, clip=False)
        return linear(centred, scale, 0, clip=False)


class MinMaxNormalize(PhotometricAugmentor):
    """Stretches the values to a range, as float32; an image of one value gets the least one.

    Args:
      min: the least value afterwards.
      max: the largest one.
      all_channel: whether the values of all channels are stretched together.
    """

    def __init__(self, min: float = 0, max: float = 255, all_channel: bool = True) -> None:
        require("cv2")
        self.min, self.max = as_range(self, "(min, max)", (min, max))
        self.all_channel = all_channel

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        least, most = self._limits(readable(img))
        scale = (self.max - self.min) / np.where(most > least, most - least, 1)
        above = linear(img.astype(np.float32), 1, -least, clip=False)
        return linear(above, scale, self.min, clip=False)

    def _limits(self, img: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        cv2 = require("cv2")
        channels = [img.reshape(len(img), -1)] if self.all_channel else cv2.split(img)
        limits = np.array([cv2.minMaxLoc(each)[:2] for each in channels])
        return limits[:, 0], limits[:, 1]
