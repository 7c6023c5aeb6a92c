"""A subclass of any augmentor overrides any one of its methods, and the others follow."""

import functools

import numpy as np
import pytest

from tensorpack.dataflow import imgaug
from tensorpack.dataflow.imgaug import Flip, Resize
from tests.contracts.augmentor import picture

from .test_page import AUGMENTORS

ARGUMENTS = {
    "Affine": {},
    "Brightness": {"delta": 1},
    "BrightnessScale": {"range": (1, 2)},
    "ColorSpace": {"mode": 4},
    "Contrast": {"factor_range": (1, 2)},
    "Gamma": {},
    "GaussianBlur": {},
    "GaussianNoise": {},
    "GoogleNetRandomCropAndResize": {},
    "Grayscale": {},
    "Hue": {},
    "JpegNoise": {},
    "MeanVarianceNormalize": {},
    "MinMaxNormalize": {},
    "RandomResize": {"xrange": (1, 2)},
    "Resize": {"shape": 4},
    "ResizeShortestEdge": {"size": 4},
    "Rotation": {"max_deg": 5},
    "RotationAndCropValid": {"max_deg": 5},
    "Saturation": {},
    "AugmentorList": {"augmentors": [Resize((50, 70)), Flip(horiz=True, prob=1)]},
    "CenterCrop": {"crop_shape": 30},
    "CenterPaste": {"background_shape": 90},
    "Clip": {"min": 20, "max": 200},
    "Flip": {"horiz": True, "prob": 1},
    "GaussianDeform": {"anchors": [(0.5, 0.5)], "shape": (40, 60)},
    "Identity": {},
    "Lighting": {"std": 0.1, "eigval": [1, 2, 3], "eigvec": np.eye(3)},
    "MapImage": {"func": np.flipud, "coord_func": lambda coords: coords * [1, -1] + [0, 40]},
    "RandomApplyAug": {"aug": [Flip(vert=True, prob=1), Resize(50)], "prob": 1},
    "RandomChooseAug": {"aug_lists": [Resize(50), imgaug.Brightness(9)]},
    "RandomCrop": {"crop_shape": 30},
    "RandomCropAroundBox": {"perturb_ratio": 0.2},
    "RandomCropRandomShape": {"wmin": 20, "hmin": 10},
    "RandomCutout": {"h_range": 5, "w_range": 9},
    "RandomOrderAug": {"aug_lists": [Flip(vert=True, prob=1), Resize(50)]},
    "RandomPaste": {"background_shape": 90},
    "SaltPepperNoise": {},
    "Shift": {"horiz_frac": 0.3, "vert_frac": 0.3},
    "ToFloat32": {},
    "ToUint8": {},
    "Transpose": {"prob": 1},
}
GIVEN = {
    "image": picture(),
    "coords": np.array([[10.5, 20.5], [31.0, 12.0]]),
    "box": np.array([[10.0, 8.0, 31.0, 25.0]]),
    "segmentation": picture((40, 60)),
}
CHANGED = {
    "get_transform": [],
    "_get_augment_params": [],
    "_augment": ["image"],
    "_augment_coords": ["coords", "box"],
}


def overriding(kind, method):
    """Returns a class that adds 1 to what a method of another returns, but not to what is drawn."""

    def override(self, *args):
        result = getattr(super(Derived, self), method)(*args)
        return result + 1 if CHANGED[method] else result

    Derived = type("Derived", (kind,), {method: override})
    return Derived


def everything(augmentor):
    """Returns an image and what lies on it after an augmentor, None for what it refuses."""
    augmentor.use_rng(np.random.RandomState(3))
    image, tfm = augmentor.augment_return_params(GIVEN["image"])
    results = {}
    for what, given in GIVEN.items():
        try:
            results[what] = getattr(tfm, f"apply_{what}")(given)
        except NotImplementedError:
            results[what] = None
    np.testing.assert_array_equal(results["image"], image)
    np.testing.assert_array_equal(augmentor.augment_with_params(GIVEN["image"], tfm), image)
    if results["coords"] is not None:
        coords = augmentor.augment_coords(GIVEN["coords"], tfm)
        np.testing.assert_array_equal(coords, results["coords"])
    return results


