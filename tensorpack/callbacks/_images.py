"""Images as monitors take them, as summaries have them, and as PNG files."""

import struct
import zlib
from typing import Any

import numpy as np

from tensorpack.compat import tfv1 as tf

_PNG_COLOURS = {1: 0, 3: 2, 4: 6}  # channels -> colour type of the format


def as_images(name: str, val: Any) -> np.ndarray:
    """Returns what `Monitors.put_image` takes as uint8 `[N, H, W, C]`."""
    images = np.asarray(val)
    if images.ndim == 2:
        images = images[:, :, np.newaxis]
    if images.ndim == 3:
        images = images[np.newaxis]
    if images.ndim != 4 or images.shape[3] not in _PNG_COLOURS:
        raise ValueError(
            f"Image {name!r} must have shape [H, W], [H, W, C] or [N, H, W, C] with C of 1, 3 or "
            f"4, got {list(np.shape(val))}."
        )
    if images.dtype != np.uint8:
        images = np.clip(images, 0, 255).astype(np.uint8)
    return images


def image_summary(name: str, images: np.ndarray) -> tf.Summary:
    """Returns a summary with one value for each of some images from `as_images`."""
    summary = tf.Summary()
    for i, image in enumerate(images):
        value = summary.value.add(tag=name if len(images) == 1 else f"{name}/{i}")
        value.image.height, value.image.width, value.image.colorspace = image.shape
        value.image.encoded_image_string = to_png(image)
    return summary


def to_png(image: np.ndarray) -> bytes:
    """Returns a uint8 image `[H, W, C]` in the PNG format."""
    height, width, channels = image.shape
    rows = np.zeros([height, 1 + width * channels], np.uint8)  # each begins with filter type 0
    rows[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _PNG_COLOURS[channels], 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    png = b"\x89PNG\r\n\x1a\n"
    for kind, data in parts:
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        png += struct.pack(">I", len(data)) + kind + data + checksum
    return png
