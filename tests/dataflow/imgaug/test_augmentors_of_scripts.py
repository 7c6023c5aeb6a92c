"""Augmentors of scripts of 2017 to 2019: what they carry, and what they find in what was drawn."""

import copy
import pickle

import numpy as np
import pytest

from tensorpack.dataflow import AugmentImageComponent, DataFromList, imgaug
from tensorpack.dataflow.imgaug import (
    AugmentorList,
    CropTransform,
    Flip,
    ImageAugmentor,
    RandomApplyAug,
    RandomChooseAug,
    RandomOrderAug,
    Resize,
    transform,
)
from tests.contracts.augmentor import picture


class MirrorPair(ImageAugmentor):
    """Takes [image, mask] or {"image": ..., "mask": ...}, and mirrors both."""

    def __init__(self, prob=1.0):
        super().__init__()
        self._init(locals())

    def _get_augment_params(self, pair):
        first = pair["image"] if isinstance(pair, dict) else pair[0]
        return bool(self._rand_range() < self.prob), first.shape[1]

    def _augment(self, pair, param):
        do, _ = param
        if not do:
            return pair
        if isinstance(pair, dict):
            return {name: each[:, ::-1] for name, each in pair.items()}
        return type(pair)(each[:, ::-1] for each in pair)

    def _augment_coords(self, coords, param):
        do, w = param
        return np.stack([w - coords[:, 0], coords[:, 1]], axis=1) if do else coords


class Turn(ImageAugmentor):
    """Draws one number."""

    def _get_augment_params(self, img):
        return 3

    def _augment(self, img, turns):
        return np.rot90(img, turns)


IMG, MASK = picture(), picture((40, 60))


@pytest.mark.parametrize("pair", [[IMG, MASK], (IMG, MASK), {"image": IMG, "mask": MASK}])
@pytest.mark.parametrize(
    "around",
    [
        lambda aug: aug,
        lambda aug: AugmentorList([aug]),
        lambda aug: RandomApplyAug(aug, 1.0),
        lambda aug: RandomChooseAug([aug]),
        lambda aug: RandomOrderAug([aug, RandomApplyAug(aug, 0.0)]),
    ],
)
def test_a_structure_goes_through_lists_and_choices(around, pair):
    augmentor = around(MirrorPair())
    for result in (augmentor.augment(pair), augmentor.augment_return_params(pair)[0]):
        assert type(result) is type(pair) and len(result) == 2
        images = result.values() if isinstance(result, dict) else result
        for each, expected in zip(images, (IMG, MASK)):
            np.testing.assert_array_equal(each, expected[:, ::-1])


def test_a_structure_in_a_flow():
    flow = AugmentImageComponent(DataFromList([[(IMG, MASK), 7]]), [MirrorPair()])
    flow.reset_state()
    [((img, _), label)] = flow
    np.testing.assert_array_equal(img, IMG[:, ::-1])
    assert label == 7


def test_an_augmentor_of_images_refuses_a_structure():
    for augmentor in (Resize(20), imgaug.Brightness(3), AugmentorList([Flip(vert=True, prob=1)])):
        with pytest.raises(TypeError, match="is a numpy array, got list; .* failed on it"):
            augmentor.augment([IMG, MASK])


def test_what_was_drawn_is_what_the_augmentor_drew():
    augmentor = MirrorPair()
    img, params = augmentor.augment_return_params([IMG])
    do, w = params
    assert (do, w) == (True, 60) == tuple(params) and params == (True, 60)
    assert params[1] == 60 and len(params) == 2 and params
    coords = np.array([[10.0, 3.0]])
    for param in (params, (do, w)):
        np.testing.assert_array_equal(augmentor.augment_coords(coords, param), [[50, 3]])
        np.testing.assert_array_equal(augmentor.augment_with_params([IMG], param)[0], img[0])
    np.testing.assert_array_equal(params.apply_coords(coords), [[50, 3]])
    for other in (copy.deepcopy(params), pickle.loads(pickle.dumps(params))):
        assert other == (True, 60) and other.apply_coords(coords).shape == (1, 2)


def test_a_list_gives_what_each_part_drew():
    _, params = AugmentorList([MirrorPair(), MirrorPair(0)]).augment_return_params([IMG])
    assert params[0] == (True, 60) and [do for do, _ in params] == [True, False]


def test_one_number_was_drawn():
    _, turns = Turn().augment_return_params(IMG)
    assert turns == 3 and int(turns) == 3 and float(turns) == 3.0
    np.testing.assert_array_equal(np.rot90(IMG, int(turns)), turns.apply_image(IMG))

    class Cutout(imgaug.ImageAugmentor):
        def _get_augment_params(self, img):
            return CropTransform(1, 2, 3, 4)

        def _augment(self, img, param):
            return img

    assert Cutout().augment_return_params(IMG)[1].x0 == 2


@pytest.mark.parametrize(
    "augmentor, drawn",
    [
        (imgaug.RandomCrop((30, 50)), {"h": 30, "w": 50}),
        (imgaug.CenterCrop(10), {"y0": 15, "x0": 25, "h": 10, "w": 10}),
        (imgaug.Flip(horiz=True, prob=1), {"horiz": True}),
        (imgaug.Resize((8, 9)), {"new_h": 8, "new_w": 9}),
        (imgaug.Rotation(10), {"dsize": (60, 40)}),
        (imgaug.RandomPaste(70), {"background_shape": (70, 70)}),
        (AugmentorList([imgaug.Resize(8)]), {}),
    ],
)
def test_ours_draw_in_the_spelling_of_2017(augmentor, drawn):
    augmentor.use_rng(np.random.RandomState(0))
    param = augmentor._get_augment_params(IMG)
    assert {name: getattr(param, name) for name in drawn} == drawn
    augmentor.use_rng(np.random.RandomState(0))
    np.testing.assert_array_equal(augmentor.augment(IMG), augmentor._augment(IMG, param))


def test_attributes_of_0_11():
    for tfm in (CropTransform(0, 0, 2, 2), imgaug.TransformList([])):
        assert isinstance(tfm, transform.BaseTransform)
    assert imgaug.Resize(9).shape == (9, 9)
    assert RandomChooseAug([Flip(horiz=True), Resize(3)]).prob == [0.5, 0.5]
    assert imgaug.CenterPaste(9).background_filler.value == 0
    coords = np.ones((3, 2), np.float32)
    for tfm in (CropTransform(0, 0, 2, 2), imgaug.ResizeTransform(4, 4, 2, 2, 1)):
        assert tfm.apply_coords(coords).dtype == np.float32


def test_affine_moves_by_whole_pixels():
    augmentor = imgaug.Affine(translate_frac=(0.3, 0.3))
    for _ in range(10):
        shift = augmentor.get_transform(IMG).mat[:, 2]
        np.testing.assert_allclose(shift, np.rint(shift), atol=1e-9)