def check_overridden(make, method):
    """Checks a subclass of `make.func`, called with the arguments of a partial."""
    kind = overriding(make.func, method)
    expected = everything(make())
    for derived in kind, overriding(kind, "get_transform"):
        found = everything(functools.partial(derived, **make.keywords)())
        for what, value in expected.items():
            if value is None:
                assert found[what] is None
            else:
                more = what in CHANGED[method]
                np.testing.assert_allclose(found[what], value + 1 if more else value, atol=1e-9)


class Halved:
    """A user's methods for several augmentors."""

    def _augment(self, img, param):
        return super()._augment(img, param) // 2


def test_methods_are_mixed_in():
    kind = type("HalvedResize", (Halved, Resize), {})
    expected, found = everything(Resize(20)), everything(kind(20))
    np.testing.assert_array_equal(found["image"], expected["image"] // 2)
    np.testing.assert_array_equal(found["coords"], expected["coords"])


@pytest.mark.parametrize("method", CHANGED)
@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_one_method_is_overridden(name, method):
    check_overridden(functools.partial(getattr(imgaug, name), **ARGUMENTS[name]), method)


def test_each_augmentor_is_there():
    others = {"Albumentations", "IAAugmentor", "ImageAugmentor", "PhotometricAugmentor"}
    assert set(ARGUMENTS) == AUGMENTORS - others


class TurnedPair(imgaug.transform.TransformAugmentorBase):
    """A user's of 2018: turns [image, mask], and the joints by what was drawn."""

    def _get_augment_params(self, pair):
        h, w = pair[0].shape[:2]
        tfm = imgaug.FlipTransform(h, w, horiz=True)
        tfm.apply_polygons = lambda polygons: [each[::-1] for each in polygons]
        return tfm

    def _augment(self, pair, tfm):
        return tuple(tfm.apply_image(each) for each in pair)


def test_joints_follow_a_pair_of_images():
    pair = GIVEN["image"], GIVEN["segmentation"]
    for augmentor in TurnedPair(), imgaug.AugmentorList([TurnedPair()]):
        (image, mask), tfm = augmentor.augment_return_params(pair)
        np.testing.assert_array_equal(image, pair[0][:, ::-1])
        np.testing.assert_array_equal(mask, pair[1][:, ::-1])
        turned = [[49.5, 20.5], [29.0, 12.0]]
        np.testing.assert_array_equal(augmentor.augment_coords(GIVEN["coords"], tfm), turned)
        np.testing.assert_array_equal(tfm.apply_coords(GIVEN["coords"]), turned)
        np.testing.assert_array_equal(tfm.apply_box([[10, 8, 31, 25]]), [[29, 8, 50, 25]])
        np.testing.assert_array_equal(tfm.apply_segmentation(mask), pair[1])
        assert tfm.apply_polygons([[1, 2]]) == [[2, 1]]


class Brighter(imgaug.RandomCrop):
    """A user's methods that use the transform that was drawn."""

    def _augment(self, img, tfm):
        return tfm.apply_image(img) + 1

    def _augment_coords(self, coords, tfm):
        return tfm.apply_coords(coords) + 1


def test_a_loop_over_methods_and_what_they_drew_applies_each_once():
    """As the lists that scripts of 2017 write themselves."""
    image, coords = GIVEN["image"], GIVEN["coords"]
    for augmentor in Brighter(30), imgaug.Brightness(30), Flip(vert=True, prob=1), Resize(20):
        augmented, tfm = augmentor.augment_return_params(image)
        np.testing.assert_array_equal(augmentor._augment(image, tfm), augmented)
        moved = augmentor._augment_coords(coords, tfm)
        np.testing.assert_array_equal(moved, tfm.apply_coords(coords))


def test_what_is_set_on_a_transform_is_applied():
    augmentor = Brighter(30)
    _, tfm = augmentor.augment_return_params(GIVEN["image"])
    tfm.y0 = tfm.x0 = 5
    expected = GIVEN["image"][5:35, 5:35] + 1
    np.testing.assert_array_equal(augmentor.augment_with_params(GIVEN["image"], tfm), expected)
    np.testing.assert_array_equal(tfm.apply_coords(GIVEN["coords"]), GIVEN["coords"] - 4)
