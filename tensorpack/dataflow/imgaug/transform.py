"""Transforms: what an augmentor does to one image and all that lies on it, with each choice made.

Coordinates are continuous: a pixel in column `i` and row `j` covers `x` from `i` to `i + 1` and `y`
from `j` to `j + 1`. So its centre is at `(i + 0.5, j + 0.5)`, and an image of width `w` reaches
from 0 to `w`.
"""

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.optional import require

__all__ = [
    "CropTransform",
    "FlipTransform",
    "PhotometricTransform",
    "ResizeTransform",
    "Transform",
    "TransformFactory",
    "TransformList",
    "TransposeTransform",
    "WarpAffineTransform",
    "as_coords",
    "check_size",
    "keep_channels",
]


class Transform:
    """A deterministic function of an image and of what lies on it.

    It is a value: it can be applied any number of times, and pickled to be applied in another
    process. It does not write to its arguments; a result may be a view of them.

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
        """Returns the smallest upright boxes around the transformed ones.

        They may reach beyond the image: clip them where it matters.

        Args:
          box: floats `[N, 4]` of (x1, y1, x2, y2).
        """
        box = _as_rows("boxes", box, 4)
        corners = self.apply_coords(box[:, [0, 1, 2, 1, 0, 3, 2, 3]].reshape(-1, 2))
        corners = corners.reshape(-1, 4, 2)
        return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        """Returns the transformed mask, each of whose pixels has a value that was there before.

        Args:
          segmentation: a label for each pixel, `[h, w]` or `[h, w, c]`, of any number type.
        """
        raise _not_done(self, "apply_segmentation")

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"


class PhotometricTransform(Transform):
    """Changes the values of pixels, and moves none.

    Args:
      augmentor: has `_augment(img, param)`.
      param: what it drew.
    """

    def __init__(self, augmentor: Any, param: Any) -> None:
        self.augmentor, self.param = augmentor, param

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        return self.augmentor._augment(img, self.param)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return coords

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return segmentation


class ResizeTransform(Transform):
    """Resizes an image.

    Args:
      h, w: size of the image in pixels.
      new_h, new_w: size of the result.
      interp: an interpolation of OpenCV, such as `cv2.INTER_LINEAR`.
    """

    def __init__(self, h: int, w: int, new_h: int, new_w: int, interp: int) -> None:
        self.h, self.w, self.new_h, self.new_w, self.interp = h, w, new_h, new_w, interp

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        check_size(self, img, self.h, self.w)
        size = (self.new_w, self.new_h)
        return keep_channels(img, require("cv2").resize(img, size, interpolation=self.interp))

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return as_coords(coords) * [self.new_w / self.w, self.new_h / self.h]

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        check_size(self, segmentation, self.h, self.w)
        rows = ((np.arange(self.new_h) + 0.5) * (self.h / self.new_h)).astype(int)
        columns = ((np.arange(self.new_w) + 0.5) * (self.w / self.new_w)).astype(int)
        return segmentation[rows[:, np.newaxis], columns]


class CropTransform(Transform):
    """Takes a rectangle of an image, as a view.

    Args:
      y0, x0: its first row and column.
      h, w: its size in pixels.
    """

    def __init__(self, y0: int, x0: int, h: int, w: int) -> None:
        self.y0, self.x0, self.h, self.w = y0, x0, h, w

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        bottom, right = self.y0 + self.h, self.x0 + self.w
        if min(self.y0, self.x0) < 0 or bottom > img.shape[0] or right > img.shape[1]:
            raise ValueError(f"{self} reaches beyond an image of shape {img.shape}.")
        return img[self.y0 : bottom, self.x0 : right]

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return as_coords(coords) - [self.x0, self.y0]

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return self.apply_image(segmentation)


class FlipTransform(Transform):
    """Mirrors an image.

    Args:
      h, w: size of the image in pixels.
      horiz: whether left and right change places; otherwise top and bottom do.
    """

    def __init__(self, h: int, w: int, horiz: bool = True) -> None:
        self.h, self.w, self.horiz = h, w, horiz

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        # Not a view from the right: every later step would be slower on it.
        return keep_channels(img, require("cv2").flip(img, 1 if self.horiz else 0))

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        coords = as_coords(coords).copy()
        if self.horiz:
            coords[:, 0] = self.w - coords[:, 0]
        else:
            coords[:, 1] = self.h - coords[:, 1]
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

    Args:
      matrix: floats `[2, 3]`; takes (x, y, 1) of a pixel in the image to its place in the result,
        both counted in columns and rows, as `cv2.getRotationMatrix2D` gives it.
      size: (width, height) of the result in pixels.
      interp: an interpolation of OpenCV, such as `cv2.INTER_LINEAR`.
      border: what is put where the image does not reach, such as `cv2.BORDER_REPLICATE`.
      border_value: for `cv2.BORDER_CONSTANT`: a number, or one for each channel. It is 0 in masks.
    """

    def __init__(
        self,
        matrix: np.ndarray,
        size: Tuple[int, int],
        interp: int = 1,
        border: int = 1,
        border_value: Union[float, Sequence[float]] = 0,
    ) -> None:
        self.matrix: Any = np.asarray(matrix, np.float64)
        self.size, self.interp = size, interp
        self.border, self.border_value = border, border_value

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        value: Any = self.border_value
        if np.ndim(value) == 0:
            value = [value] * 4  # OpenCV takes one number for the first channel alone
        return self._warp(img, self.interp, value)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        # Pixels are counted from the centre of the first one, coordinates from its corner.
        return (as_coords(coords) - 0.5) @ self.matrix[:, :2].T + self.matrix[:, 2] + 0.5

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        exact = segmentation.astype(np.float64)  # OpenCV warps no integers of 32 bits
        return self._warp(exact, require("cv2").INTER_NEAREST, 0).astype(segmentation.dtype)

    def _warp(self, img: np.ndarray, interp: int, value: Any) -> np.ndarray:
        warped = require("cv2").warpAffine(
            img, self.matrix, self.size, flags=interp, borderMode=self.border, borderValue=value
        )
        return keep_channels(img, warped)


