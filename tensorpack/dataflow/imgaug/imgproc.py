"""Augmentors of colour, brightness, contrast and sharpness, and of colour spaces and dtypes.

Values are in [0, 255], in uint8 and in floats. uint8 is always rounded and clipped.
"""

from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.argtools import log_once
from tensorpack.utils.checks import as_count, as_number, as_positive, as_range
from tensorpack.utils.optional import cv2

from ._pixels import as_dtype, channels_of, check_rgb, linear, restore_dtype
from .base import PhotometricAugmentor

_GRAY = np.array([0.299, 0.587, 0.114])  # of red, green and blue, see cv2.COLOR_RGB2GRAY


class Hue(PhotometricAugmentor):
    """Turns the hue by a random angle.

    Args:
      range: (least, most) of the angle, in units of two degrees: 180 is a full turn.
      rgb: whether channels are in the order RGB; otherwise BGR.
    """

    def __init__(self, range: Tuple[float, float] = (0, 180), rgb: Optional[bool] = True) -> None:
        self.range = self._limits = as_range(self, "range", range)
        self.rgb = bool(rgb)

    def _augment(self, img: np.ndarray, param: float) -> np.ndarray:
        check_rgb(self, img)
        to_hsv, back = cv2.COLOR_BGR2HSV, cv2.COLOR_HSV2BGR
        if self.rgb:
            to_hsv, back = cv2.COLOR_RGB2HSV, cv2.COLOR_HSV2RGB
        hsv = cv2.cvtColor(img, to_hsv)
        if hsv.dtype == np.uint8:  # a hue of 180 is a full turn
            table = ((np.arange(256) + round(param)) % 180).astype(np.uint8)
            cv2.insertChannel(cv2.LUT(cv2.extractChannel(hsv, 0), table), hsv, 0)
        else:  # degrees
            hsv[:, :, 0] = (hsv[:, :, 0] + 2 * param) % 360
        return cv2.cvtColor(hsv, back)


class Saturation(PhotometricAugmentor):
    """Mixes the image with its grey version: `img * v + gray * (1 - v)`.

    Args:
      alpha: `v` is drawn from [1 - alpha, 1 + alpha]; at most 1.
      rgb: whether channels are in the order RGB; otherwise BGR.
      clip: whether floats are clipped to [0, 255], too.
    """

    def __init__(self, alpha: float = 0.4, rgb: Optional[bool] = True, clip: bool = True) -> None:
        self.alpha, self.rgb, self.clip = as_number(self, "alpha", alpha, 0, 1), bool(rgb), clip

    def _get_augment_params(self, img: np.ndarray) -> float:
        return 1 + self.rng.uniform(-self.alpha, self.alpha)

    def _augment(self, img: np.ndarray, param: float) -> np.ndarray:
        check_rgb(self, img)
        matrix = np.zeros((3, 4))
        matrix[:, :3] = (1 - param) * (_GRAY if self.rgb else _GRAY[::-1])
        matrix[[0, 1, 2], [0, 1, 2]] += param
        return restore_dtype(img, cv2.transform(img, matrix), self.clip)


class Brightness(PhotometricAugmentor):
    """Adds a random number in [-delta, delta] to all values.

    `clip` says whether floats are clipped to [0, 255], too.
    """

    def __init__(self, delta: float, clip: bool = True) -> None:
        self.delta, self.clip = as_positive(self, "delta", delta), clip
        self._limits = -self.delta, self.delta

    def _augment(self, img: np.ndarray, param: float) -> np.ndarray:
        return linear(img, 1, param, self.clip)


class BrightnessScale(PhotometricAugmentor):
    """Multiplies all values by a random number in `range`, (least, most), not negative.

    `clip` says whether floats are clipped to [0, 255], too.
    """

    def __init__(self, range: Tuple[float, float], clip: bool = True) -> None:
        self.range = self._limits = as_range(self, "range", range, 0)
        self.clip = clip

    def _augment(self, img: np.ndarray, param: float) -> np.ndarray:
        return linear(img, param, 0, self.clip)


