"""Augmentors that take a part of an image, remove one, or paste it onto a larger background."""

import math
from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.argtools import shape2d
from tensorpack.utils.checks import as_count, as_count_or_none, as_number, as_range
from tensorpack.utils.rect import Rect
from tensorpack.utils.rng import get_rng

from ._pixels import as_coords, as_dtype, as_size, check_size
from .base import ImageAugmentor, PhotometricAugmentor
from .transform import CropTransform, ResizeTransform, Transform, TransformList

_LINEAR = 1  # cv2.INTER_LINEAR
_ATTEMPTS = 10

_Edge = Union[int, Tuple[int, int]]


class CenterCrop(ImageAugmentor):
    """Takes a part from the middle; (height, width) in pixels, or one number for both."""

    def __init__(self, crop_shape: Union[int, Sequence[int]]) -> None:
        self.crop_shape = as_size(self, crop_shape)

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = self.crop_shape
        y0, x0 = self._place(*_spare(img, h, w))
        return CropTransform(y0, x0, h, w)

    def _place(self, rows: int, columns: int) -> Tuple[int, int]:
        return rows // 2, columns // 2


class RandomCrop(CenterCrop):
    """Takes a part from a random place; (height, width) in pixels, or one number for both."""

    def _place(self, rows: int, columns: int) -> Tuple[int, int]:
        return _draw_place(self.rng, rows, columns)


class FixedCrop(ImageAugmentor):
    """Takes the part of an image in a `utils.rect.Rect`; its attribute `rect`."""

    def __init__(self, rect: Rect) -> None:
        self.rect = rect

    def get_transform(self, img: np.ndarray) -> Transform:
        return CropTransform(self.rect.y0, self.rect.x0, self.rect.h, self.rect.w)


class RandomCropRandomShape(ImageAugmentor):
    """Takes a part of a random size from a random place.

    Args:
      wmin, hmin: the least width and height in pixels.
      wmax, hmax: the largest; None for those of the image, which is the limit in any case.
      max_aspect_ratio: the largest ratio of the longer edge to the shorter one; None for any.
    """

    def __init__(
        self,
        wmin: int,
        hmin: int,
        wmax: Optional[int] = None,
        hmax: Optional[int] = None,
        max_aspect_ratio: Optional[float] = None,
    ) -> None:
        self.wmin, self.hmin = as_count(self, "wmin", wmin), as_count(self, "hmin", hmin)
        self.wmax = as_count_or_none(self, "wmax", wmax, self.wmin)
        self.hmax = as_count_or_none(self, "hmax", hmax, self.hmin)
        self.max_aspect_ratio = max_aspect_ratio

    def get_transform(self, img: np.ndarray) -> Transform:
        _spare(img, self.hmin, self.wmin)
        hmax, wmax = min(self.hmax or img.shape[0], img.shape[0]), img.shape[1]
        w = self._draw(self.wmin, min(self.wmax or wmax, wmax), self.hmin, hmax)
        h = self._draw(self.hmin, hmax, w, w)
        y0, x0 = _draw_place(self.rng, img.shape[0] - h, img.shape[1] - w)
        return CropTransform(y0, x0, h, w)

    def _draw(self, least: int, most: int, other_least: int, other_most: int) -> int:
        """Draws one edge for which the other can be in its own range."""
        if self.max_aspect_ratio is not None:
            # What rounding errors add must not exclude an edge.
            least = max(least, math.ceil(other_least / self.max_aspect_ratio - 1e-6))
            most = min(most, int(other_most * self.max_aspect_ratio + 1e-6))
        return int(self.rng.randint(least, most + 1))


class RandomCropAroundBox(ImageAugmentor):
    """Takes the image without narrow strips of random widths at its four edges.

    Args:
      perturb_ratio: the widest strip, as a multiple of the square root of the image's area.
      max_aspect_ratio_diff: how much the aspect ratio may change, as a share of the old one.
    """

    def __init__(self, perturb_ratio: float, max_aspect_ratio_diff: float = 0.3) -> None:
        self.perturb_ratio = as_number(self, "perturb_ratio", perturb_ratio, 0)
        self.max_aspect_ratio_diff = max_aspect_ratio_diff

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = img.shape[:2]
        most = self.perturb_ratio * math.sqrt(h * w)
        box = perturb_BB((h, w), Rect(0, 0, w, h), most, self.rng, self.max_aspect_ratio_diff)
        return CropTransform(box.y0, box.x0, box.h, box.w)


