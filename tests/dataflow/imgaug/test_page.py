"""docs/augmentors.md names each augmentor, and its pictures are those that the script draws."""

import importlib.util

import cv2
import pytest

from tensorpack.dataflow import imgaug
from tests.checks import ROOT

AUGMENTORS = {
    name
    for name in imgaug.__all__
    for kind in [getattr(imgaug, name)]
    if isinstance(kind, type) and issubclass(kind, imgaug.ImageAugmentor)
} - {"Augmentor"}
NOT_DRAWN = {  # they look like what is in them, or like the picture itself
    "Albumentations",
    "AugmentorList",
    "IAAugmentor",
    "MapImage",
    "MeanVarianceNormalize",
    "MinMaxNormalize",
    "RandomApplyAug",
    "RandomChooseAug",
    "RandomOrderAug",
    "ToFloat32",
    "ToUint8",
    "ImageAugmentor",
    "PhotometricAugmentor",
}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("drawing", ROOT / "docs" / "draw_augmentors.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_names_each():
    text = (ROOT / "docs" / "augmentors.md").read_text(encoding="utf-8")
    assert sorted(name for name in AUGMENTORS if f"`{name}" not in text) == []


def test_each_is_drawn(script):
    drawn = {
        (each[0] if isinstance(each, tuple) else type(each)).__name__
        for augmentors in script.families().values()
        for each in augmentors
    }
    assert drawn == AUGMENTORS - NOT_DRAWN


def test_the_pictures_are_those_that_the_script_draws(script, tmp_path):
    script.main(tmp_path)
    folder = ROOT / "docs" / "images"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(path.name for path in folder.glob("augmentors-*.png"))
    for name in names:  # text and JPEG look different in another OpenCV
        new, old = (cv2.imread(str(each / name)).shape for each in (tmp_path, folder))
        assert new == old, "run make pictures"