class Contrast(PhotometricAugmentor):
    """Scales the distance of values from their mean: `mean + (img - mean) * factor`.

    Write `rgb=` and `clip=` by name: the second argument was `clip` until 2019, and `rgb` later. A
    single bool is read as `clip`, with a warning.

    Args:
      factor_range: (least, most) of the factor; not negative.
      rgb: None for a mean of each channel; True or False for the mean of the grey version of an
        RGB or BGR image.
      clip: whether floats are clipped to [0, 255], too.
    """

    def __init__(
        self,
        factor_range: Tuple[float, float],
        *old: Any,
        rgb: Optional[bool] = None,
        clip: bool = True,
    ) -> None:
        if len(old) == 1 and old[0] is not None and clip:
            clip = old[0]
            log_once(f"Contrast: write clip={clip} or rgb={clip}; it is read as clip.", "warning")
        elif old:
            rgb, clip = (*old, clip)[:2]
        self.factor_range = self._limits = as_range(self, "factor_range", factor_range, 0)
        self.rgb, self.clip = rgb, clip

    def _augment(self, img: np.ndarray, param: float) -> np.ndarray:
        mean = cv2.meanStdDev(img)[0][:, 0]  # cv2.mean takes only four channels
        if self.rgb is not None and channels_of(img) > 1:
            check_rgb(self, img)
            mean = mean @ (_GRAY if self.rgb else _GRAY[::-1])
        return linear(img, param, mean * (1 - param), self.clip)


class Gamma(PhotometricAugmentor):
    """Changes brightness by a power: `255 * (img / 255) ** (1 / (1 + g))`.

    `range` is (least, most) of `g`, above -1; positive numbers make the image brighter.
    """

    def __init__(self, range: Tuple[float, float] = (-0.5, 0.5)) -> None:
        self.range = self._limits = as_range(self, "range", range, -1)

    def _augment(self, img: np.ndarray, param: float) -> np.ndarray:
        exponent = 1 / (1 + param)
        if img.dtype == np.uint8:
            table = 255 * (np.arange(256) / 255) ** exponent
            return restore_dtype(img, cv2.LUT(img, as_dtype(table, np.uint8)))
        unit = np.clip(img, 0, 255) / 255  # a negative number has no power
        return restore_dtype(img, cv2.pow(unit, exponent) * 255, clip=True)


class Clip(PhotometricAugmentor):
    """Clips values to [min, max]."""

    def __init__(self, min: float = 0, max: float = 255) -> None:
        self.min, self.max = as_range(self, "(min, max)", (min, max))

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        return np.clip(img, *as_dtype(np.array([self.min, self.max]), img.dtype))


class Lighting(PhotometricAugmentor):
    """Adds a random colour along the principal components of the pixels of a dataset.

    It is `eigvec @ (a * eigval)`, where the three numbers `a` are normally distributed; see
    Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks (2012), 4.1.

    Args:
      std: standard deviation of the numbers `a`.
      eigval: three eigenvalues, for values in [0, 255].
      eigvec: the eigenvectors `[3, 3]`, in columns; their rows are in the order of the channels.
      clip: whether floats are clipped to [0, 255], too.
    """

    def __init__(self, std: float, eigval: Sequence[float], eigvec: Any, clip: bool = True) -> None:
        self.std, self.clip = as_number(self, "std", std, 0), clip
        self.eigval, self.eigvec = np.array(eigval, np.float64), np.array(eigvec, np.float64)

    def _get_augment_params(self, img: np.ndarray) -> np.ndarray:
        return self.rng.randn(3) * self.std

    def _augment(self, img: np.ndarray, param: np.ndarray) -> np.ndarray:
        check_rgb(self, img)
        return linear(img, 1, self.eigvec @ (param * self.eigval), self.clip)


