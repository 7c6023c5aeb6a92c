"""MNIST is read from files in its published format; a wrong or missing file is named."""

import gzip
import urllib.request

import numpy as np
import pytest

from tensorpack.dataflow import BatchData, DamagedFile
from tensorpack.dataflow.dataset import FashionMnist, Mnist, mnist
from tensorpack.utils import change_env
from tests.contracts.dataflow import DataFlowContract
from tests.dataflow.dataset.published import random_images, write_mnist

LABELS = np.array([3, 1, 4, 1, 5], np.uint8)
IMAGES = random_images(5, 28, 28)


@pytest.fixture
def folder(tmp_path):
    write_mnist(tmp_path, IMAGES, LABELS)
    write_mnist(tmp_path, IMAGES[:2], LABELS[:2], "test")
    return tmp_path


class TestMnist(DataFlowContract):
    length = 5

    @pytest.fixture(autouse=True)
    def files(self, folder):
        self.folder = folder

    def make_flow(self):
        return Mnist("train", shuffle=False, dir=self.folder)


def test_images_are_floats_from_0_to_1_and_labels_are_ints(folder):
    datapoints = list(Mnist("train", shuffle=False, dir=str(folder)))
    for (image, label), expected in zip(datapoints, IMAGES):
        assert type(label) is int and image.dtype == np.float32
        np.testing.assert_array_equal(image, expected / np.float32(255))
    assert [label for _, label in datapoints] == LABELS.tolist()
    images, labels = next(iter(BatchData(Mnist("test", dir=folder), 2)))
    assert (images.shape, labels.dtype) == ((2, 28, 28), np.int32)


def test_all_images_and_labels_as_the_similarity_example_reads_them(folder):
    flow = Mnist("train", dir=folder)
    assert (flow.images.shape, flow.images.dtype) == ((5, 28, 28, 1), np.float32)
    np.testing.assert_array_equal(flow.images[..., 0], IMAGES / np.float32(255))
    assert flow.images is flow.images and flow.labels.dtype == np.uint8
    by_label = [flow.images[flow.labels == label] for label in range(10)]
    assert [len(each) for each in by_label] == [0, 2, 0, 1, 1, 1, 0, 0, 0, 0]


def test_a_script_sets_images_and_labels(folder):
    flow = Mnist("train", shuffle=False, dir=folder)
    flow.images, flow.labels = flow.images[1:3] + 1, flow.labels[1:3]
    assert len(flow) == 2
    for (image, label), before, number in zip(flow, IMAGES[1:], (1, 4)):
        assert type(label) is int and label == number and image.dtype == np.float32
        np.testing.assert_array_equal(image, before / np.float32(255) + 1)


class Halved(Mnist):
    """A script's of 2017: the constructor is a copy of the original's, with half of the images."""

    def __init__(self, train_or_test, shuffle=True, dir=None):
        self.train_or_test, self.shuffle = train_or_test, shuffle
        start = f"https://mnist.invalid/{train_or_test}"
        images = mnist.extract_images(mnist.maybe_download(f"{start}-images-idx3-ubyte.gz", dir))
        path = mnist.maybe_download(f"{start}-labels-idx1-ubyte.gz", dir)
        with gzip.open(path) as file:
            assert mnist._read32(file) == 2049
        self.images, self.labels = images[::2], mnist.extract_labels(path)[::2]


def test_a_script_reads_the_files_itself(folder):
    flow = Halved("train", False, folder)
    flow.reset_state()
    datapoints = list(flow)
    assert [label for _, label in datapoints] == [3, 4, 5] and len(flow) == 3
    np.testing.assert_array_equal(datapoints[1][0], IMAGES[2] / np.float32(255))
    assert mnist.extract_images(folder / "train-images-idx3-ubyte.gz").shape == (5, 28, 28, 1)


def test_training_data_is_shuffled_and_an_image_may_be_changed(folder):
    flow = Mnist("train", dir=folder)
    orders = {tuple(label for _, label in flow) for _ in range(20)}
    assert len(orders) > 1 and {tuple(sorted(order)) for order in orders} == {(1, 1, 3, 4, 5)}
    for image, _ in flow:
        image[:] = 7
    assert all((image < 7).all() for image, _ in flow)


def test_the_folders_in_the_directory_of_datasets(tmp_path):
    write_mnist(tmp_path / "mnist_data", IMAGES, LABELS)
    write_mnist(tmp_path / "fashion_mnist_data", IMAGES[:3], LABELS[:3])
    with change_env("TENSORPACK_DATASET", str(tmp_path)):
        assert len(Mnist("train")) == 5
        fashion = FashionMnist("train")
    assert len(fashion) == 3
    assert len(fashion.get_label_names()) == 10 and fashion.get_label_names()[9] == "Ankle boot"


def test_other_files_than_the_published_ones_are_used_with_a_warning(folder, capsys):
    Mnist("test", dir=folder)
    said = capsys.readouterr().out
    assert said.count("its SHA-256 is another one. It is used") == 2
    assert f"{folder}/t10k-labels-idx1-ubyte.gz is not the file of https:" in said


def test_a_missing_file_is_an_error_that_says_what_to_put_where(folder):
    (folder / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        Mnist("train", dir=folder)
    said = str(caught.value)
    assert "put https://" in said and f"-ubyte.gz into {folder}, or pass download=True" in said
    assert "labels" in said and "images" not in said
    assert len(Mnist("test", dir=folder)) == 2


def test_missing_files_are_downloaded_when_asked_and_checked(tmp_path, folder, monkeypatch):
    class Local(Mnist):
        _ADDRESS = folder.as_uri() + "/"
        _SHA256 = {"train-images": "0" * 64, "train-labels": "0" * 64}

    with pytest.raises(ValueError, match="SHA-256 .* instead of 0000"):
        Local("train", dir=tmp_path / "new", download=True)
    assert list((tmp_path / "new").iterdir()) == []

    def unreachable(url, timeout):
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    with pytest.raises(OSError, match="https.* cannot be downloaded: .*no network.*put it into"):
        Mnist("train", dir=tmp_path / "new", download=True)
    assert len(Mnist("train", dir=folder, download=True)) == 5  # nothing is missing


@pytest.mark.parametrize(
    "labels, match",
    [
        (b"", "requires a buffer of"),
        (b"\0\0\x08\x03\0\0\0\x05", "begins with 2051 instead of 2049"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "array of size 3"),
        (b"\0\0\x08\x01\0\0\0\x05\0\1\2\3\x0a", "labels from 0 to 10, but there are 10 classes"),
        (b"\0\0\x08\x01\0\0\0\x04\0\1\2\3", "has 4 labels of 5 images"),
    ],
)
def test_a_file_of_another_format_is_named(folder, labels, match):
    path = folder / "train-labels-idx1-ubyte.gz"
    path.write_bytes(gzip.compress(labels))
    with pytest.raises(DamagedFile, match=match) as caught:
        Mnist("train", dir=folder)
    assert str(path) in str(caught.value)


def test_a_damaged_file_is_named(folder):
    path = folder / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 8
    for content in whole[:-4], bytes(flipped), b"<html>":
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match="images-idx3-ubyte.gz cannot be read"):
            Mnist("train", dir=folder)
