import functools
import operator
import random
import sys
from types import ModuleType

import numpy as np
import pytest

from tensorpack.dataflow.imgaug import (
    Albumentations,
    AugmentationError,
    Brightness,
    Flip,
    IAAugmentor,
    Identity,
    MapImage,
    RandomApplyAug,
    RandomChooseAug,
    RandomOrderAug,
    Resize,
    Transpose,
)
from tests.contracts.augmentor import AugmentorContract, picture

from .test_overridden_methods import CHANGED, check_overridden

POINTS = [(7, 9), (40, 20), (52, 32)]
FLIP, TURN = Flip(horiz=True, prob=1), Flip(vert=True, prob=1)


class Add(MapImage):
    """Adds a number, and can be told apart from others."""

    def __init__(self, number):
        super().__init__(lambda img: img + number)
        self.number = number


class TestIdentity(AugmentorContract):
    points = POINTS

    def make(self):
        return Identity()


def mirrored(img):
    return img[:, ::-1]


class TestMapImage(AugmentorContract):
    def make(self):
        return MapImage(mirrored)

    def test_what_it_does_not_know(self):
        tfm = MapImage(mirrored).get_transform(picture())
        for method in (tfm.apply_coords, tfm.apply_segmentation):
            with pytest.raises(NotImplementedError, match="MapImage has no apply_"):
                method(np.zeros((3, 2)))
        with pytest.raises(NotImplementedError, match=r"MapImage has no apply_coords\(\)"):
            tfm.apply_box(np.zeros((3, 4)))


class TestRandomApplyAug(AugmentorContract):
    points = POINTS

    def make(self):
        return RandomApplyAug(FLIP, 0.5)

    def test_probability(self):
        img = picture()
        for prob in (0, 0.3, 1):
            augmentor = RandomApplyAug(FLIP, prob)
            augmentor.use_rng(np.random.RandomState(0))
            flipped = [np.array_equal(augmentor.augment(img), img[:, ::-1]) for _ in range(300)]
            assert np.mean(flipped) == pytest.approx(prob, abs=0.08)
        with pytest.raises(ValueError, match="prob must be"):
            RandomApplyAug(FLIP, 1.1)

    def test_a_list(self):
        result = RandomApplyAug([FLIP, TURN], 1).augment(picture())
        np.testing.assert_array_equal(result, picture()[::-1, ::-1])


class TestRandomChooseAug(AugmentorContract):
    points = POINTS

    def make(self):
        return RandomChooseAug([FLIP, TURN, Resize((50, 70))])

    def shares(self, augmentor):
        augmentor.use_rng(np.random.RandomState(0))
        results = [augmentor.augment(np.zeros((1, 1)))[0, 0] for _ in range(500)]
        return [np.mean(np.array(results) == number) for number in (1, 2, 3)]

    def test_probabilities(self):
        even = RandomChooseAug([Add(1), Add(2), Add(3)])
        np.testing.assert_allclose(self.shares(even), 1 / 3, atol=0.06)
        weighted = RandomChooseAug([(Add(1), 0.7), (Add(2), 0.3), ([Add(1), Add(2)], 0)])
        np.testing.assert_allclose(self.shares(weighted), [0.7, 0.3, 0], atol=0.06)

    def test_probabilities_that_add_up_to_one_but_for_rounding(self):
        third = 0.3333333  # three of them are less than numpy takes for 1
        even = RandomChooseAug([(Add(1), third), (Add(2), third), (Add(3), third)])
        np.testing.assert_allclose(self.shares(even), 1 / 3, atol=0.06)

    def test_what_does_not_add_up(self):
        with pytest.raises(ValueError, match="sum of the probabilities must be .* got 1.1"):
            RandomChooseAug([(FLIP, 0.5), (TURN, 0.6)])


class TestRandomOrderAug(AugmentorContract):
    points = POINTS

    def make(self):
        return RandomOrderAug([FLIP, Resize((50, 70)), Transpose(1)])

    def test_all_orders(self):
        augmentor = RandomOrderAug([Add(1), MapImage(lambda img: img * 10)])
        augmentor.use_rng(np.random.RandomState(0))
        results = [augmentor.augment(np.ones((1, 1)))[0, 0] for _ in range(100)]
        assert set(results) == {20, 11}

    def test_each_sees_the_image_of_the_one_before(self):
        augmentor = RandomOrderAug([Resize((30, 50)), Flip(horiz=True, prob=1)])
        for _ in range(10):  # Flip would otherwise expect another width
            img, tfm = augmentor.augment_return_params(picture())
            assert img.shape == (30, 50, 3)
            np.testing.assert_array_equal(tfm.apply_image(picture()), img)


