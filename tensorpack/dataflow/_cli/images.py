"""The contact sheet that `show --images` writes: the first images of a flow or file."""

import math
import os
from typing import Any, List, Tuple

import numpy as np

from tensorpack.utils.atomic import open_atomic
from tensorpack.utils.optional import require
from tensorpack.utils.viz import stack_patches

from . import CommandError

_MOST_IMAGES = 100
_LONGEST_EDGE = 256  # pixels


def check_name(path: str) -> None:
    """Raises CommandError unless an image can be written to a path."""
    _encoded(np.zeros((1, 1, 3), np.uint8), path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise CommandError(f"Cannot write {path}: there is no folder {folder}. Make it first.")


def write_images(datapoints: List[Any], path: str, is_bgr: bool) -> str:
    """Writes the images of datapoints to a file, side by side; returns a line about it.

    They are taken from the component that is the largest image, or batch of images, of the first
    datapoint. A file of this name is replaced.
    """
    key = _largest_image(datapoints)
    found = [image for each in datapoints for image in _images_in(each[key])]
    images, scaled = _as_uint8(found[:_MOST_IMAGES])
    columns = math.ceil(math.sqrt(len(images)))
    cells = [_cell(image, is_bgr) for image in images]
    sheet = stack_patches(cells, math.ceil(len(cells) / columns), columns, pad=True)
    data = _encoded(sheet, path)
    with open_atomic(path) as file:
        file.write(data)
    more = f" of {len(found)}" if len(found) > len(images) else ""
    return f"{len(images)}{more} images, component {key!r}, are in {path}.{scaled}"


def _largest_image(datapoints: List[Any]) -> Any:
    if not datapoints:
        raise CommandError("There are no images: there is no datapoint.")
    first = datapoints[0]
    rows = dict(enumerate(first)) if isinstance(first, (list, tuple)) else first
    items = rows.items() if isinstance(rows, dict) else ()
    sizes = {key: value.size for key, value in items if _images_in(value)}
    if not sizes:
        raise CommandError(
            "There are no images: no component of the first datapoint is an array [h, w], "
            "[h, w, 1] or [h, w, 3] of numbers, or a batch of such."
        )
    return max(sizes, key=lambda key: sizes[key])


def _images_in(value: Any) -> List[np.ndarray]:
    """Returns the images in a component, of which a batch has several."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "buif" or not value.size:
        return []
    has_channels = value.shape[-1] in (1, 3) if value.ndim else False
    if value.ndim == 2 or value.ndim == 3 and has_channels:
        return [value]
    return list(value) if value.ndim == 3 or value.ndim == 4 and has_channels else []


def _as_uint8(images: List[np.ndarray]) -> Tuple[List[np.ndarray], str]:
    """Returns images in [0, 255], and a sentence on how they were scaled, if they were."""
    if all(image.dtype == np.uint8 for image in images):
        return images, ""
    floats = [np.nan_to_num(image.astype(np.float64)) for image in images]
    low = min(float(image.min()) for image in floats)
    high = max(float(image.max()) for image in floats)
    if low >= 0:
        low, high = 0, 1 if high <= 1 else max(high, 255)
    scale = 255 / max(high - low, 1e-9)
    scaled = f" Values from {low:g} to {high:g} are shown as 0 to 255." if high != 255 else ""
    return [np.rint((image - low) * scale).astype(np.uint8) for image in floats], scaled


def _cell(image: np.ndarray, is_bgr: bool) -> np.ndarray:
    cv2 = require("cv2")
    if image.ndim == 3 and not is_bgr:
        image = image[:, :, ::-1]
    scale = _LONGEST_EDGE / max(image.shape[:2])
    if scale >= 1:
        return image
    height, width = (max(1, round(scale * edge)) for edge in image.shape[:2])
    return cv2.resize(np.ascontiguousarray(image), (width, height), interpolation=cv2.INTER_AREA)


def _encoded(image: np.ndarray, path: str) -> bytes:
    cv2 = require("cv2")
    suffix = os.path.splitext(path)[1].lower()
    try:
        good, data = cv2.imencode(suffix, image)
    except cv2.error:
        good = False
    if not good:
        raise CommandError(f"{path} names no kind of image. Let it end with .png or .jpg.")
    return data.tobytes()
