"""Helpers of augmentors and transforms: sizes, channels, dtypes and values of pixels."""

from typing import Any, Callable, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.argtools import shape2d
from tensorpack.utils.checks import as_count
from tensorpack.utils.optional import cv2

_PerChannel = Union[float, Sequence[float], np.ndarray]


def as_size(owner: Any, shape: Union[int, Sequence[int]]) -> Tuple[int, int]:
    """Returns (height, width) in pixels, also from one number for both; at least 1."""
    h, w = shape2d(shape)
    return as_count(owner, "height", h), as_count(owner, "width", w)


def channels_of(img: np.ndarray) -> int:
    """Returns how many channels an image has."""
    return 1 if img.ndim == 2 else img.shape[2]


def check_rgb(owner: Any, img: np.ndarray) -> None:
    """Raises ValueError unless an image has three channels."""
    if channels_of(img) != 3:
        raise ValueError(
            f"{type(owner).__name__} takes images [h, w, 3], got {img.shape}. An image of one "
            "channel becomes one of three by imgaug.ColorSpace(cv2.COLOR_GRAY2RGB)."
        )


def as_dtype(img: np.ndarray, dtype: Any) -> np.ndarray:
    """Returns an image as another type; for integers rounded, and clipped to their range."""
    dtype = np.dtype(dtype)
    if dtype.kind in "ui" and img.dtype.kind == "f":
        limits = np.iinfo(dtype)
        img = np.clip(np.rint(img), limits.min, limits.max)
    return img.astype(dtype, copy=False)


def restore_dtype(img: np.ndarray, result: np.ndarray, clip: bool = False) -> np.ndarray:
    """Returns what was made of an image in its dtype; clipped to [0, 255] if uint8 or told so."""
    if clip and img.dtype != np.uint8:
        if img.dtype.kind != "f" and img.max() > 255:
            raise ValueError(f"its values are in [0, 255], got {img.max()}: convert it first.")
        np.clip(result, 0, 255, out=result)
    return as_dtype(keep_channels(img, result), img.dtype)


def linear(img: np.ndarray, scale: _PerChannel, shift: _PerChannel, clip: bool) -> np.ndarray:
    """Returns `img * scale + shift`, both numbers or one for each channel, in its own dtype."""
    channels = channels_of(img)
    matrix = np.zeros((channels, channels + 1))
    np.fill_diagonal(matrix, scale)
    matrix[:, channels] = shift
    return restore_dtype(img, cv2.transform(img, matrix), clip)


def as_coords(coords: Any) -> np.ndarray:
    """Returns coordinates as floats `[N, 2]`; a ValueError if they have another shape."""
    return as_rows("coordinates", coords, 2)


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


def move_labels(segmentation: np.ndarray, move: Callable[..., np.ndarray]) -> np.ndarray:
    """Returns a mask moved by OpenCV, which moves no integers of 32 bits, in its own dtype."""
    return move(segmentation.astype(np.float64)).astype(segmentation.dtype)


def as_rows(what: str, rows: Any, columns: int) -> np.ndarray:
    """Returns an array `[N, columns]` of floats; a ValueError if it has another shape."""
    rows = as_floats(rows)
    if rows.ndim != 2 or rows.shape[1] != columns:
        raise ValueError(f"{what.capitalize()} have the shape [N, {columns}], got {rows.shape}.")
    return rows


def as_floats(values: Any) -> np.ndarray:
    """Returns an array of floats; what is of another kind becomes float64."""
    values = np.asarray(values)
    return values if values.dtype.kind == "f" else values.astype(np.float64)