class GaussianBlur(PhotometricAugmentor):
    """Blurs the image with a Gaussian of random size, see `cv2.GaussianBlur`.

    The window has `2 * n + 1` pixels. Beyond the border the outermost pixels are repeated.

    Args:
      size_range: `n` is drawn from the integers (first, one after the last). One integer is that
        of 2017, for the range from 0.
      sigma_range: (least, most) of the standard deviation in pixels; 0 stands for the one that
        OpenCV takes for the window, `0.3 * (n - 1) + 0.8`.
      symmetric: whether both directions have the same size and standard deviation.
      max_size: a second name for one integer as `size_range`.
    """

    def __init__(
        self,
        size_range: Union[int, Tuple[int, int]] = (0, 3),
        sigma_range: Tuple[float, float] = (0, 0),
        symmetric: bool = True,
        max_size: Optional[int] = None,
    ) -> None:
        limits: Any = size_range if max_size is None else max_size
        first, end = (0, limits) if np.ndim(limits) == 0 else as_range(self, "size_range", limits)
        first = as_count(self, "size_range", first, 0)
        self.size_range = (first, as_count(self, "the end of size_range", end, first + 1))
        self.sigma_range = as_range(self, "sigma_range", sigma_range, 0)
        self.symmetric, self.max_size = symmetric, max_size

    def _get_augment_params(self, img: np.ndarray) -> Tuple[Tuple[int, ...], Tuple[float, ...]]:
        sizes = self.rng.randint(*self.size_range, size=2) * 2 + 1
        sigmas = self.rng.uniform(*self.sigma_range, size=2)
        if self.symmetric:
            sizes[1], sigmas[1] = sizes[0], sigmas[0]
        return tuple(sizes.tolist()), tuple(sigmas.tolist())

    def _augment(self, img: np.ndarray, param: Any) -> np.ndarray:
        size, (across, down) = param
        blurred = cv2.GaussianBlur(
            img, size, sigmaX=across, sigmaY=down, borderType=cv2.BORDER_REPLICATE
        )
        return restore_dtype(img, blurred)


class MeanVarianceNormalize(PhotometricAugmentor):
    """Gives the values mean 0 and standard deviation 1, as float32.

    They are divided by at least `1 / sqrt(h * w * c)`, so an image of one colour becomes 0; see
    `tf.image.per_image_standardization`. `all_channel` says whether mean and standard deviation are
    those of all channels together.
    """

    def __init__(self, all_channel: bool = True) -> None:
        self.all_channel = all_channel

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        values = img.reshape(len(img), -1) if self.all_channel else img
        mean, std = (column[:, 0] for column in cv2.meanStdDev(values))
        scale = 1 / np.maximum(std, 1 / np.sqrt(img.size))
        return linear(linear(img.astype(np.float32), 1, -mean, clip=False), scale, 0, clip=False)


class MinMaxNormalize(PhotometricAugmentor):
    """Stretches the values to [min, max], as float32; an image of one value gets the least one.

    `all_channel` says whether the values of all channels are stretched together.
    """

    def __init__(self, min: float = 0, max: float = 255, all_channel: bool = True) -> None:
        self.min, self.max = as_range(self, "(min, max)", (min, max))
        self.all_channel = all_channel

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        channels = [img.reshape(len(img), -1)] if self.all_channel else cv2.split(img)
        least, most = np.array([cv2.minMaxLoc(channel)[:2] for channel in channels]).T
        scale = (self.max - self.min) / np.where(most > least, most - least, 1)
        above = linear(img.astype(np.float32), 1, -least, clip=False)
        return linear(above, scale, self.min, clip=False)


class ColorSpace(PhotometricAugmentor):
    """Converts the image to another colour space, see `cv2.cvtColor`.

    Args:
      mode: a conversion of OpenCV, such as `cv2.COLOR_BGR2RGB`.
      keepdims: whether a result of one channel is `[h, w, 1]`; otherwise it is `[h, w]`.
    """

    def __init__(self, mode: int, keepdims: bool = True) -> None:
        self.mode, self.keepdims = as_count(self, "mode", mode, 0), keepdims

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        result = cv2.cvtColor(img, self.mode)
        return result[:, :, np.newaxis] if self.keepdims and result.ndim == 2 else result


class Grayscale(ColorSpace):
    """Converts a colour image to grey.

    Args:
      keepdims: whether the result is `[h, w, 1]`; otherwise it is `[h, w]`.
      rgb: whether channels are in the order RGB; otherwise BGR.
      keepshape: whether the result is `[h, w, 3]`, of three equal channels.
    """

    def __init__(self, keepdims: bool = True, rgb: bool = False, keepshape: bool = False) -> None:
        super().__init__(cv2.COLOR_RGB2GRAY if rgb else cv2.COLOR_BGR2GRAY, keepdims)
        self.rgb, self.keepshape = rgb, keepshape

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        result = super()._augment(img, param)
        return cv2.merge([result] * 3) if self.keepshape else result


class ToUint8(PhotometricAugmentor):
    """Clips values to [0, 255] and converts them to uint8; fractions are cut off."""

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        if img.dtype == np.uint8:
            return img
        return np.clip(img, 0, 255).astype(np.uint8)


class ToFloat32(PhotometricAugmentor):
    """Converts values to float32."""

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        return img.astype(np.float32, copy=False)
