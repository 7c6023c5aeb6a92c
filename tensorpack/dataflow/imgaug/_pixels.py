"""What the augmentors that change the values of pixels have in common."""

from typing import Any, Sequence, Union

import numpy as np

from tensorpack.utils.optional import require

from .transform import keep_channels

_PerChannel = Union[float, Sequence[float], np.ndarray]


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


def readable(img: np.ndarray, double: bool = True) -> np.ndarray:
    """Returns an image of a type that all of OpenCV takes: as it is, or as float32.

    Args:
      img: of any number type.
      double: whether float64 is left as it is; a few functions do not take it.
    """
    if img.dtype == np.uint8 or img.dtype == np.float32 or double and img.dtype == np.float64:
        return img
    return img.astype(np.float32)


def as_dtype(img: np.ndarray, dtype: Any) -> np.ndarray:
    """Returns an image as another type; for integers rounded, and clipped to their range."""
    dtype = np.dtype(dtype)
    if img.dtype == dtype:
        return img
    if dtype.kind in "ui" and img.dtype.kind == "f":
        limits = np.iinfo(dtype)
        img = np.clip(np.rint(img), limits.min, limits.max)
    return img.astype(dtype)


def mix_channels(img: np.ndarray, matrix: np.ndarray, clip: bool) -> np.ndarray:
    """Returns `matrix @ (*pixel, 1)` for each pixel, in the image's dtype; see `cv2.transform`.

    Args:
      img: `[h, w]` or `[h, w, c]`.
      matrix: `[c, c + 1]`.
      clip: whether values are clipped to [0, 255], as those of uint8 always are.
    """
    result = keep_channels(img, require("cv2").transform(readable(img), matrix))
    if clip and result.dtype != np.uint8:
        np.clip(result, 0, 255, out=result)
    return as_dtype(result, img.dtype)


def linear(img: np.ndarray, scale: _PerChannel, shift: _PerChannel, clip: bool) -> np.ndarray:
    """Returns `img * scale + shift`, both numbers or one for each channel; see `mix_channels`."""
    channels = channels_of(img)
    matrix = np.zeros((channels, channels + 1))
    np.fill_diagonal(matrix, scale)
    matrix[:, channels] = shift
    return mix_channels(img, matrix, clip)
