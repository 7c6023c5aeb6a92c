"""Augmentors that convert an image to another colour space or type."""

import numpy as np

from tensorpack.utils.checks import check_integers
from tensorpack.utils.optional import require

from ._pixels import as_dtype, readable
from .base import PhotometricAugmentor


class ColorSpace(PhotometricAugmentor):
    """Converts the image to another colour space, see `cv2.cvtColor`.

    Args:
      mode: a conversion of OpenCV, such as `cv2.COLOR_BGR2RGB`.
      keepdims: whether a result of one channel is `[h, w, 1]`; otherwise it is `[h, w]`.
    """

    def __init__(self, mode: int, keepdims: bool = True) -> None:
        require("cv2")
        check_integers(self, mode=mode)
        self.mode, self.keepdims = mode, keepdims

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        result = require("cv2").cvtColor(readable(img, double=False), self.mode)
        if self.keepdims and result.ndim == 2:
            result = result[:, :, np.newaxis]
        return as_dtype(result, img.dtype)


class Grayscale(ColorSpace):
    """Converts a colour image to grey.

    Args:
      keepdims: whether the result is `[h, w, 1]`; otherwise it is `[h, w]`.
      rgb: whether channels are in the order RGB; otherwise BGR.
      keepshape: whether the result is `[h, w, 3]`, of three equal channels; needs `keepdims`.
    """

    def __init__(self, keepdims: bool = True, rgb: bool = False, keepshape: bool = False) -> None:
        cv2 = require("cv2")
        super().__init__(cv2.COLOR_RGB2GRAY if rgb else cv2.COLOR_BGR2GRAY, keepdims)
        if keepshape and not keepdims:
            raise ValueError("Grayscale(keepshape=True) keeps all axes: leave keepdims out.")
        self.rgb, self.keepshape = rgb, keepshape

    def _augment(self, img: np.ndarray, param: None) -> np.ndarray:
        result = super()._augment(img, param)
        return require("cv2").merge([result] * 3) if self.keepshape else result


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
