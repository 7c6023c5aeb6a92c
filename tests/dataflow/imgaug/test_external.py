"""Each test runs with a stand-in for the library; those of the contract only where it is."""

import random
import sys
from types import ModuleType

import numpy as np
import pytest

from tensorpack.dataflow.imgaug import Albumentations, IAAugmentor
from tests.contracts.augmentor import AugmentorContract, picture


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
    for name in ("albumentations", "imgaug.augmenters"):
        module = ModuleType(name)
        module.ImageOnlyTransform, module.Augmenter = WithOwnStream, Augmenter
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


def test_refuses(libraries):
    with pytest.raises(TypeError, match="takes a transform of it"):
        Albumentations(WithGlobalStreams)
    with pytest.raises(TypeError, match="takes an Augmenter of imgaug"):
        IAAugmentor(lambda img: img)


@pytest.mark.parametrize("kind", [Albumentations, IAAugmentor])
def test_not_installed(monkeypatch, kind):
    for name in ("albumentations", "imgaug", "imgaug.augmenters"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install (imgaug|albumentations)"):
        kind(None)


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
