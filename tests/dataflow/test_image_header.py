"""The size of an image is read from its header, in each format that OpenCV decodes, or unknown."""

import struct
import zlib

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile
from tensorpack.dataflow.files.images import decode_image, image_size

cv2 = pytest.importorskip("cv2")


def with_size(data, extension, height, width):
    """Returns the bytes of a file of 40 x 60 pixels with another size in its header."""
    data = bytearray(data)
    if extension == ".png":
        data[16:24] = struct.pack(">II", width, height)
        data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    elif extension == ".bmp":
        data[18:26] = struct.pack("<ii", width, -height)
    elif extension == ".gif":
        data[6:10] = struct.pack("<HH", width, height)
    elif extension in (".ras", ".jp2"):
        at, size = (4, (width, height)) if extension == ".ras" else (48, (height, width))
        data[at : at + 8] = struct.pack(">II", *size)
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


KNOWN = [".jpg", ".png", ".bmp", ".pgm", ".ppm", ".tif", ".webp", ".gif", ".ras", ".jp2"]


def written_by_opencv(extension):
    try:
        return encoded(extension)
    except (AssertionError, cv2.error):
        pytest.skip(f"this OpenCV does not write {extension}")


@pytest.mark.parametrize("extension", KNOWN)
def test_sizes(extension):
    data = written_by_opencv(extension)
    assert image_size(data) == (40, 60)
    for kept in [*range(60), len(data) // 2]:
        assert image_size(data[:kept]) in (None, (40, 60))


@pytest.mark.parametrize(
    "extension", [".jpg", ".png", ".bmp", ".ppm", ".tif", ".gif", ".ras", ".jp2"]
)
def test_a_size_that_is_a_lie(extension):
    """Above the limit that Pillow itself has for a process, and without its warning."""
    data = with_size(written_by_opencv(extension), extension, 30000, 29999)
    assert image_size(data) == (30000, 29999)


@pytest.mark.parametrize("extra", [b"\xff\x01", b"\xff\xff", b"\xff\xd0\xff\xff\xff\x01"])
def test_markers_of_a_jpeg_that_have_no_length(extra):
    """Taken for a length, what follows them would hide the size that is decoded."""
    data = encoded(".jpg")
    data = with_size(data[:2] + extra + data[2:], ".jpg", 50, 70)
    assert image_size(data) == (50, 70)
    assert decode_image(data + b"\xff\xd9", "f").shape == (50, 70, 3)
    for padding in b"\0", b"\xff\0", b"\0\xff\0\1":
        padded = data.replace(b"\xff\xdb", padding + b"\xff\xdb", 1)
        assert image_size(padded) == decode_image(padded + b"\xff\xd9", "f").shape[:2] == (50, 70)


def test_webp_without_loss():
    good, data = cv2.imencode(
        ".webp", np.zeros((40, 60, 3), np.uint8), [cv2.IMWRITE_WEBP_QUALITY, 101]
    )
    assert good and data.tobytes()[12:16] == b"VP8L" and image_size(data.tobytes()) == (40, 60)


def test_what_is_no_image():
    for data in b"", b"text", b"P5", b"II*\0", b"\xff\xd8\xff", b"P6 1 " + b"1" * 30:
        assert image_size(data) is None


@pytest.mark.parametrize("extension", [".hdr", ".pam"])
def test_formats_that_opencv_decodes_and_pillow_does_not_know(extension):
    data = written_by_opencv(extension)
    with pytest.raises(DamagedFile, match="f is not an image that Pillow recognises .*=None"):
        decode_image(data, "f")
    assert decode_image(data, "f", max_pixels=None).shape == (40, 60, 3)
