"""CIFAR is read from the folders in its archives, and no code in them runs."""

import pickle

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile
from tensorpack.dataflow.dataset import Cifar10, Cifar100, CifarBase
from tensorpack.utils import change_env
from tests.contracts.dataflow import DataFlowContract
from tests.dataflow.dataset.published import random_images, write_archive
from tests.dataflow.flows import Canary
from tests.dataflow.old_bytes import pickle_of_python_2

TRAIN, TEST = random_images(5, 32, 32, 3), random_images(3, 32, 32, 3, seed=1)
TRAIN_LABELS, TEST_LABELS = np.array([9, 0, 2, 6, 5], np.uint8), np.array([7, 7, 1], np.uint8)
TEN = "airplane automobile bird cat deer dog frog horse ship truck".split()


def pickled(images, labels, key="labels"):
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    found = {"batch_label": "part", key: labels.tolist(), "data": planes, "filenames": ["a.png"]}
    return pickle_of_python_2(found)


def contents_of_10(**others):
    """The files in the archive of CIFAR-10, with one image in each batch."""
    files = {
        f"data_batch_{i + 1}": pickled(TRAIN[i : i + 1], TRAIN_LABELS[i : i + 1]) for i in range(5)
    }
    files["test_batch"] = pickled(TEST, TEST_LABELS)
    files["batches.meta"] = pickle_of_python_2({"num_vis": 3072, "label_names": TEN})
    files.update(others)
    return {f"cifar-10-batches-py/{name}": content for name, content in files.items()}


@pytest.fixture
def folder(tmp_path):
    write_archive(tmp_path / "cifar-10-python.tar.gz", contents_of_10())
    return tmp_path


class TestCifar10(DataFlowContract):
    length = 5

    @pytest.fixture(autouse=True)
    def files(self, folder):
        self.folder = folder

    def make_flow(self):
        return Cifar10("train", shuffle=False, dir=self.folder)


def test_images_are_in_rgb_with_the_channels_last(folder):
    flow = Cifar10("test", dir=folder)  # not shuffled
    datapoints = list(flow)
    for (image, label), expected in zip(datapoints, TEST):
        assert type(label) is int and image.dtype == np.uint8
        np.testing.assert_array_equal(image, expected)
        image[:] = 0  # the consumer's own
    assert [label for _, label in datapoints] == TEST_LABELS.tolist()
    assert Cifar10("train", dir=folder).shuffle and not Cifar10("test", dir=folder).shuffle
    np.testing.assert_array_equal(next(iter(flow))[0], TEST[0])
    flow.data = flow.data[1:]
    assert [label for _, label in flow] == TEST_LABELS.tolist()[1:]
    np.testing.assert_allclose(flow.get_per_pixel_mean(["test"]), TEST.mean(axis=0), rtol=1e-6)


def test_means_and_names(folder):
    flow = Cifar10("train", dir=folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"cifar-10-python.tar.gz", "cifar-10-batches-py"}  # unpacked, nothing else
    (folder / "cifar-10-python.tar.gz").unlink()  # as old tensorpack leaves it
    both = np.concatenate([TRAIN, TEST]).mean(axis=0)
    np.testing.assert_allclose(flow.get_per_pixel_mean(), both, rtol=1e-6)
    mean = flow.get_per_pixel_mean(["train"])
    assert mean.dtype == np.float32
    np.testing.assert_allclose(mean, TRAIN.mean(axis=0), rtol=1e-6)
    channels = flow.get_per_channel_mean(("test",))
    np.testing.assert_allclose(channels, TEST.mean(axis=(0, 1, 2)), rtol=1e-5)
    assert flow.get_label_names() == TEN


def test_the_fine_labels_of_cifar_100(tmp_path):
    folder = tmp_path / "cifar100_data"
    names = pickle_of_python_2({"fine_label_names": ["apple", "baby"]})
    contents = {
        "cifar-100-python/train": pickled(TRAIN, TRAIN_LABELS + 90, "fine_labels"),
        "cifar-100-python/meta": names,
    }
    write_archive(folder / "cifar-100-python.tar.gz", contents)
    with change_env("TENSORPACK_DATASET", str(tmp_path)):
        flow = Cifar100("train", shuffle=False)
        assert len(CifarBase("train", cifar_classnum=100)) == 5
    assert [label for _, label in flow] == (TRAIN_LABELS + 90).tolist()
    np.testing.assert_array_equal([image for image, _ in flow], TRAIN)
    assert flow.get_label_names() == ["apple", "baby"]


def test_damaged_files_are_named_and_no_code_in_them_runs(tmp_path, folder):
    Cifar10("train", dir=folder)
    path = folder / "cifar-10-batches-py" / "data_batch_3"
    code = pickle.dumps({"labels": [1], "data": Canary(tmp_path / "ran")}, 2)
    for content, match in [(code, r"it is a pickle that needs \w+.mkdir"), (b"any", "")]:
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match=f"(?i){path}: {match}"):
            Cifar10("train", dir=folder)
    path.unlink()
    with pytest.raises(DamagedFile, match="data_batch_3: .*No such file"):
        Cifar10("train", dir=folder)
    assert not (tmp_path / "ran").exists()


def test_a_missing_or_damaged_archive_is_named(folder):
    path = folder / "cifar-10-python.tar.gz"
    whole = path.read_bytes()
    for content in whole[: len(whole) // 2], b"<html>":
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match="cifar-10-python.tar.gz cannot be unpacked"):
            Cifar10("train", dir=folder)
        assert list(folder.iterdir()) == [path]
    path.unlink()
    with pytest.raises(FileNotFoundError, match="put https://.*/cifar-10-python.tar.gz there"):
        Cifar10("train", dir=folder)
    with pytest.raises(ValueError, match="'train' and 'test', not 'validation'"):
        Cifar10("validation", dir=folder)


def test_files_of_an_archive_stay_in_its_folder(tmp_path):
    path = tmp_path / "in" / "cifar-10-python.tar.gz"
    write_archive(path, {"../../out": b"x", **contents_of_10()})
    Cifar10("train", dir=tmp_path / "in")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
