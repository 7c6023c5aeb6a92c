import pickle
import sys

import numpy as np
import pytest

from tensorpack.dataflow.imgaug import (
    AugmentationError,
    AugmentorList,
    Flip,
    ImageAugmentor,
    MapImage,
    PhotometricAugmentor,
    Resize,
    Transpose,
    base,
    transform,
)
from tensorpack.utils.optional import Lazy
from tests.contracts.augmentor import AugmentorContract, picture

POINTS = [(7, 9), (40, 20), (52, 32)]


class Shifted2017(ImageAugmentor):
    """A user's, in the spelling of 2017: rolls the image to the right."""

    def __init__(self, most=5, name="shifted"):
        super().__init__()
        self._init(locals())

    def reset_state(self):
        super().reset_state()

    def _get_augment_params(self, img):
        return int(self._rand_range(self.most))

    def _augment(self, img, param):
        return np.roll(img, param, axis=1)

    def _augment_coords(self, coords, param):
        return coords + np.array([param, 0])


class Inverted2017(ImageAugmentor):
    """A user's, in the spelling of 2017, without parameters and coordinates."""

    def _augment(self, img, _):
        return 255 - img


class InvertedLater(PhotometricAugmentor):
    """A user's, in the later spelling."""

    def __init__(self, prob=0.5):
        super().__init__()
        self.prob = prob

    def _get_augment_params(self, img):
        return self.rng.rand() < self.prob

    def _augment(self, img, param):
        return 255 - img if param else img


class TestShifted2017(AugmentorContract):
    def make(self):
        return Shifted2017()

    def test_result(self):
        img, tfm = self.seeded().augment_return_params(picture())
        shift = int(np.random.RandomState(0).uniform(0, 5))
        np.testing.assert_array_equal(img, np.roll(picture(), shift, axis=1))
        np.testing.assert_array_equal(tfm.apply_coords(np.zeros((1, 2))), [[shift, 0]])
        np.testing.assert_array_equal(tfm.apply_box(np.ones((1, 4)))[0, :2], [1 + shift, 1])
        assert repr(Shifted2017(7)) == "Shifted2017(most=7)"

    def test_the_mask_is_unknown(self):
        with pytest.raises(NotImplementedError, match="Shifted2017 has no apply_segmentation"):
            self.make().get_transform(picture()).apply_segmentation(np.zeros((40, 60)))


class TestInvertedLater(AugmentorContract):
    def make(self):
        return InvertedLater()


class TestAugmentorList(AugmentorContract):
    points = POINTS

    def make(self):
        return AugmentorList([Flip(horiz=True), Resize((50, 70)), Transpose()])

    def test_the_order(self):
        img = np.array([[1.0]])
        augmentors = [MapImage(lambda img: img + 1), MapImage(lambda img: img * 10)]
        assert AugmentorList(augmentors).augment(img) == 20
        assert AugmentorList(AugmentorList(augmentors)).augmentors == augmentors
        assert AugmentorList(tuple(augmentors)).augs == augmentors
        assert AugmentorList([]).augment(img) is img

    def test_something_else(self):
        with pytest.raises(TypeError, match=r"AugmentorList takes augmentors.*got 3\.$"):
            AugmentorList([3])


def test_2017_without_coordinates_warns_once_per_class(monkeypatch):
    warnings = []
    monkeypatch.setattr(base, "log_once", lambda text, level: warnings.append(text))
    img, tfm = Inverted2017().augment_return_params(picture())
    np.testing.assert_array_equal(img, 255 - picture())
    np.testing.assert_array_equal(tfm.apply_coords(np.ones((1, 2))), [[1, 1]])
    assert len(warnings) == 1 and warnings[0].startswith("Inverted2017 leaves coordinates")


def test_rand_range():
    augmentor = ImageAugmentor()
    assert 0 <= augmentor._rand_range() < 1
    drawn = augmentor._rand_range(3, 5, [100])
    assert drawn.shape == (100,) and 3 <= drawn.min() < 3.2 and 4.8 < drawn.max() < 5


def test_an_augmentor_without_methods():
    class Nothing(ImageAugmentor):
        pass

    with pytest.raises(AugmentationError, match=r"Nothing\(\).*define Nothing.get_transform"):
        Nothing().augment(picture())


def test_errors_name_augmentor_shape_and_dtype():
    augmentor = AugmentorList([Flip(horiz=True), Resize(20), MapImage(lambda img: img[0, 0, 0, 0])])
    with pytest.raises(AugmentationError) as error:
        augmentor.augment(picture(dtype=np.float32))
    text = str(error.value)
    assert text.startswith("MapImage(func=") and "of shape (20, 20, 3), float32: " in text
    assert isinstance(error.value.__cause__, IndexError)
    assert str(pickle.loads(pickle.dumps(error.value))) == text


@pytest.mark.parametrize(
    "img, error, text",
    [
        ("cat.jpg", TypeError, "is a numpy array, got str"),
        (None, TypeError, "is a numpy array, got NoneType"),
        (np.zeros(3), ValueError, r"got \(3,\)"),
        (np.zeros((0, 4, 3)), ValueError, r"not empty; got \(0, 4, 3\)"),
        (np.zeros((2, 2), bool), TypeError, "got bool"),
        (np.zeros((2, 2), ">f4"), TypeError, "not byte-swapped; got >f4"),
    ],
)
def test_what_is_no_image(img, error, text):
    for augmentor in (Flip(horiz=True), AugmentorList([])):
        with pytest.raises(error, match=text):
            augmentor.augment(img)


def test_names():
    assert repr(Flip(horiz=True)) == "Flip(horiz=True)"
    assert repr(Flip(horiz=True, prob=0.1)) == "Flip(horiz=True, prob=0.1)"
    assert repr(AugmentorList([Flip(vert=True)])) == "AugmentorList(augmentors=[Flip(vert=True)])"


def test_a_missing_opencv(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.setattr(transform, "cv2", Lazy("cv2"))
    with pytest.raises(AugmentationError, match="pip install opencv-python-headless"):
        Resize(4).augment(picture())
