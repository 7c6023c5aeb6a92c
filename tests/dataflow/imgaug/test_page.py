"""docs/augmentors.md names each augmentor, and its pictures are those that the script draws."""

import importlib.util

import cv2
import numpy as np
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


def test_the_pictures_are_those_that_the_script_draws(script, tmp_path):
    script.main(tmp_path)
    folder = ROOT / "docs" / "images"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(path.name for path in folder.glob("augmentors-*.png"))
    stale = [name for name in names if stale_cells(script, tmp_path / name, folder / name)]
    assert stale == [], "run make pictures"


def stale_cells(script, new, old):
    """Returns the numbers of the cells that differ by more than JPEG does in another OpenCV, or
    "size".

    Another OpenCV writes all names in another font. Where one of them is the same, so is the font,
    and a name that differs is another name.
    """
    new, old = (cv2.imread(str(each)).astype(int) for each in (new, old))
    if new.shape != old.shape:
        return ["size"]
    height = script.CELL + script.TEXT
    places = [
        (slice(top, top + height), slice(left, left + script.CELL))
        for top in range(0, len(new), height)
        for left in range(0, new.shape[1], script.CELL)
    ]
    pictures = [np.abs(new - old)[each][: script.CELL].mean() > 1 for each in places]
    names = [np.any((new != old)[each][script.CELL :]) for each in places]
    has_name = [np.ptp(new[each][script.CELL :]) > 0 for each in places]  # not an empty cell
    same_font = any(has and not differs for has, differs in zip(has_name, names))
    return [
        number
        for number, (picture, name) in enumerate(zip(pictures, names))
        if picture or (same_font and name)
    ]
