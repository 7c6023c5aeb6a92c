"""An augmentor that bends an image."""

from typing import Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.checks import as_number, as_positive
from tensorpack.utils.optional import require

from ._pixels import as_size, check_size, given_or, in_float64, keep_channels
from .base import ImageAugmentor
from .transform import Transform


class RemapTransform(Transform):
    """Takes each pixel of the result from a place of its own; coordinates are not supported.

    Args:
      places: float32 `[h, w, 2]`, (column, row) in the image of what each pixel shows.
    """

    def __init__(self, places: np.ndarray) -> None:
        self.places = places

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        cv2, fill = require("cv2"), self.given_fill
        check_size(self, img, *self.places.shape[:2])
        warped = cv2.remap(
            img,
            self.places,
            None,
            given_or(cv2.INTER_LINEAR, self.given_interp),
            borderMode=cv2.BORDER_REPLICATE if fill is None else cv2.BORDER_CONSTANT,
            borderValue=[fill or 0] * 4 if np.ndim(fill) == 0 else fill,
        )
        return keep_channels(img, warped)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        nearest = self.with_options(self.given_interp or 0, self.given_fill)
        return in_float64(segmentation, nearest.apply_image)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(places of shape {self.places.shape})"


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
        require("cv2")
        if np.ndim(anchors) != 2 or np.shape(anchors)[1] != 2:
            raise ValueError(f"GaussianDeform: anchors are [(y, x), ...], but got {anchors!r}.")
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
