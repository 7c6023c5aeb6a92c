"""Augmentors that resize, flip, transpose, shift, rotate, scale, shear and bend an image.

Where the result shows what is beyond the edge of the image, it takes what OpenCV's border types
say, such as `cv2.BORDER_REPLICATE`, the default.
"""

import math
from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.checks import as_count, as_number, as_positive, as_range, is_integer
from tensorpack.utils.optional import cv2

from ._pixels import as_coords, as_size, check_size, keep_channels, move_labels
from .base import ImageAugmentor
from .transform import (
    FlipTransform,
    NoOpTransform,
    ResizeTransform,
    Transform,
    TransposeTransform,
    WarpAffineTransform,
)

_LINEAR = 1  # cv2.INTER_LINEAR
_REPLICATE = 1  # cv2.BORDER_REPLICATE
_Value = Union[float, Sequence[float]]
_ATTEMPTS = 50  # to draw a size


class Flip(ImageAugmentor):
    """Mirrors the image with probability `prob`.

    Either left and right change places (`horiz`) or top and bottom (`vert`); for both use two.
    """

    def __init__(self, horiz: bool = False, vert: bool = False, prob: float = 0.5) -> None:
        if bool(horiz) == bool(vert):
            raise ValueError("Flip needs horiz=True or vert=True; for both use two.")
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


class ShiftTransform(WarpAffineTransform):
    """Moves an image by whole pixels; of any number of channels.

    Args:
      dx, dy: how many columns to the right and rows down; negative for left and up.
      dsize: (width, height) of the image.
    """

    def __init__(
        self,
        dx: int,
        dy: int,
        dsize: Tuple[int, int],
        borderMode: int = _REPLICATE,
        borderValue: _Value = 0,
    ) -> None:
        mat = np.array([[1.0, 0.0, dx], [0.0, 1.0, dy]])
        super().__init__(mat, dsize, _LINEAR, borderMode, borderValue)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return as_coords(coords) + self.mat[:, 2]

    def _warp_by(self, img: np.ndarray, flags: int, border: int, value: Any) -> np.ndarray:
        h, w = img.shape[:2]
        dx, dy = map(int, self.mat[:, 2])
        right, down = max(dx, 0), max(dy, 0)
        wide = cv2.copyMakeBorder(img, down, max(-dy, 0), right, max(-dx, 0), border, value=value)
        top, left = down - dy, right - dx
        return wide[top : top + h, left : left + w]


class Shift(ImageAugmentor):
    """Moves the image by whole pixels, to the sides and up or down.

    Args:
      horiz_frac: by how much of the width at most, in either direction; in [0, 1].
      vert_frac: the same of the height.
      border: a border type of OpenCV; by default `cv2.BORDER_REPLICATE`.
      border_value: for `cv2.BORDER_CONSTANT`: a number, or one for each channel.
    """

    def __init__(
        self,
        horiz_frac: float = 0,
        vert_frac: float = 0,
        border: int = _REPLICATE,
        border_value: _Value = 0,
    ) -> None:
        self.horiz_frac = as_number(self, "horiz_frac", horiz_frac, 0, 1)
        self.vert_frac = as_number(self, "vert_frac", vert_frac, 0, 1)
        self.border, self.border_value = border, border_value

    def get_transform(self, img: np.ndarray) -> Transform:
        most_x, most_y = int(self.horiz_frac * img.shape[1]), int(self.vert_frac * img.shape[0])
        dx, dy = self.rng.randint(-most_x, most_x + 1), self.rng.randint(-most_y, most_y + 1)
        size = img.shape[1], img.shape[0]
        return ShiftTransform(int(dx), int(dy), size, self.border, self.border_value)


