"""Augmentors that blur an image."""

from typing import Any, Optional, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_count, as_range, check_counts, is_integer
from tensorpack.utils.optional import require

from ._pixels import as_dtype, readable
from .base import PhotometricAugmentor
from .transform import keep_channels


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
        require("cv2")
        given: Any = size_range if max_size is None else max_size
        first, end = (0, given) if is_integer(given) else as_range(self, "size_range", given)
        first, end = (as_count(self, "size_range", each, 0) for each in (first, end))
        check_counts(self, first + 1, **{"the end of size_range": end})
        self.size_range = (first, end)
        self.sigma_range = as_range(self, "sigma_range", sigma_range, 0)
        self.symmetric, self.max_size = symmetric, max_size

    def _get_augment_params(self, img: np.ndarray) -> Tuple[Tuple[int, int], Tuple[float, float]]:
        sizes = self.rng.randint(*self.size_range, size=2) * 2 + 1
        sigmas = self.rng.uniform(*self.sigma_range, size=2)
        across, down = 0, 0 if self.symmetric else 1
        return (
            (int(sizes[across]), int(sizes[down])),
            (float(sigmas[across]), float(sigmas[down])),
        )

    def _augment(self, img: np.ndarray, param: Any) -> np.ndarray:
        cv2, (size, (across, down)) = require("cv2"), param
        blurred = cv2.GaussianBlur(
            readable(img), size, sigmaX=across, sigmaY=down, borderType=cv2.BORDER_REPLICATE
        )
        return as_dtype(keep_channels(img, blurred), img.dtype)
