"""The size of an image is read from the header of each format that OpenCV writes."""

import struct

import numpy as np
import pytest

from tensorpack.dataflow._image_header import image_size

cv2 = pytest.importorskip("cv2")


def with_size(data, extension, height, width):
    """Returns the bytes of a file of 40 x 60 pixels with another size in its header."""
    data = bytearray(data)
    if extension == ".png":
        data[16:24] = struct.pack(">II", width, height)
    elif extension == ".bmp":
        data[18:26] = struct.pack("<ii", width, -height)
    elif extension == ".ppm":
        data = data.replace(b"60 40", b"# a comment\n%d %d" % (width, height))
    elif extension == ".jpg":
        place = data.index(b"\xff\xc0")
        data[place + 5 : place + 9] = struct.pack(">HH", height, width)
    else:
        for tag, size in (256, width), (257, height):
            place = data.index(struct.pack("<HHI", tag, 3, 1))
            data[place + 8 : place + 10] = struct.pack("<H", size)
    return bytes(data)


def encoded(extension):
    image = np.random.RandomState(0).randint(0, 256, (40, 60, 3), np.uint8)
    good, data = cv2.imencode(extension, image[:, :, 0] if extension == ".pgm" else image)
    assert good
    return data.tobytes()


@pytest.mark.parametrize("extension", [".jpg", ".png", ".bmp", ".pgm", ".ppm", ".tif", ".webp"])
def test_sizes(extension):
    data = encoded(extension)
    assert image_size(data) == (40, 60)
    for kept in [*range(60), len(data) // 2]:
        assert image_size(data[:kept]) in (None, (40, 60))


@pytest.mark.parametrize("extension", [".jpg", ".png", ".bmp", ".ppm", ".tif"])
def test_a_size_that_is_a_lie(extension):
    assert image_size(with_size(encoded(extension), extension, 30000, 29999)) == (30000, 29999)


def test_webp_without_loss_and_with_more_in_it():
    good, data = cv2.imencode(
        ".webp", np.zeros((40, 60, 3), np.uint8), [cv2.IMWRITE_WEBP_QUALITY, 101]
    )
    assert good and data.tobytes()[12:16] == b"VP8L" and image_size(data.tobytes()) == (40, 60)
    extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0" + bytes(4) + b"\x2f\x75\0\x2e\x75\0"
    assert image_size(extended) == (29999, 30000)


def test_what_is_no_image():
    for data in b"", b"text", b"P5", b"II*\0", b"\xff\xd8\xff", b"P6 1 " + b"1" * 30:
        assert image_size(data) is None
