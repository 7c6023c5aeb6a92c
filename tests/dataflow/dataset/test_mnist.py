"""MNIST is read from files in its published format; a wrong or missing file is named."""

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
    flow = Mnist("train", dir=folder)
    assert (flow.images.shape, flow.images.dtype) == ((5, 28, 28, 1), np.float32)
    assert len(flow.images[flow.labels == 1]) == 2
    images, labels = next(iter(BatchData(Mnist("test", dir=folder), 2)))
    assert (images.shape, labels.dtype) == ((2, 28, 28), np.int32)


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


def test_missing_files_are_downloaded_when_asked_and_checked(tmp_path, folder):
    class Local(Mnist):
        _ADDRESS = folder.as_uri() + "/"
        _SHA256 = {"train-images-idx3": "0" * 64, "train-labels-idx1": "0" * 64}

    with pytest.raises(ValueError, match="SHA-256 .* instead of 0000"):
        Local("train", dir=tmp_path / "new", download=True)
    assert list((tmp_path / "new").iterdir()) == []

    with pytest.raises(FileNotFoundError) as caught:
        Local("train", dir=tmp_path / "new")
    assert f"put {folder.as_uri()}/train-images-idx3-ubyte.gz there, or" in str(caught.value)
    assert len(Mnist("train", dir=folder, download=True)) == 5  # nothing is missing


def test_a_damaged_file_is_named(folder):
    path = folder / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 8
    other = (folder / "train-labels-idx1-ubyte.gz").read_bytes()
    for content in whole[:-4], bytes(flipped), b"<html>", other:
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match="images-idx3-ubyte.gz cannot be read"):
            Mnist("train", dir=folder)
