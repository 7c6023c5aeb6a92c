"""A rectangle of pixels, and the part of an image that is in it."""

from dataclasses import InitVar, dataclass
from typing import Any, Optional, Sequence

import numpy as np


@dataclass
class Rect:
    """A rectangle in an image: columns `x0` to `x1` and rows `y0` to `y1`, without the last ones.

    Args:
      x, y: the first column and the first row, in pixels.
      w, h: width and height, in pixels.
      allow_neg: whether `x` and `y` may be negative, for what reaches out of the image.
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
        """The column after the last one."""
        return self.x + self.w

    @property
    def y1(self) -> int:
        """The row after the last one."""
        return self.y + self.h

    def copy(self) -> "Rect":
        """Returns another rectangle of the same place and size."""
        return Rect(self.x, self.y, self.w, self.h, allow_neg=True)

    def area(self) -> int:
        """Returns the number of pixels."""
        return self.w * self.h

    def validate(self, shape: Optional[Sequence[int]] = None) -> bool:
        """Returns whether it has pixels, and all of them are in an image of this shape.

        None is one without bounds at the right and below.
        """
        inside = min(self.x, self.y) >= 0 and min(self.w, self.h) > 0
        return inside and (shape is None or (self.x1 <= shape[1] and self.y1 <= shape[0]))

    def roi(self, img: np.ndarray) -> np.ndarray:
        """Returns the pixels of an image `[H, W, ...]` in it, as a view `[h, w, ...]`."""
        if not self.validate(img.shape):
            raise ValueError(
                f"{self} is not inside of an image of shape {list(img.shape)}: roi_zeropad() takes "
                "zeros for what is outside."
            )
        return img[self.y0 : self.y1, self.x0 : self.x1]

    def expand(self, frac: float) -> "Rect":
        """Returns one of the same centre with width and height times `frac`, cut to whole pixels.

        It may leave the image.
        """
        x, y = self.x + self.w * (1 - frac) / 2, self.y + self.h * (1 - frac) / 2
        w, h = self.w * frac, self.h * frac
        return Rect(int(x), int(y), int(w), int(h), allow_neg=True)

    def roi_zeropad(self, img: np.ndarray) -> np.ndarray:
        """Returns a new image `[h, w, ...]` of the rectangle, with zeros outside of `img`, which is
        `[H, W, ...]`.
        """
        result = np.zeros((self.h, self.w, *img.shape[2:]), img.dtype)
        rows = slice(max(self.y0, 0), max(min(self.y1, img.shape[0]), 0))
        columns = slice(max(self.x0, 0), max(min(self.x1, img.shape[1]), 0))
        part = img[rows, columns]
        top, left = rows.start - self.y0, columns.start - self.x0
        result[top : top + part.shape[0], left : left + part.shape[1]] = part
        return result


@dataclass
class BoxBase:
    """A box between the corners `x1, y1` and `x2, y2`, of scripts for 0.5 to 0.9."""

    x1: Any
    y1: Any
    x2: Any
    y2: Any
    _rim = 0  # what belongs to it beyond the second corner

    @property
    def w(self) -> Any:
        """The width."""
        return self.x2 - self.x1 + self._rim

    @property
    def h(self) -> Any:
        """The height."""
        return self.y2 - self.y1 + self._rim

    def area(self) -> Any:
        """Returns width times height."""
        return self.w * self.h

    def is_box(self) -> bool:
        """Returns whether width and height are positive."""
        return bool(self.w > 0 and self.h > 0)

    def clip_by_shape(self, shape: Sequence[int]) -> None:
        """Moves the corners into an image whose shape begins with height and width."""
        bottom, right = (size - self._rim for size in shape[:2])
        self.x1, self.x2 = (type(x)(min(max(x, 0), right)) for x in (self.x1, self.x2))
        self.y1, self.y2 = (type(y)(min(max(y, 0), bottom)) for y in (self.y1, self.y2))


class IntBox(BoxBase):
    """A box of pixels, column `x2` and row `y2` included."""

    _rim = 1

    def is_valid_box(self, shape: Sequence[int]) -> bool:
        """Returns whether it has pixels, all of them in an image of this shape."""
        return self.is_box() and Rect(self.x1, self.y1, self.w, self.h, True).validate(shape)

    def roi(self, img: np.ndarray) -> np.ndarray:
        """Returns the pixels of an image `[H, W, ...]` in the box, as a view."""
        return Rect(self.x1, self.y1, self.w, self.h).roi(img)


class FloatBox(BoxBase):
    """A box of real coordinates."""

    @staticmethod
    def from_intbox(box: IntBox) -> "FloatBox":
        """Returns the box around the pixels of another one."""
        return FloatBox(box.x1, box.y1, box.x2 + 1, box.y2 + 1)
