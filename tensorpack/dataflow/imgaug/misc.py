"""Augmentors that resize, flip or transpose an image."""

from typing import Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.checks import as_count, as_number, as_range, is_integer

from ._pixels import as_size
from .base import ImageAugmentor
from .transform import FlipTransform, NoOpTransform, ResizeTransform, Transform, TransposeTransform

_LINEAR = 1  # cv2.INTER_LINEAR
_ATTEMPTS = 50


class Flip(ImageAugmentor):
    """Mirrors the image with probability `prob`.

    Either left and right change places (`horiz`) or top and bottom (`vert`); for both use two.
    """

    def __init__(self, horiz: bool = False, vert: bool = False, prob: float = 0.5) -> None:
        if bool(horiz) == bool(vert):
            raise ValueError(
                "Flip needs horiz=True or vert=True; for both use two, one after the other."
            )
        self.horiz, self.vert = horiz, vert
        self.prob = as_number(self, "prob", prob, 0, 1)

    def get_transform(self, img: np.ndarray) -> Transform:
        if self.rng.rand() < self.prob:
            return FlipTransform(img.shape[0], img.shape[1], bool(self.horiz))
        return NoOpTransform()


class Resize(ImageAugmentor):
    """Resizes the image to a given size.

    Args:
      shape: (height, width) in pixels, or one number for both.
      interp: an interpolation of OpenCV; by default `cv2.INTER_LINEAR`.
    """

    def __init__(self, shape: Union[int, Sequence[int]], interp: int = _LINEAR) -> None:
        self.shape, self.interp = as_size(self, shape), interp

    def get_transform(self, img: np.ndarray) -> Transform:
        return ResizeTransform(img.shape[0], img.shape[1], *self.shape, self.interp)


class ResizeShortestEdge(ImageAugmentor):
    """Resizes the image so that its shorter edge has `size` pixels, and keeps the aspect ratio.

    `interp` is an interpolation of OpenCV; by default `cv2.INTER_LINEAR`.
    """

    def __init__(self, size: int, interp: int = _LINEAR) -> None:
        self.size, self.interp = as_count(self, "size", size), interp

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = img.shape[:2]
        scale = self.size / min(h, w)
        new_h, new_w = max(1, int(h * scale + 0.5)), max(1, int(w * scale + 0.5))
        return ResizeTransform(h, w, new_h, new_w, self.interp)


class RandomResize(ImageAugmentor):
    """Resizes the image to a random size, at nearly the same aspect ratio.

    Sizes are drawn until the aspect ratio fits. If none of 50 does, the image is left as it is,
    with a warning.

    Args:
      xrange: (least, most) of the new width: two integers are pixels, others multiples of it.
      yrange: the same of the height; None for that of the width. With `aspect_ratio_thres=0` the
        height follows from the width.
      minimum: (width, height) in pixels that the result has at least: smaller ones are raised.
      aspect_ratio_thres: how much the aspect ratio may change, as a share of the old one.
      interp: an interpolation of OpenCV; by default `cv2.INTER_LINEAR`.
    """

    def __init__(
        self,
        xrange: Tuple[float, float],
        yrange: Optional[Tuple[float, float]] = None,
        minimum: Tuple[int, int] = (0, 0),
        aspect_ratio_thres: float = 0.15,
        interp: int = _LINEAR,
    ) -> None:
        as_range(self, "xrange", xrange, 0)
        as_range(self, "yrange", xrange if yrange is None else yrange, 0)
        self.xrange, self.yrange, self.minimum, self.interp = xrange, yrange, minimum, interp
        self.aspect_ratio_thres = as_number(self, "aspect_ratio_thres", aspect_ratio_thres, 0)

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = img.shape[:2]
        for _ in range(_ATTEMPTS):
            new_w = self._draw(self.xrange, w)
            if self.aspect_ratio_thres:
                new_h = self._draw(self.xrange if self.yrange is None else self.yrange, h)
            else:
                new_h = max(1, int(new_w * h / w + 0.5))
            new_w, new_h = max(new_w, self.minimum[0]), max(new_h, self.minimum[1])
            change = abs(new_w * h / (new_h * w) - 1)
            if not self.aspect_ratio_thres or change <= self.aspect_ratio_thres:
                return ResizeTransform(h, w, new_h, new_w, self.interp)
        logger.warning(f"{self} found no size for an image of shape {img.shape}; it is left as is.")
        return NoOpTransform()

    def _draw(self, limits: Tuple[float, float], size: int) -> int:
        least, most = limits
        if is_integer(least) and is_integer(most):
            return int(self.rng.randint(int(least), int(most) + 1))
        return max(1, int(self.rng.uniform(least, most) * size + 0.5))


class Transpose(ImageAugmentor):
    """Exchanges rows and columns with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = as_number(self, "prob", prob, 0, 1)

    def get_transform(self, img: np.ndarray) -> Transform:
        return TransposeTransform() if self.rng.rand() < self.prob else NoOpTransform()
