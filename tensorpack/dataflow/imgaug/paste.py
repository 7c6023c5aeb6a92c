"""Augmentors that paste an image onto a larger background."""

from typing import Optional, Sequence, Tuple, Union

import numpy as np

from ._pixels import as_coords, as_dtype, as_size, check_size
from .base import ImageAugmentor
from .transform import Transform


class BackgroundFiller:
    """Makes the background that an image is pasted onto.

    A subclass overrides `fill`, or `_fill` with the same arguments, as in old scripts.
    """

    def fill(self, background_shape: Tuple[int, int], img: np.ndarray) -> np.ndarray:
        """Returns a new array of a given (height, width), the same for the same arguments.

        It has as many channels as `img`, which will be pasted onto it, and a dtype for its values.
        """
        return self._fill(background_shape, img)

    def _fill(self, background_shape: Tuple[int, int], img: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} does not define fill().")


class ConstantBackgroundFiller(BackgroundFiller):
    """Makes a background of one colour, a number or one for each channel, in the image's dtype."""

    def __init__(self, value: Union[float, Sequence[float]]) -> None:
        self.value = value

    def fill(self, background_shape: Tuple[int, int], img: np.ndarray) -> np.ndarray:
        canvas = np.empty((*background_shape, *img.shape[2:]), img.dtype)
        canvas[:1] = as_dtype(np.array(self.value, np.float64), img.dtype)
        canvas[1:] = canvas[:1]  # rows as a whole: much faster than pixels of three channels
        return canvas

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class PasteTransform(Transform):
    """Pastes an image of `h` x `w` pixels onto a background, which is 0 in masks.

    `y0` and `x0` are the row and column of the background where the first pixel comes;
    `background_shape` is (height, width).
    """

    def __init__(
        self,
        y0: int,
        x0: int,
        h: int,
        w: int,
        background_shape: Tuple[int, int],
        background_filler: BackgroundFiller,
    ) -> None:
        self.y0, self.x0, self.h, self.w = y0, x0, h, w
        self.background_shape, self.background_filler = background_shape, background_filler

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        check_size(self, img, self.h, self.w)
        return self._paste(img, self.background_filler)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        return as_coords(coords) + [self.x0, self.y0]

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        check_size(self, segmentation, self.h, self.w)
        return self._paste(segmentation, ConstantBackgroundFiller(0))

    def _paste(self, img: np.ndarray, filler: BackgroundFiller) -> np.ndarray:
        if self.given_fill is not None:
            filler = ConstantBackgroundFiller(self.given_fill)
        canvas = filler.fill(self.background_shape, img)
        place = canvas[self.y0 : self.y0 + self.h, self.x0 : self.x0 + self.w]
        if canvas.shape[:2] != self.background_shape or canvas.shape[2:] != img.shape[2:]:
            raise ValueError(
                f"{type(filler).__name__}.fill() made a background of shape {canvas.shape} for an "
                f"image of shape {img.shape}, and not {(*self.background_shape, *img.shape[2:])}."
            )
        np.copyto(place, img, casting="same_kind")
        return canvas


class CenterPaste(ImageAugmentor):
    """Pastes the image into the middle of a background.

    Args:
      background_shape: (height, width) in pixels, or one number for both.
      background_filler: makes the background; by default one of zeros.
    """

    def __init__(
        self,
        background_shape: Union[int, Sequence[int]],
        background_filler: Optional[BackgroundFiller] = None,
    ) -> None:
        if background_filler is not None and not isinstance(background_filler, BackgroundFiller):
            raise TypeError(
                f"{type(self).__name__}: background_filler is a BackgroundFiller, such as "
                f"ConstantBackgroundFiller(255), got {background_filler!r}."
            )
        self.background_shape = as_size(self, background_shape)
        self.background_filler = background_filler or ConstantBackgroundFiller(0)

    def get_transform(self, img: np.ndarray) -> Transform:
        h, w = img.shape[:2]
        rows, columns = self.background_shape[0] - h, self.background_shape[1] - w
        if min(rows, columns) < 0:
            raise ValueError(f"The image is larger than the background of {self.background_shape}.")
        y0, x0 = self._place(rows, columns)
        return PasteTransform(y0, x0, h, w, self.background_shape, self.background_filler)

    def _place(self, rows: int, columns: int) -> Tuple[int, int]:
        return rows // 2, columns // 2


class RandomPaste(CenterPaste):
    """Pastes the image onto a background, see `CenterPaste`, at a random place."""

    def _place(self, rows: int, columns: int) -> Tuple[int, int]:
        return int(self.rng.randint(rows + 1)), int(self.rng.randint(columns + 1))
