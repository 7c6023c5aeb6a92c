"""An image with too many pixels is refused by its header, in the formats that Pillow knows."""

import struct
import sys
import zlib

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile
from tensorpack.dataflow.files.images import decode_image, image_size

cv2 = pytest.importorskip("cv2")


def with_size(data, extension, height, width):
    """Returns the bytes of a JPEG or PNG file with another size in its header."""
    data = bytearray(data)
    if extension == ".png":
        data[16:24] = struct.pack(">II", width, height)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    else:
        place = data.index(b"\xff\xc0")
        data[place + 5 : place + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def encoded(extension):
    image = np.random.RandomState(0).randint(0, 256, (40, 60, 3), np.uint8)
    good, data = cv2.imencode(extension, image)
    assert good
    return data.tobytes()


@pytest.mark.parametrize("extension", [".jpg", ".png", ".tif", ".webp"])
@pytest.mark.parametrize("pillow", [True, False])
def test_the_limit_holds_with_and_without_pillow(extension, pillow, monkeypatch):
    if not pillow:
        monkeypatch.setitem(sys.modules, "PIL.Image", None)
    data = encoded(extension)
    assert image_size(data, "f") == ((40, 60) if pillow else (0, 0))
    assert decode_image(data, "f", max_pixels=2400).shape == (40, 60, 3)
    with pytest.raises(DamagedFile, match="f is refused: it has 40 x 60 pixels, .*=2399"):
        decode_image(data, "f", max_pixels=2399)


@pytest.mark.parametrize("extra", [b"\xff", b"\xff\xff", b"\0"])
def test_padding_between_the_parts_of_a_jpeg(extra):
    padded = encoded(".jpg").replace(b"\xff\xdb", extra + b"\xff\xdb", 1)
    assert decode_image(padded, "f").shape == (40, 60, 3)
    with pytest.raises(DamagedFile, match="f is cut off"):
        decode_image(padded[:-100], "f")


@pytest.mark.parametrize("extension", [".hdr", ".pam"])
def test_formats_that_opencv_decodes_and_pillow_does_not_know(extension):
    try:
        data = encoded(extension)
    except (AssertionError, cv2.error):
        pytest.skip(f"this OpenCV does not write {extension}")
    with pytest.raises(DamagedFile, match="f is not an image that Pillow recognises .*=None"):
        decode_image(data, "f")
    assert decode_image(data, "f", max_pixels=None).shape == (40, 60, 3)
