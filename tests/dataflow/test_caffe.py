"""Datum records are read as Caffe's own reader does; what is none is counted and named."""

import cv2
import numpy as np
import pytest

from tensorpack.dataflow.files.caffe import CaffeLMDB, read_datum
from tensorpack.utils.packing.old_values import BadRecord
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow.lmdb_files import write_raw


def varint(number):
    encoded = b""
    number &= 2**64 - 1
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def datum(image, label):
    """What Caffe writes for an image `[height, width, channels]`."""
    height, width, channels = image.shape
    planes = image.transpose(2, 0, 1).tobytes()
    fields = [channels, height, width, planes, label]
    return b"".join(field(number, value) for number, value in enumerate(fields, 1))


def encoded_datum(image, label, channels=None):
    _, data = cv2.imencode(".png", image)
    parts = [field(4, data.tobytes()), field(5, label), field(7, 1)]
    return b"".join(parts if channels is None else [field(1, channels), *parts])


def images(count, shape=(4, 5, 3)):
    rng = np.random.RandomState(1)
    return [rng.randint(0, 256, shape).astype(np.uint8) for _ in range(count)]


@pytest.fixture(scope="module")
def six(tmp_path_factory):
    folder = tmp_path_factory.mktemp("caffe")
    items = [(b"%08d_n01" % i, datum(image, i)) for i, image in enumerate(images(6))]
    write_raw(folder, items)
    return str(folder)


class TestCaffeLMDB(DataFlowContract):
    length = 6

    @pytest.fixture(autouse=True)
    def _file(self, six):
        self.path = six

    def make_flow(self):
        return CaffeLMDB(self.path, shuffle=False)


def test_images_and_labels(six, capsys):
    loaded = list(CaffeLMDB(six, shuffle=False))
    assert_same(loaded, [[image, label] for label, image in enumerate(images(6))])
    assert "all its keys are read" in capsys.readouterr().out
    image, _ = loaded[0]
    assert image.flags.c_contiguous and image.flags.writeable


def test_encoded_images(tmp_path):
    (colour,), (grey,) = images(1), images(1, (3, 4, 1))
    items = [
        (b"0", encoded_datum(colour, 7)),
        (b"1", encoded_datum(grey, 8, channels=1)),
        (b"2", encoded_datum(grey, 9)),
    ]
    loaded = list(CaffeLMDB(write_raw(tmp_path / "file", items), shuffle=False))
    assert_same(loaded, [[colour, 7], [grey, 8], [np.repeat(grey, 3, axis=2), 9]])


IMAGE = b"".join(field(number, 1) for number in (1, 2, 3)) + field(4, b"a")


@pytest.mark.parametrize("label", [0, 1, 127, 128, 2**31 - 1, -1, -(2**31)])
def test_labels(label):
    assert read_datum(IMAGE + field(5, label))[1] == label


@pytest.mark.parametrize(
    "buf, reason",
    [
        (field(4, 5) + IMAGE[:6], "not a Datum with an image"),
        (IMAGE + field(5, b"5"), "not a Datum with an image"),
        (b"\x80" * 20, "not a Caffe message"),
        (field(5, 1) + b"\x07", r"KeyError\(7\) at byte 3 of 3"),
        (field(4, bytes(60)) + field(1, -3) + field(2, -4) + field(3, 5), "not a Datum with"),
        (field(4, b"no image") + field(7, 1), "not an image"),
        (b"", "not a Datum with an image"),
    ],
)
def test_records_without_an_image(buf, reason):
    with pytest.raises(BadRecord, match=reason):
        read_datum(buf)


def test_a_record_cut_anywhere_is_not_an_image():
    (image,) = images(1)
    whole = datum(image, 5)
    for size in range(len(whole) - 2):  # the label stands at the end, and may be missing
        with pytest.raises(BadRecord):
            read_datum(whole[:size])


def test_bad_records_are_skipped_within_a_limit(tmp_path, capsys):
    items = [(b"%d" % i, datum(image, i)) for i, image in enumerate(images(6))]
    items[1] = b"1", b"no Datum"
    items[4] = b"4", datum(images(1)[0], 4)[:-30]
    path = write_raw(tmp_path / "file", items)
    flow = CaffeLMDB(path, shuffle=False, max_errors=2)
    assert [label for _, label in flow] == [0, 2, 3, 5]
    assert len(flow) == 6
    out = capsys.readouterr().out
    assert f"{path}, key b'1': This is not a Caffe message" in out
    assert f"{path}, key b'4': " in out