class Rotation(ImageAugmentor):
    """Rotates the image by a random angle around a random point; its size stays.

    Args:
      max_deg: the largest angle in degrees, in either direction.
      center_range: (least, most) of the place of that point, in each direction as a multiple of
        the width or height; (0.5, 0.5) is the middle.
      interp: an interpolation of OpenCV; by default `cv2.INTER_LINEAR`.
      border, border_value: as in `Shift`.
      step_deg: the angles are multiples of it, all equally likely.
    """

    def __init__(
        self,
        max_deg: float,
        center_range: Tuple[float, float] = (0, 1),
        interp: int = _LINEAR,
        border: int = _REPLICATE,
        step_deg: Optional[float] = None,
        border_value: _Value = 0,
    ) -> None:
        self.max_deg = as_number(self, "max_deg", max_deg, 0)
        as_range(self, "center_range", center_range)
        self.center_range = center_range
        self.step_deg = step_deg if step_deg is None else as_positive(self, "step_deg", step_deg)
        self.interp, self.border, self.border_value = interp, border, border_value

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = img.shape[:2]
        x, y = self.rng.uniform(*self.center_range, size=2) * [w, h]
        matrix = _rotation(_draw_degrees(self), (x, y), (x, y))
        return WarpAffineTransform(matrix, (w, h), self.interp, self.border, self.border_value)


class RotationAndCropValid(ImageAugmentor):
    """Rotates the image around its middle, and takes the largest upright part without any border.

    The size of the result depends on the angle: resize it afterwards.

    Args:
      max_deg, interp, step_deg: as in `Rotation`.
    """

    def __init__(
        self, max_deg: float, interp: int = _LINEAR, step_deg: Optional[float] = None
    ) -> None:
        self.max_deg, self.interp = as_number(self, "max_deg", max_deg, 0), interp
        self.step_deg = step_deg if step_deg is None else as_positive(self, "step_deg", step_deg)

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = img.shape[:2]
        degrees = _draw_degrees(self)
        size = self.largest_rotated_rect(w, h, degrees)
        matrix = _rotation(degrees, (w / 2, h / 2), (size[0] / 2, size[1] / 2))
        return WarpAffineTransform(matrix, size, self.interp, _REPLICATE)

    @staticmethod
    def largest_rotated_rect(w: float, h: float, angle: float) -> Tuple[int, int]:
        """Returns (width, height) of the largest upright rectangle in one rotated by degrees.

        With `c` and `s` for the cosine and sine of the angle, one of `a` x `b` lies in it if
        `a c + b s <= w` and `a s + b c <= h`. The area is largest where the first is an equality
        at `a c = b s`, unless that violates the second; or the other way round; or else where both
        are equalities.
        """
        c, s = abs(math.cos(math.radians(angle))), abs(math.sin(math.radians(angle)))
        if w <= 2 * c * s * h:
            a, b = w / (2 * c), w / (2 * s)
        elif h <= 2 * c * s * w:
            a, b = h / (2 * s), h / (2 * c)
        else:
            a, b = ((w * c - h * s) / (c * c - s * s), (h * c - w * s) / (c * c - s * s))
        return max(1, int(a + 1e-6)), max(1, int(b + 1e-6))


class Affine(ImageAugmentor):
    """Scales, rotates, shears and shifts the image around its middle; its size stays.

    Args:
      scale: (least, most) of the factor; None does not scale.
      translate_frac: by how much of the width and of the height the image is shifted at most, in
        either direction, by whole pixels; None does not shift.
      rotate_max_deg: the largest angle in degrees, in either direction.
      shear: the largest angle in degrees by which the vertical axis is turned on its own.
      interp, border, border_value: as in `Rotation` and `Shift`.
    """

    def __init__(
        self,
        scale: Optional[Tuple[float, float]] = None,
        translate_frac: Optional[Tuple[float, float]] = None,
        rotate_max_deg: float = 0.0,
        shear: float = 0.0,
        interp: int = _LINEAR,
        border: int = _REPLICATE,
        border_value: _Value = 0,
    ) -> None:
        self.scale, self.translate_frac = scale, translate_frac
        if scale is not None:
            self.scale = as_range(self, "scale", scale)
        if translate_frac is not None:
            x, y = (as_number(self, "translate_frac", frac, 0, 1) for frac in translate_frac)
            self.translate_frac = x, y
        self.rotate_max_deg = as_number(self, "rotate_max_deg", rotate_max_deg, 0)
        self.shear = as_number(self, "shear", shear, 0, 180)
        self.interp, self.border, self.border_value = interp, border, border_value

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = img.shape[:2]
        scale = self.rng.uniform(*(self.scale or (1, 1)))
        shift = np.rint(self.rng.uniform(-1, 1, 2) * (self.translate_frac or (0, 0)) * [w, h])
        turn_x = math.radians(self.rng.uniform(-1, 1) * self.rotate_max_deg)
        turn_y = turn_x + math.radians(self.rng.uniform(-1, 1) * self.shear)
        linear = scale * np.array(
            [[math.cos(turn_x), -math.sin(turn_y)], [math.sin(turn_x), math.cos(turn_y)]]
        )
        matrix = _around(linear, (w / 2, h / 2), shift + [w / 2, h / 2])
        return WarpAffineTransform(matrix, (w, h), self.interp, self.border, self.border_value)