@pytest.mark.parametrize(
    "make",
    [
        lambda aug: RandomApplyAug(aug, 1),
        lambda aug: RandomChooseAug([(aug, 1)]),
        lambda aug: RandomOrderAug([aug]),
        lambda aug: RandomApplyAug([Identity(), aug], 1),
    ],
)
def test_augmentors_in_augmentors(make):
    inner = Brightness(10)
    outer = make(inner)
    rng = np.random.RandomState(0)
    outer.use_rng(rng)
    assert outer.rng is rng and inner.rng is rng
    outer.reset_state()
    assert inner.rng is not rng and inner.rng is not outer.rng
    with pytest.raises(TypeError, match="takes augmentors.*Make an object of the class"):
        make(Flip)
    with pytest.raises(AugmentationError, match=r"^MapImage\(.*\) failed on an image of shape"):
        make(MapImage(operator.itemgetter("no such"))).augment(picture())


class WithGlobalStreams:
    """Draws as albumentations before 2.0."""

    def __call__(self, image):
        return {"image": image[:, :, 0] + np.random.rand() + random.random()}


class WithOwnStream:
    """Draws as albumentations since 2.0."""

    def set_random_seed(self, seed):
        self.rng = np.random.RandomState(seed)

    def __call__(self, image):
        return {"image": image + self.rng.rand()}


class Augmenter:
    """Draws as imgaug."""

    def to_deterministic(self):
        return Augmenter()

    def seed_(self, seed, deterministic_too):
        assert deterministic_too
        self.rng = np.random.RandomState(seed)

    def augment_image(self, image):
        return image + self.rng.rand()


@pytest.fixture
def libraries(monkeypatch):
    for name in ("albumentations", "imgaug"):
        module = ModuleType(name)
        module.ImageOnlyTransform = WithOwnStream
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize(
    "kind, of_library",
    [
        (Albumentations, WithGlobalStreams),
        (Albumentations, WithOwnStream),
        (IAAugmentor, Augmenter),
    ],
)
def test_seeds(libraries, kind, of_library):
    img = picture((40, 60, 1), np.float32)
    before = random.getstate(), np.random.get_state()[1].tolist()
    results = []
    for seed in (0, 0, 1):
        aug = kind(of_library())
        aug.use_rng(np.random.RandomState(seed))
        results += [aug.augment(img), aug.augment(img)]
    first, second, first_again, second_again, other, _ = results
    assert np.array_equal(first, first_again) and np.array_equal(second, second_again)
    assert not np.array_equal(first, second) and not np.array_equal(first, other)
    assert first.shape == (40, 60, 1)
    assert before == (random.getstate(), np.random.get_state()[1].tolist())


def test_coordinates_of_albumentations(libraries):
    coords = np.zeros((1, 2))
    tfm = Albumentations(WithOwnStream()).get_transform(picture())
    assert np.array_equal(tfm.apply_coords(coords), coords)
    with pytest.raises(NotImplementedError, match="apply_coords"):
        Albumentations(WithGlobalStreams()).get_transform(picture()).apply_coords(coords)


@pytest.mark.parametrize("method", CHANGED)
@pytest.mark.parametrize("of_library", [WithOwnStream, WithGlobalStreams])
def test_a_method_of_albumentations_is_overridden(libraries, of_library, method):
    check_overridden(functools.partial(Albumentations, augmentor=of_library()), method)


class TestAlbumentations(AugmentorContract):
    channels = (3,)
    dtypes = (np.uint8,)

    def make(self):
        of = pytest.importorskip("albumentations")
        return Albumentations(of.Compose([of.RandomCrop(30, 30), of.GaussNoise(p=1)]))


class TestIAAugmentor(AugmentorContract):
    points = [(22, 15), (36, 20), (30, 26)]
    channels = (3,)
    dtypes = (np.uint8,)

    def make(self):
        of = pytest.importorskip("imgaug.augmenters")
        warp = of.Affine(rotate=(-15, 15), translate_px=(-4, 4))
        return IAAugmentor(of.Sequential([of.Fliplr(0.5), warp], random_order=True))