class TransformList(Transform):
    """Applies transforms one after the other; lists can be added up.

    It has each `apply_` method that all of them have.

    Args:
      tfms: the transforms, in their order.
    """

    def __init__(self, tfms: Sequence[Transform]) -> None:
        for each in tfms:
            if not isinstance(each, Transform):
                raise TypeError(f"TransformList takes Transforms, got {type(each).__name__}.")
        self.tfms = list(tfms)

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        return self._apply("apply_image", img)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return self._apply("apply_coords", coords)

    def apply_box(self, box: np.ndarray) -> np.ndarray:
        return self._apply("apply_box", box)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        return self._apply("apply_segmentation", segmentation)

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        if not name.startswith("apply_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        return lambda value: self._apply(name, value)

    def _apply(self, name: str, value: Any) -> Any:
        for each in self.tfms:
            method = getattr(each, name, None)
            if method is None:
                raise _not_done(each, name)
            value = method(value)
        return value

    def __add__(self, other: Transform) -> "TransformList":
        return TransformList(self.tfms + _as_tfms(other))

    def __radd__(self, other: Transform) -> "TransformList":
        return TransformList(_as_tfms(other) + self.tfms)


class TransformFactory(Transform):
    """A transform made of functions::

        TransformFactory(apply_image=lambda img: 255 - img, apply_coords=lambda coords: coords)

    Args:
      name: how it is shown.
      **functions: the methods by their names, `apply_image` and others that begin with `apply_`.

    Raises:
      KeyError: a name begins otherwise.
    """

    def __init__(self, name: Optional[str] = None, **functions: Callable[[Any], Any]) -> None:
        for each in functions:
            if not each.startswith("apply_"):
                raise KeyError(f"Methods of a transform begin with 'apply_', got {each!r}.")
        self._name = name or type(self).__name__
        vars(self).update(functions)

    def __repr__(self) -> str:
        return self._name


def as_coords(coords: Any) -> np.ndarray:
    """Returns coordinates as floats `[N, 2]`; a ValueError if they have another shape."""
    return _as_rows("coordinates", coords, 2)


def check_size(owner: Any, img: np.ndarray, h: int, w: int) -> None:
    """Raises ValueError unless an image has the size that a transform was made for."""
    if img.shape[:2] != (h, w):
        raise ValueError(
            f"{type(owner).__name__} was made for an image of {h} rows and {w} columns, got one of "
            f"shape {img.shape}."
        )


def keep_channels(img: np.ndarray, result: np.ndarray) -> np.ndarray:
    """Returns what OpenCV made of an image, with the axis of a single channel, which it drops."""
    return result[:, :, np.newaxis] if result.ndim < img.ndim else result


def _as_rows(what: str, rows: Any, columns: int) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise ValueError(f"{what.capitalize()} have the shape [N, {columns}], got {rows.shape}.")
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _as_tfms(transform: Transform) -> List[Transform]:
    return transform.tfms if isinstance(transform, TransformList) else [transform]


def _not_done(transform: Transform, name: str) -> NotImplementedError:
    kind = type(transform).__name__
    return NotImplementedError(f"{kind} has no {name}(): it does not know what to do there.")
