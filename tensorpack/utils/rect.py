"""A rectangle of pixels, and the part of an image that is in it."""

from dataclasses import InitVar, dataclass
from typing import Optional, Sequence

import numpy as np

__all__ = ["Rect"]


@dataclass
class Rect:
    """A rectangle in an image: columns `x0` to `x1` and rows `y0` to `y1`, without the last ones.

    Args:
      x, y: the first column and the first row, in pixels.
      w, h: width and height, in pixels.
      allow_neg: whether `x` and `y` may be negative, for what reaches out of the image.

    Raises:
      ValueError: width or height is negative, or x or y without `allow_neg`.
    """

    x: int = 0
    y: int = 0
    w: int = 0
    h: int = 0
    allow_neg: InitVar[bool] = False

    def __post_init__(self, allow_neg: bool) -> None:
        if min(self.w, self.h) < 0 or not allow_neg and min(self.x, self.y) < 0:
            raise ValueError(
                f"{self} is not a rectangle in an image. With allow_neg=True, x and y may be "
                "negative; width and height never."
            )

    @property
    def x0(self) -> int:
        """The first column."""
        return self.x

    @property
    def y0(self) -> int:
        """The first row."""
        return self.y

    @property
    def x1(self) -> int:
        """The column behind the last one."""
        return self.x + self.w

    @property
    def y1(self) -> int:
        """The row behind the last one."""
        return self.y + self.h

    def copy(self) -> "Rect":
        """Returns another rectangle of the same place and size."""
        return Rect(self.x, self.y, self.w, self.h, allow_neg=True)

    def area(self) -> int:
        """Returns the number of pixels."""
        return self.w * self.h

    def validate(self, shape: Optional[Sequence[int]] = None) -> bool:
        """Returns whether it has pixels, and all of them are in an image.

        Args:
          shape: of the image, beginning with height and width. None for one without bounds at the
            right and below.
        """
        inside = min(self.x, self.y) >= 0 and min(self.w, self.h) > 0
        return inside and (shape is None or (self.x1 <= shape[1] and self.y1 <= shape[0]))

    def roi(self, img: np.ndarray) -> np.ndarray:
        """Returns the pixels of an image in the rectangle, as a view `[h, w, ...]`.

        Args:
          img: `[H, W]` or `[H, W, C]`.

        Raises:
          ValueError: the rectangle is not inside of the image.
        """
        if not self.validate(img.shape):
            raise ValueError(
                f"{self} is not inside of an image of shape {list(img.shape)}: roi_zeropad() takes "
                "zeros for what is outside."
            )
        return img[self.y0 : self.y1, self.x0 : self.x1]

    def expand(self, frac: float) -> "Rect":
        """Returns a rectangle of the same centre, rounded to pixels; it may leave the image.

        Args:
          frac: the new width and height divided by the present ones; positive.

        Raises:
          ValueError: `frac` is not positive.
        """
        if frac <= 0:
            raise ValueError(f"frac is positive, such as 1.2 for a fifth more, but got {frac}.")
        x, y = self.x + self.w * (1 - frac) / 2, self.y + self.h * (1 - frac) / 2
        w, h = self.w * frac, self.h * frac
        return Rect(int(x), int(y), int(w), int(h), allow_neg=True)

    def roi_zeropad(self, img: np.ndarray) -> np.ndarray:
        """Returns a new image `[h, w, ...]` of the rectangle, with zeros outside of `img`.

        Args:
          img: `[H, W]` or `[H, W, C]`.
        """
        result = np.zeros((self.h, self.w, *img.shape[2:]), img.dtype)
        rows = slice(max(self.y0, 0), max(min(self.y1, img.shape[0]), 0))
        columns = slice(max(self.x0, 0), max(min(self.x1, img.shape[1]), 0))
        part = img[rows, columns]
        top, left = rows.start - self.y0, columns.start - self.x0
        result[top : top + part.shape[0], left : left + part.shape[1]] = part
        return result