class RemapTransform(Transform):
    """Takes each pixel of the result from a place of its own; coordinates are not supported.

    `places` are float32 `[h, w, 2]`, (column, row) in the image of what each pixel shows.
    """

    def __init__(self, places: np.ndarray) -> None:
        self.places = places

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        return self._remap(img, cv2.INTER_LINEAR)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return move_labels(segmentation, lambda mask: self._remap(mask, cv2.INTER_NEAREST))

    def _remap(self, img: np.ndarray, interp: int) -> np.ndarray:
        check_size(self, img, *self.places.shape[:2])
        result = cv2.remap(img, self.places, None, interp, borderMode=cv2.BORDER_REPLICATE)
        return keep_channels(img, result)


class GaussianDeform(ImageAugmentor):
    """Bends the image: anchors move at random, and each pixel moves with those near it.

    It moves by the sum of their moves, weighted with a Gaussian of its distance to each.
    Coordinates are not supported.

    Args:
      anchors: (y, x) of each anchor, as multiples of height and width, such as
        `[(0.2, 0.2), (0.2, 0.8), (0.8, 0.2), (0.8, 0.8)]`.
      shape: (height, width) of the images in pixels, or one number for both; all are of this size.
      sigma: twice the variance of the Gaussian `exp(-d ** 2 / sigma)`, in the unit of the anchors.
      randrange: by how many pixels an anchor moves at most, in each direction; by default an eighth
        of the height.
    """

    def __init__(
        self,
        anchors: Sequence[Tuple[float, float]],
        shape: Sequence[int],
        sigma: float = 0.5,
        randrange: Optional[float] = None,
    ) -> None:
        h, w = as_size(self, shape)
        self.anchors, self.shape, self.sigma = anchors, (h, w), as_positive(self, "sigma", sigma)
        self.randrange = randrange
        self._most = h / 8 if randrange is None else as_number(self, "randrange", randrange, 0)
        self._grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)), axis=2).astype(np.float32)
        pixels = self._grid[:, :, np.newaxis] / [w, h]
        squared = np.sum((pixels - np.array(anchors)[:, ::-1]) ** 2, axis=3)
        # How much each pixel follows each anchor, [h * w, anchors].
        self._weights = np.exp(-squared / sigma).astype(np.float32).reshape(h * w, -1)

    def get_transform(self, img: np.ndarray) -> Transform:
        moves = self.rng.uniform(-self._most, self._most, (len(self.anchors), 2))
        moved = self._weights @ moves[:, ::-1].astype(np.float32)
        return RemapTransform(self._grid + moved.reshape(self._grid.shape))


def _draw_degrees(augmentor: Any) -> float:
    most, step = augmentor.max_deg, augmentor.step_deg
    if step is None:
        return augmentor.rng.uniform(-most, most)
    steps = int(most / step + 1e-6)  # 0.3 / 0.1 is less than 3
    once = math.isclose(2 * steps * step, 360)  # half a turn to the left is one to the right
    return augmentor.rng.randint(-steps + once, steps + 1) * step


def _rotation(degrees: float, center: Sequence[float], to: Sequence[float]) -> np.ndarray:
    """Returns the matrix of a counter-clockwise rotation, as `cv2.getRotationMatrix2D` does."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return _around(np.array([[c, s], [-s, c]]), center, to)


def _around(linear: np.ndarray, center: Sequence[float], to: Sequence[float]) -> np.ndarray:
    """Returns the matrix `[2, 3]` of a linear map that takes one point to another.

    The points are continuous coordinates, and the matrix is one between centres of pixels.
    """
    return np.column_stack([linear, np.subtract(to, 0.5) - linear @ np.subtract(center, 0.5)])