class GoogleNetRandomCropAndResize(ImageAugmentor):
    """Takes a part of random area and aspect ratio, and resizes it.

    It is the usual one for ImageNet, from https://arxiv.org/abs/1409.4842, section 6. If none of 10
    random parts fits into the image, it is the largest one in the middle.

    Args:
      crop_area_fraction: (least, most) of its area, as a share of the image's.
      aspect_ratio_range: (least, most) of its width divided by its height. The logarithm is drawn
        evenly, so that wide and high parts are equally likely.
      target_shape: (height, width) of the result in pixels, or one number for both.
      interp: an interpolation of OpenCV; by default `cv2.INTER_LINEAR`.
    """

    def __init__(
        self,
        crop_area_fraction: Tuple[float, float] = (0.08, 1.0),
        aspect_ratio_range: Tuple[float, float] = (0.75, 1.333),
        target_shape: Union[int, Sequence[int]] = 224,
        interp: int = _LINEAR,
    ) -> None:
        self.crop_area_fraction = as_range(self, "crop_area_fraction", crop_area_fraction, 0, 1)
        self.aspect_ratio_range = as_range(self, "aspect_ratio_range", aspect_ratio_range)
        self.target_shape, self.interp = target_shape, interp
        self._size = as_size(self, target_shape)
        self._log_ratios = np.log(self.aspect_ratio_range).tolist()

    def get_transform(self, img: np.ndarray) -> Transform:
        y0, x0, h, w = self._draw_part(*img.shape[:2])
        resize = ResizeTransform(h, w, *self._size, self.interp)
        return TransformList([CropTransform(y0, x0, h, w), resize])

    def _draw_part(self, rows: int, columns: int) -> Tuple[int, int, int, int]:
        for _ in range(_ATTEMPTS):
            area = rows * columns * self.rng.uniform(*self.crop_area_fraction)
            ratio = math.exp(self.rng.uniform(*self._log_ratios))
            h, w = int(math.sqrt(area / ratio) + 0.5), int(math.sqrt(area * ratio) + 0.5)
            if 0 < h <= rows and 0 < w <= columns:
                return (*_draw_place(self.rng, rows - h, columns - w), h, w)
        # The largest part of the result's aspect ratio.
        scale = min(rows / self._size[0], columns / self._size[1])
        h, w = (max(1, int(edge * scale + 0.5)) for edge in self._size)
        return (rows - h) // 2, (columns - w) // 2, h, w


class RandomCutout(PhotometricAugmentor):
    """Fills a random rectangle with one colour: cutout, see https://arxiv.org/abs/1708.04552.

    The rectangle lies in the image as a whole. Coordinates, boxes and masks stay.

    Args:
      h_range, w_range: height and width of the rectangle in pixels: a number, or (least, most).
      fill: the colour: a number, or one for each channel.
    """

    def __init__(self, h_range: _Edge, w_range: _Edge, fill: Any = 0.0) -> None:
        self.h_range, self.w_range, self.fill = h_range, w_range, fill

    def _get_augment_params(self, img: np.ndarray) -> Rect:
        (hmin, hmax), (wmin, wmax) = shape2d(self.h_range), shape2d(self.w_range)
        h, w = self.rng.randint(hmin, hmax + 1), self.rng.randint(wmin, wmax + 1)
        y0, x0 = _draw_place(self.rng, *_spare(img, h, w))
        return Rect(x0, y0, int(w), int(h))

    def _augment(self, img: np.ndarray, param: Rect) -> np.ndarray:
        img = img.copy()
        param.roi(img)[:] = as_dtype(np.array(self.fill, np.float64), img.dtype)
        return img


