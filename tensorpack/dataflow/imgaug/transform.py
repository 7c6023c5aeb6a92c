"""Transforms: what an augmentor does to one image and what lies on it, after all random draws.

Coordinates are continuous: a pixel in column `i` and row `j` covers `x` from `i` to `i + 1` and `y`
from `j` to `j + 1`. So its centre is at `(i + 0.5, j + 0.5)`, and an image of width `w` reaches
from 0 to `w`.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.optional import cv2

from ._pixels import as_coords, as_floats, as_rows, check_size, keep_channels, move_labels

_NEAREST = 0  # cv2.INTER_NEAREST
_LINEAR = 1  # cv2.INTER_LINEAR
_CONSTANT = 0  # cv2.BORDER_CONSTANT
_INTERPOLATIONS, _INVERSE_MAP = 7, 16  # cv2.INTER_MAX, a mask; and cv2.WARP_INVERSE_MAP


class Transform:
    """A deterministic function of an image and of what lies on it.

    It is a value: it can be applied any number of times, also in another process. It does not write
    to its arguments; a result may be a view of them.

    A subclass overrides `apply_image`. If pixels move it also overrides `apply_coords`, on which
    `apply_box` is built, and `apply_segmentation`.
    """

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        """Returns the transformed image, from one of the shape that it was made for."""
        raise _not_done(self, "apply_image")

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        """Returns where points of the image are afterwards; floats `[N, 2]` of (x, y)."""
        raise _not_done(self, "apply_coords")

    def apply_box(self, box: np.ndarray) -> np.ndarray:
        """Returns the smallest upright boxes around the transformed ones, which may reach beyond
        the image; floats `[N, 4]` of (x1, y1, x2, y2).
        """
        box = as_rows("boxes", box, 4)
        corners = self.apply_coords(box[:, [0, 1, 2, 1, 0, 3, 2, 3]].reshape(-1, 2))
        corners = corners.reshape(-1, 4, 2)
        return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        """Returns a transformed mask, whose values were all there before: a label for each pixel,
        `[h, w]` or `[h, w, c]`, of any number type.
        """
        raise _not_done(self, "apply_segmentation")

    def _init(self, params: Optional[Dict[str, Any]] = None) -> None:
        """The spelling of scripts: stores the `locals()` of a constructor as attributes."""
        for name, value in (params or {}).items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("apply_"):
            raise _not_done(self, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"


class TransformList(Transform):
    """Applies transforms one after the other, with each `apply_` method that all of them have.

    Lists can be added up.
    """

    def __init__(self, tfms: Sequence[Transform]) -> None:
        self.tfms = list(tfms)

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        return self._apply("apply_image", img)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return self._apply_to_floats("apply_coords", coords)

    def apply_box(self, box: np.ndarray) -> np.ndarray:
        return self._apply_to_floats("apply_box", box)

    def _apply_to_floats(self, name: str, rows: Any) -> np.ndarray:
        rows = as_floats(rows)
        return np.asarray(self._apply(name, rows)).astype(rows.dtype, copy=False)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return self._apply("apply_segmentation", segmentation)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("apply_"):
            return lambda value: self._apply(name, value)
        return super().__getattr__(name)

    def _apply(self, name: str, value: Any) -> Any:
        for tfm in self.tfms:
            value = getattr(tfm, name)(value)
        return value

    def __getitem__(self, index: int) -> Transform:
        return self.tfms[index]  # in 2017 it was a list of what was drawn

    def __add__(self, other: Transform) -> "TransformList":
        return TransformList(self.tfms + _as_tfms(other))

    def __radd__(self, other: Transform) -> "TransformList":
        return TransformList(_as_tfms(other) + self.tfms)


class NoOpTransform(TransformList):
    """Changes nothing."""

    def __init__(self) -> None:
        super().__init__([])


class TransformFactory(Transform):
    """A transform made of functions::

        TransformFactory(apply_image=lambda img: 255 - img, apply_coords=lambda coords: coords)

    `name` is how it is shown.
    """

    def __init__(self, name: Optional[str] = None, **functions: Callable[[Any], Any]) -> None:
        self._name = name or type(self).__name__
        vars(self).update(functions)

    def __repr__(self) -> str:
        return self._name


class PhotometricTransform(Transform):
    """Changes the values of pixels, and moves none.

    `func` is an augmentor that has `_augment(img, param)`, with what it drew, or else a function of
    an image, with the name that is shown.
    """

    def __init__(self, func: Any, name: Optional[str] = None, param: Any = None) -> None:
        self.func, self.param, self.name = func, param, name

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        augment = getattr(self.func, "_augment", None)
        return self.func(img) if augment is None else augment(img, self.param)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        augment = getattr(self.func, "_augment_coords", None)
        return coords if augment is None else augment(coords, self.param)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return segmentation


class ResizeTransform(Transform):
    """Resizes an image from `h` x `w` to `new_h` x `new_w` pixels; `interp` is one of OpenCV."""

    def __init__(self, h: int, w: int, new_h: int, new_w: int, interp: int) -> None:
        self.h, self.w, self.new_h, self.new_w, self.interp = h, w, new_h, new_w, interp

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        check_size(self, img, self.h, self.w)
        result = cv2.resize(img, (self.new_w, self.new_h), interpolation=self.interp)
        return keep_channels(img, result)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        coords = as_coords(coords)
        return coords * np.array([self.new_w / self.w, self.new_h / self.h], coords.dtype)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        check_size(self, segmentation, self.h, self.w)
        # Not by cv2.INTER_NEAREST, which is half a pixel beside all else.
        rows = ((np.arange(self.new_h) + 0.5) * (self.h / self.new_h)).astype(int)
        columns = ((np.arange(self.new_w) + 0.5) * (self.w / self.new_w)).astype(int)
        return segmentation[rows[:, np.newaxis], columns]


class CropTransform(Transform):
    """Takes `h` x `w` pixels of an image, as a view; `y0` and `x0` are the first row and column."""

    def __init__(self, y0: int, x0: int, h: int, w: int) -> None:
        self.y0, self.x0, self.h, self.w = y0, x0, h, w

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        bottom, right = self.y0 + self.h, self.x0 + self.w
        if min(self.y0, self.x0) < 0 or bottom > img.shape[0] or right > img.shape[1]:
            raise ValueError(f"{self} reaches beyond an image of shape {img.shape}.")
        return img[self.y0 : bottom, self.x0 : right]

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        coords = as_coords(coords)
        return coords - np.array([self.x0, self.y0], coords.dtype)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return self.apply_image(segmentation)


class FlipTransform(Transform):
    """Mirrors an image of `h` x `w` pixels: left and right if `horiz`, otherwise top and bottom."""

    def __init__(self, h: int, w: int, horiz: bool = True) -> None:
        self.h, self.w, self.horiz = h, w, horiz

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        # Not a view from the right: every later step would be slower on it.
        return keep_channels(img, cv2.flip(img, 1 if self.horiz else 0))

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        coords = as_coords(coords).copy()
        axis, size = (0, self.w) if self.horiz else (1, self.h)
        coords[:, axis] = size - coords[:, axis]
        return coords

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return segmentation[:, ::-1] if self.horiz else segmentation[::-1]


class TransposeTransform(Transform):
    """Exchanges rows and columns, as a view."""

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        return img.swapaxes(0, 1)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return as_coords(coords)[:, ::-1]

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return self.apply_image(segmentation)


class WarpAffineTransform(Transform):
    """Moves pixels by an affine map.

    The attributes have the names of the arguments, and may be changed.

    Args:
      mat: floats `[2, 3]`; takes (x, y, 1) of a pixel in the image to its place in the result,
        both counted in columns and rows, as `cv2.getRotationMatrix2D` gives it.
      dsize: (width, height) of the result in pixels.
      interp: an interpolation of OpenCV, such as `cv2.INTER_LINEAR`.
      borderMode: what is put where the image does not reach; by default `cv2.BORDER_CONSTANT`.
      borderValue: for `cv2.BORDER_CONSTANT`: a number, or one for each channel; 0 in masks.
    """

    def __init__(
        self,
        mat: np.ndarray,
        dsize: Tuple[int, int],
        interp: int = _LINEAR,
        borderMode: int = _CONSTANT,
        borderValue: Union[float, Sequence[float]] = 0,
    ) -> None:
        self.mat: Any = np.asarray(mat, np.float64)
        self.dsize, self.interp = dsize, interp
        self.borderMode, self.borderValue = borderMode, borderValue

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        return self._warp(img, self.interp, self.borderValue)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        # Pixels are counted from the centre of the first one, coordinates from its corner.
        mat = cv2.invertAffineTransform(self.mat) if self.interp & _INVERSE_MAP else self.mat
        return (as_coords(coords) - 0.5) @ mat[:, :2].T + mat[:, 2] + 0.5

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        flags = self.interp & ~_INTERPOLATIONS | _NEAREST
        return move_labels(segmentation, lambda mask: self._warp(mask, flags, 0))

    def _warp(self, img: np.ndarray, flags: int, value: Any) -> np.ndarray:
        value = [value] * 4 if np.ndim(value) == 0 else value  # OpenCV's is of one channel alone
        return keep_channels(img, self._warp_by(img, flags, self.borderMode, value))

    def _warp_by(self, img: np.ndarray, flags: int, border: int, value: Any) -> np.ndarray:
        return cv2.warpAffine(
            img, self.mat, self.dsize, flags=flags, borderMode=border, borderValue=value
        )


def _as_tfms(transform: Transform) -> List[Transform]:
    return transform.tfms if isinstance(transform, TransformList) else [transform]


def _not_done(transform: Transform, name: str) -> NotImplementedError:
    owner = vars(transform).get("_name", type(transform).__name__)
    return NotImplementedError(f"{owner} has no {name}(): it does not know what to do there.")
