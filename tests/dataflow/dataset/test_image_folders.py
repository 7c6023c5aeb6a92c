"""TinyImageNet and Places365-Standard are read from their unpacked folders."""

import numpy as np
import pytest

from tensorpack.dataflow.dataset import Places365Standard, TinyImageNet
from tests.dataflow.dataset.published import random_images, write_image

pytest.importorskip("cv2")

IMAGES = random_images(4, 64, 64, 3)


def assert_images(flow, labels):
    assert len(flow) == 4
    for (image, label), expected, number in zip(flow, IMAGES, labels):
        assert type(label) is int and label == number
        np.testing.assert_array_equal(image, expected)  # in BGR


def test_tiny_imagenet(tmp_path):
    synsets = ["n02124075", "n01443537"]  # not sorted, like the published ones
    (tmp_path / "wnids.txt").write_text("\n".join(synsets) + "\n")
    for index, image in enumerate(IMAGES):
        synset = synsets[index // 2]
        write_image(tmp_path / "train" / synset / "images" / f"{synset}_{index}.JPEG", image)
        write_image(tmp_path / "val" / "images" / f"val_{index}.JPEG", image)
    (tmp_path / "train" / synsets[0] / "images" / "notes.txt").write_text("x")
    lines = (f"val_{i}.JPEG\t{synsets[i % 2]}\t0\t32\t44\t62\n" for i in range(4))
    (tmp_path / "val" / "val_annotations.txt").write_text("".join(lines))
    assert_images(TinyImageNet(tmp_path, "train", shuffle=False), [0, 0, 1, 1])
    assert_images(TinyImageNet(str(tmp_path), "val"), [0, 1, 0, 1])
    assert TinyImageNet(tmp_path, "train").shuffle


def test_places(tmp_path):
    names = ["b/office", "airfield", "b/office", "airfield"]
    paths = [f"val/{name}/{i:08}.jpg" for i, name in enumerate(names)]
    for path, image in zip(paths, IMAGES):
        write_image(tmp_path / path, image)
    (tmp_path / "val.txt").write_text("\n".join(paths) + "\n")
    flow = Places365Standard(str(tmp_path), "val")
    assert flow.get_label_names() == ["airfield", "b/office"]
    assert_images(flow, [1, 0, 1, 0])
    with pytest.raises(FileNotFoundError, match="Places365Standard needs .*txt: download http"):
        Places365Standard(tmp_path, "train")
    with pytest.raises(ValueError, match="the parts 'train' and 'val', not 'test'"):
        Places365Standard(tmp_path, "test")
