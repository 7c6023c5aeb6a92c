"""docs/augmentors.md names each augmentor, and its script draws each that changes a picture."""

import importlib.util

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
    missing = sorted(name for name in AUGMENTORS if f"`{name}" not in text)
    assert not missing, f"docs/augmentors.md lacks {missing}"


def names_in(script, family):
    kinds = [each[0] if isinstance(each, tuple) else type(each) for each in family]
    return [kind.__name__ for kind in kinds]


def test_each_is_drawn(script):
    drawn = {name for family in script.families().values() for name in names_in(script, family)}
    missing, more = AUGMENTORS - NOT_DRAWN - drawn, drawn - (AUGMENTORS - NOT_DRAWN)
    assert not missing, f"docs/draw_augmentors.py, or NOT_DRAWN here, lacks {sorted(missing)}"
    assert not more, f"docs/draw_augmentors.py draws {sorted(more)}, which is in NOT_DRAWN or gone"
