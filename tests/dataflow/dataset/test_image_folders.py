"""TinyImageNet and Places365-Standard are read from their unpacked folders."""

import numpy as np
import pytest

from tensorpack.dataflow.dataset import Places365Standard, TinyImageNet
from tests.contracts.dataflow import DataFlowContract
from tests.dataflow.dataset.published import random_images, write_image

pytest.importorskip("cv2")

SYNSETS = ["n02124075", "n01443537"]  # not sorted, like the published ones
IMAGES = random_images(4, 64, 64, 3)


@pytest.fixture
def tiny(tmp_path):
    (tmp_path / "wnids.txt").write_text("\n".join(SYNSETS) + "\n")
    for index, image in enumerate(IMAGES):
        synset = SYNSETS[index // 2]
        write_image(tmp_path / "train" / synset / "images" / f"{synset}_{index}.JPEG", image)
        write_image(tmp_path / "val" / "images" / f"val_{index}.JPEG", image)
    (tmp_path / "train" / SYNSETS[0] / "images" / "notes.txt").write_text("x")
    listed = (f"val_{i}.JPEG\t{SYNSETS[i % 2]}\t0\t32\t44\t62\n" for i in range(4))
    (tmp_path / "val" / "val_annotations.txt").write_text("".join(listed))
    return tmp_path


@pytest.fixture
def places(tmp_path):
    names = ["b/office", "airfield", "b/office", "airfield"]
    for part in "train", "val":
        paths = [f"{part}/{name}/{i:08}.jpg" for i, name in enumerate(names)]
        for path, image in zip(paths, IMAGES):
            write_image(tmp_path / path, image)
        (tmp_path / f"{part}.txt").write_text("\n".join(paths) + "\n")
    return tmp_path


class TestTinyImageNet(DataFlowContract):
    length = 4

    @pytest.fixture(autouse=True)
    def files(self, tiny):
        self.folder = tiny

    def make_flow(self):
        return TinyImageNet(self.folder, "val")


class TestPlaces365Standard(DataFlowContract):
    length = 4

    @pytest.fixture(autouse=True)
    def files(self, places):
        self.folder = places

    def make_flow(self):
        return Places365Standard(self.folder, "val")


def assert_images(flow, labels):
    for (image, label), expected, number in zip(flow, IMAGES, labels):
        assert type(label) is int and label == number
        np.testing.assert_array_equal(image, expected)  # in BGR


def test_tiny_imagenet(tiny):
    assert_images(TinyImageNet(tiny, "train", shuffle=False), [0, 0, 1, 1])
    assert_images(TinyImageNet(str(tiny), "val"), [0, 1, 0, 1])
    assert TinyImageNet(tiny, "train").shuffle and not TinyImageNet(tiny, "val").shuffle
    assert len(TinyImageNet(tiny, "train")) == 4


def test_places(places):
    flow = Places365Standard(places, "train")
    assert flow.shuffle and flow.get_label_names() == ["airfield", "b/office"]
    assert_images(Places365Standard(str(places), "val"), [1, 0, 1, 0])


@pytest.mark.parametrize("flow", [TinyImageNet, Places365Standard])
def test_missing_files_and_other_parts(flow, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{flow.__name__} needs .*txt: download http"):
        flow(tmp_path, "val")
    with pytest.raises(ValueError, match="the parts 'train' and 'val', not 'test'"):
        flow(tmp_path, "test")
