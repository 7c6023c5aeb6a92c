"""Augmentors that add noise.

Noise is drawn from a seed in the transform, so it is the same wherever the transform is applied,
and the transform stays small. The bits of `np.random.SFC64` are the same in all versions of numpy.
"""

import math
from typing import Tuple

import numpy as np

from tensorpack.utils.argtools import memoized
from tensorpack.utils.checks import as_count, as_number, as_range
from tensorpack.utils.optional import cv2

from ._pixels import as_dtype, channels_of, restore_dtype
from .base import PhotometricAugmentor

_STEPS = 2**16  # of a random number


class JpegNoise(PhotometricAugmentor):
    """Compresses the image as JPEG of random quality; the result has three channels.

    `quality_range` is (least, most) of the quality, integers in [0, 100].
    """

    def __init__(self, quality_range: Tuple[int, int] = (40, 100)) -> None:
        limits = as_range(self, "quality_range", quality_range, 0, 100)
        self.quality_range = tuple(as_count(self, "quality_range", limit, 0) for limit in limits)

    def _get_augment_params(self, img: np.ndarray) -> int:
        least, most = self.quality_range
        return int(self.rng.randint(least, most + 1))

    def _augment(self, img: np.ndarray, param: int) -> np.ndarray:
        if channels_of(img) not in (1, 3):
            raise ValueError(f"JPEG has one or three channels, got an image of {img.shape}.")
        options = [cv2.IMWRITE_JPEG_QUALITY, param]
        _, encoded = cv2.imencode(".jpg", as_dtype(img, np.uint8), options)
        return restore_dtype(img, cv2.imdecode(encoded, cv2.IMREAD_COLOR), clip=True)


class _Seeded(PhotometricAugmentor):
    """Draws a seed for the numbers of an image."""

    def _get_augment_params(self, img: np.ndarray) -> int:
        return int(self.rng.randint(2**31 - 1))


class GaussianNoise(_Seeded):
    """Adds normally distributed noise, a number of its own to each channel of each pixel.

    No number is farther than `4.4 * sigma`, the standard deviation, from 0. `clip` says whether
    floats are clipped to [0, 255], too.
    """

    def __init__(self, sigma: float = 1, clip: bool = True) -> None:
        self.sigma, self.clip = as_number(self, "sigma", sigma, 0), clip

    def _augment(self, img: np.ndarray, param: int) -> np.ndarray:
        noise = np.take(_normal_quantiles(), _random_steps(param, img.shape))
        if img.dtype == np.uint8:
            result = cv2.addWeighted(img, 1, noise, self.sigma, 0, dtype=cv2.CV_8U)
        else:
            result = img + noise * self.sigma
        return restore_dtype(img, result, self.clip)


class SaltPepperNoise(_Seeded):
    """Sets values to 255 or 0 with two probabilities, in each channel of each pixel by itself."""

    def __init__(self, white_prob: float = 0.05, black_prob: float = 0.05) -> None:
        self.white_prob = as_number(self, "white_prob", white_prob, 0, 1)
        most = 1 - self.white_prob + 1e-9  # of rounding
        self.black_prob = as_number(self, "black_prob", black_prob, 0, most)

    def _augment(self, img: np.ndarray, param: int) -> np.ndarray:
        steps = _random_steps(param, img.shape)
        white = steps < round(self.white_prob * _STEPS)
        light = steps < _STEPS - round(self.black_prob * _STEPS)  # not black
        if img.dtype == np.uint8:  # by bits, which is eight times as fast
            return (img | np.negative(white.view(np.uint8))) & np.negative(light.view(np.uint8))
        result = np.where(white, 255, np.where(light, img, 0))
        return restore_dtype(img, result, clip=img.dtype.kind != "f")


def _random_steps(seed: int, shape: Tuple[int, ...]) -> np.ndarray:
    """Returns evenly distributed numbers in [0, _STEPS), as uint16."""
    count = int(np.prod(shape))
    return np.random.SFC64(seed).random_raw(count // 4 + 1).view(np.uint16)[:count].reshape(shape)


@memoized
def _normal_quantiles() -> np.ndarray:
    """Returns the normal distribution in equally likely steps, float32 `[_STEPS]`.

    Looking them up is six times as fast as `RandomState.standard_normal`.
    """
    values = np.linspace(-5, 5, 10001)
    cdf = [(1 + math.erf(value / math.sqrt(2))) / 2 for value in values]
    return np.interp((np.arange(_STEPS) + 0.5) / _STEPS, cdf, values).astype(np.float32)
