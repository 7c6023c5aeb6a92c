"""What transforms are, and how they are joined or made of functions.

`imgaug.transform` is the public address, and says what coordinates mean.
"""

import copy
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np


class Transform:
    """A deterministic function of an image and of what lies on it.

    It is a value: it can be applied any number of times, and pickled to be applied in another
    process. It does not write to its arguments; a result may be a view of them.

    A subclass overrides `apply_image`. If pixels move it also overrides `apply_coords`, on which
    `apply_box` is built, and `apply_segmentation`. `given_interp` and `given_fill` are what
    `with_options` was given, or None.
    """

    given_interp: Optional[int] = None
    given_fill: Any = None

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

    def with_options(self, interp: Optional[int] = None, fill: Any = None) -> "Transform":
        """Returns the same transform with options for both images and masks; None leaves its own.

        Args:
          interp: an interpolation of OpenCV; of a mask it is `cv2.INTER_NEAREST` by default.
          fill: is put where the image does not reach: a number, or one for each channel.
        """
        changed = copy.copy(self)
        changed.given_interp, changed.given_fill = interp, fill
        return changed

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


BaseTransform = Transform  # its name in type checks of scripts


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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("apply_"):
            return lambda value: self._apply(name, value)
        return super().__getattr__(name)

    def with_options(self, interp: Optional[int] = None, fill: Any = None) -> "TransformList":
        return TransformList([each.with_options(interp, fill) for each in self.tfms])

    def _apply(self, name: str, value: Any) -> Any:
        for each in self.tfms:
            value = getattr(each, name)(value)
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


def given_or(default: Any, given: Any) -> Any:
    """Returns an option, or what takes its place where it is None."""
    return default if given is None else given


def in_float64(segmentation: np.ndarray, move: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Returns a mask moved by OpenCV, which moves no integers of 32 bits, in its own dtype."""
    moved = keep_channels(segmentation, move(segmentation.astype(np.float64)))
    return (moved if segmentation.dtype.kind == "f" else np.rint(moved)).astype(segmentation.dtype)


def _as_rows(what: str, rows: Any, columns: int) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise ValueError(f"{what.capitalize()} have the shape [N, {columns}], got {rows.shape}.")
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _as_tfms(transform: Transform) -> List[Transform]:
    return transform.tfms if isinstance(transform, TransformList) else [transform]


def _not_done(transform: Transform, name: str) -> NotImplementedError:
    shown = vars(transform).get("_name", type(transform).__name__)
    return NotImplementedError(f"{shown} has no {name}(): it does not know what to do there.")