class BackgroundFiller:
    """Makes the background that an image is pasted onto.

    A subclass overrides `fill`, or `_fill` with the same arguments, as in old scripts.
    """

    def fill(self, background_shape: Tuple[int, int], img: np.ndarray) -> np.ndarray:
        """Returns a new array of a given (height, width), the same for the same arguments.

        It has as many channels as `img`, which will be pasted onto it, and a dtype for its values.
        """
        return self._fill(background_shape, img)

    def _fill(self, background_shape: Tuple[int, int], img: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not define fill().")


class ConstantBackgroundFiller(BackgroundFiller):
    """Makes a background of one colour, a number or one for each channel, in the image's dtype."""

    def __init__(self, value: Union[float, Sequence[float]]) -> None:
        self.value = value

    def fill(self, background_shape: Tuple[int, int], img: np.ndarray) -> np.ndarray:
        canvas = np.empty((*background_shape, *img.shape[2:]), img.dtype)
        canvas[:1] = as_dtype(np.array(self.value, np.float64), img.dtype)
        canvas[1:] = canvas[:1]  # rows as a whole: much faster than pixels of three channels
        return canvas

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class PasteTransform(Transform):
    """Pastes an image of `h` x `w` pixels onto a background, which is 0 in masks.

    `y0` and `x0` are the row and column of the background where the first pixel comes;
    `background_shape` is (height, width).
    """

    def __init__(
        self,
        y0: int,
        x0: int,
        h: int,
        w: int,
        background_shape: Tuple[int, int],
        background_filler: BackgroundFiller,
    ) -> None:
        self.y0, self.x0, self.h, self.w = y0, x0, h, w
        self.background_shape: Any = tuple(background_shape)
        self.background_filler = background_filler

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        check_size(self, img, self.h, self.w)
        return self._paste(img, self.background_filler)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return as_coords(coords) + [self.x0, self.y0]

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        check_size(self, segmentation, self.h, self.w)
        return self._paste(segmentation, ConstantBackgroundFiller(0))

    def _paste(self, img: np.ndarray, filler: BackgroundFiller) -> np.ndarray:
        canvas = filler.fill(self.background_shape, img)
        place = canvas[self.y0 : self.y0 + self.h, self.x0 : self.x0 + self.w]
        np.copyto(place, img, casting="safe" if img.dtype.kind in "ui" else "same_kind")
        return canvas


class CenterPaste(ImageAugmentor):
    """Pastes the image into the middle of a background.

    Args:
      background_shape: (height, width) in pixels, or one number for both.
      background_filler: makes the background; by default one of zeros.
    """

    def __init__(
        self,
        background_shape: Union[int, Sequence[int]],
        background_filler: Optional[BackgroundFiller] = None,
    ) -> None:
        self.background_shape = as_size(self, background_shape)
        self.background_filler = background_filler or ConstantBackgroundFiller(0)

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = img.shape[:2]
        rows, columns = self.background_shape[0] - h, self.background_shape[1] - w
        if min(rows, columns) < 0:
            raise ValueError(f"The image is larger than the background of {self.background_shape}.")
        y0, x0 = self._place(rows, columns)
        return PasteTransform(y0, x0, h, w, self.background_shape, self.background_filler)

    def _place(self, rows: int, columns: int) -> Tuple[int, int]:
        return rows // 2, columns // 2


class RandomPaste(CenterPaste):
    """Pastes the image onto a background, see `CenterPaste`, at a random place."""

    def _place(self, rows: int, columns: int) -> Tuple[int, int]:
        return int(self.rng.randint(rows + 1)), int(self.rng.randint(columns + 1))


def perturb_BB(
    image_shape: Sequence[int],
    bb: Rect,
    max_perturb_pixel: float,
    rng: Optional[np.random.RandomState] = None,
    max_aspect_ratio_diff: float = 0.3,
    max_try: int = 100,
) -> Rect:
    """Moves the four edges of a box by at most `max_perturb_pixel` each, within the image.

    `image_shape` begins with height and width. The aspect ratio may change by a share of the old
    one. If none of `max_try` random boxes fits, the box is returned as it was.
    """
    rng = get_rng() if rng is None else rng
    most = int(as_number("perturb_BB", "max_perturb_pixel", max_perturb_pixel, 0))
    old = np.array([bb.x0, bb.y0, bb.x1, bb.y1])
    end = np.array([image_shape[1], image_shape[0]] * 2)
    lowest, highest = np.maximum(old - most, 0), np.minimum(old + most, end)
    for _ in range(max_try if np.all(lowest <= highest) else 0):
        x0, y0, x1, y1 = (int(edge) for edge in rng.randint(lowest, highest + 1))
        w, h = x1 - x0, y1 - y0
        change = abs(w * bb.h - h * bb.w)  # of the aspect ratio, times the areas below
        if min(w, h) > 0 and change <= max_aspect_ratio_diff * h * bb.w:
            return Rect(x0, y0, w, h)
    return bb


def _spare(img: np.ndarray, h: int, w: int) -> Tuple[int, int]:
    """Returns how many rows and columns of an image are left over by a part of it."""
    if img.shape[0] < h or img.shape[1] < w:
        raise ValueError(
            f"The image has less than {h} rows or {w} columns. Resize it before, such as with "
            f"ResizeShortestEdge({max(h, w)})."
        )
    return img.shape[0] - h, img.shape[1] - w


def _draw_place(rng: np.random.RandomState, rows: int, columns: int) -> Tuple[int, int]:
    """Draws the first row and column of a part that leaves so many of them over."""
    y, x = rng.rand(2).tolist()
    return int(y * (rows + 1)), int(x * (columns + 1))
