"""Flows that decode images of datapoints from the contents of files, and encode them."""

import functools
from typing import Any, Hashable, Optional, Union

import numpy as np

from tensorpack.utils.checks import as_count
from tensorpack.utils.optional import require

from .base import DataFlow
from .image_files import MOST_PIXELS, check_decoding, decode_image
from .map import MapDataComponent

__all__ = ["DecodeImageComponent", "EncodeImageComponent"]

_EXTENSIONS = (".jpeg", ".jpg", ".png")


class DecodeImageComponent(MapDataComponent):
    """Decodes a component that is the content of an image file, such as a JPEG, with OpenCV.

    It becomes uint8 `[h, w, 3]`, or `[h, w, 1]` in grey. `EncodeImageComponent` is the reverse.
    What is cut off or is not an image raises a `DamagedFile` while iterating.
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
          channel: 3 for colour, 1 for grey.
          bgr: whether colours are in OpenCV's order, as from `cv2.imdecode` and `dataset.ILSVRC12`;
            False for RGB, as from `ImageFromFile`.
          max_pixels: as in `ImageFromFile`.

        Raises:
          ImportError: OpenCV or Pillow is not installed.
          TypeError: `index` is a list.
          ValueError: `channel` is neither 1 nor 3, or `max_pixels` is not positive.
        """
        check_decoding(channel, max_pixels)
        decode = functools.partial(_decode, channel=channel, bgr=bgr, max_pixels=max_pixels)
        super().__init__(ds, decode, index)


class EncodeImageComponent(MapDataComponent):
    """Encodes an image of a datapoint as JPEG or PNG, with OpenCV: to a uint8 array `[bytes]`.

    An image that is not uint8 `[h, w]`, `[h, w, 1]` or `[h, w, 3]` raises a ValueError while
    iterating.
    """

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

        Raises:
          ImportError: OpenCV is not installed.
          TypeError: `index` is a list.
          ValueError: the extension is another one, or the quality is out of range.
        """
        if extension not in _EXTENSIONS:
            raise ValueError(f"Images are encoded as {', '.join(_EXTENSIONS)}, got {extension!r}.")
        if as_count("EncodeImageComponent", "quality", quality) > 100:
            raise ValueError(f"The quality of a JPEG is at most 100, got {quality!r}.")
        require("cv2")  # to be missed now, and not in the middle of a run
        encode = functools.partial(_encode, extension=extension, quality=int(quality), bgr=bgr)
        super().__init__(ds, encode, index)


def _decode(data: Any, channel: int, bgr: bool, max_pixels: Optional[int]) -> np.ndarray:
    if isinstance(data, np.ndarray) and data.dtype == np.uint8:
        data = data.tobytes()
    if not isinstance(data, bytes):
        got = getattr(data, "dtype", type(data).__name__)
        raise TypeError(f"An encoded image is bytes or a uint8 array, got {got}.")
    image = decode_image(data, "The component", channel, bgr, max_pixels)
    return image[:, :, np.newaxis] if image.ndim == 2 else image


def _encode(image: Any, extension: str, quality: int, bgr: bool) -> np.ndarray:
    image = np.asarray(image)
    if (
        image.dtype != np.uint8
        or image.ndim not in (2, 3)
        or image.shape[2:] not in ((), (1,), (3,))
    ):
        raise ValueError(
            "An image to be encoded is uint8 [h, w], [h, w, 1] or [h, w, 3], got "
            f"{image.dtype} {list(image.shape)}. Round and clip it first."
        )
    cv2 = require("cv2")
    if not bgr and image.shape[2:] == (3,):
        image = image[:, :, ::-1]
    options = [] if extension == ".png" else [cv2.IMWRITE_JPEG_QUALITY, quality]
    done, data = cv2.imencode(extension, np.ascontiguousarray(image), options)
    if not done:
        raise ValueError(f"OpenCV cannot encode an image {list(image.shape)} as {extension}.")
    return data.reshape(-1)
