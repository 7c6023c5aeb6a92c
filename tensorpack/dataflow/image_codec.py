"""Flows that decode images of datapoints from the contents of files, and encode them."""

import functools
from typing import Any, Hashable, Optional, Union

import numpy as np

from tensorpack.utils.checks import as_number
from tensorpack.utils.optional import require

from .base import DataFlow
from .files.images import MOST_PIXELS, check_decoding, decode_image
from .map import MapDataComponent


class DecodeImageComponent(MapDataComponent):
    """Decodes a component that is the content of an image file, such as a JPEG: to uint8
    `[h, w, 3]`, or `[h, w, 1]` in grey. A `DamagedFile` is raised while iterating if it is not one.
    """

    def __init__(
        self,
        ds: DataFlow,
        index: Union[int, Hashable] = 0,
        channel: int = 3,
        *,
        bgr: bool = True,
        max_pixels: Optional[int] = MOST_PIXELS,
    ) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          index: position or key of the component, bytes or a uint8 array.
          channel, max_pixels: as in `ImageFromFile`.
          bgr: whether colours are in OpenCV's order, as from `cv2.imdecode` and `dataset.ILSVRC12`;
            False for RGB, as from `ImageFromFile`.
        """
        check_decoding(channel, max_pixels)
        decode = functools.partial(_decode, channel=channel, bgr=bgr, max_pixels=max_pixels)
        super().__init__(ds, decode, index)


class EncodeImageComponent(MapDataComponent):
    """Encodes an image, uint8 `[h, w]`, `[h, w, 1]` or `[h, w, 3]`, to a uint8 array `[bytes]`."""

    def __init__(
        self,
        ds: DataFlow,
        index: Union[int, Hashable] = 0,
        extension: str = ".jpg",
        quality: int = 95,
        *,
        bgr: bool = True,
    ) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          index: position or key of the image.
          extension: ".jpg", or ".png", which loses nothing.
          quality: of a JPEG, 1 to 100.
          bgr: as in `DecodeImageComponent`.
        """
        if extension not in (".jpg", ".jpeg", ".png"):
            raise ValueError(f"Images are encoded as '.jpg' or '.png', but got {extension!r}.")
        quality = int(as_number(self, "quality", quality, 1, 100))
        require("cv2")  # to be missed now, and not in the middle of a run
        encode = functools.partial(_encode, extension=extension, quality=quality, bgr=bgr)
        super().__init__(ds, encode, index)


def _decode(data: Any, channel: int, bgr: bool, max_pixels: Optional[int]) -> np.ndarray:
    data = data.tobytes() if getattr(data, "dtype", None) == np.uint8 else data
    if not isinstance(data, bytes):
        got = getattr(data, "dtype", type(data).__name__)
        raise TypeError(f"An encoded image is bytes or a uint8 array, got {got}.")
    image = decode_image(data, "The component", channel, bgr, max_pixels)
    return image[:, :, np.newaxis] if image.ndim == 2 else image


def _encode(image: Any, extension: str, quality: int, bgr: bool) -> np.ndarray:
    dtype, shape = getattr(image, "dtype", type(image).__name__), np.shape(image)
    if dtype != np.uint8 or len(shape) not in (2, 3) or shape[2:] not in ((), (1,), (3,)):
        needed = "uint8 [h, w], [h, w, 1] or [h, w, 3]"
        raise ValueError(f"An image to be encoded is {needed}, got {dtype} {list(shape)}.")
    cv2 = require("cv2")
    if not bgr and shape[2:] == (3,):
        image = image[:, :, ::-1]
    options = [] if extension == ".png" else [cv2.IMWRITE_JPEG_QUALITY, quality]
    return cv2.imencode(extension, np.ascontiguousarray(image), options)[1].reshape(-1)
