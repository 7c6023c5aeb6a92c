import numpy as np
import pytest

from tensorpack.dataflow.imgaug import (
    AugmentationError,
    BackgroundFiller,
    CenterPaste,
    ConstantBackgroundFiller,
    RandomPaste,
)
from tests.contracts.augmentor import AugmentorContract, picture

POINTS = [(7, 9), (40, 20), (52, 32)]


class Gradient(BackgroundFiller):
    """A user's filler, with floats; optionally of a wrong shape or dtype."""

    def __init__(self, dtype=np.float64, more_rows=0):
        self.dtype, self.more_rows = dtype, more_rows

    def fill(self, background_shape, img):
        h, w = background_shape
        shape = (h + self.more_rows, w, *img.shape[2:])
        return np.arange(np.prod(shape)).reshape(shape).astype(self.dtype)


class TestCenterPaste(AugmentorContract):
    points = POINTS

    def make(self):
        return CenterPaste((50, 80), ConstantBackgroundFiller(0))

    def test_result(self):
        result = CenterPaste((42, 63), ConstantBackgroundFiller((1.2, -5, 300))).augment(picture())
        expected = np.full((42, 63, 3), [1, 0, 255], np.uint8)
        expected[1:41, 1:61] = picture()
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == np.uint8

    def test_no_room_around(self):
        np.testing.assert_array_equal(CenterPaste((40, 60)).augment(picture()), picture())
        with pytest.raises(AugmentationError, match=r"larger than the background of \(50, 50\)"):
            CenterPaste(50).augment(picture())

    def test_a_filler_of_a_user(self):
        result = CenterPaste((42, 62), Gradient()).augment(picture())
        assert result.dtype == np.float64 and result[0, 1, 0] == 3
        np.testing.assert_array_equal(result[1:41, 1:61], picture())

    def test_a_filler_of_an_old_script(self):
        class Old(BackgroundFiller):
            def _fill(self, background_shape, img):
                return np.full((*background_shape, 3), 5, np.uint8)

        result = CenterPaste((42, 60), Old()).augment(picture())
        assert (result[[0, -1]] == 5).all() and np.array_equal(result[1:41], picture())

    def test_fillers_that_do_not_fit(self):
        with pytest.raises(AugmentationError, match=r"background of shape \(51, 70, 3\)"):
            CenterPaste((50, 70), Gradient(more_rows=1)).augment(picture())
        with pytest.raises(AugmentationError, match="uint8"):
            CenterPaste((50, 70), Gradient(np.uint8)).augment(picture(dtype=np.float32))
        with pytest.raises(AugmentationError, match="does not define fill"):
            CenterPaste((50, 70), BackgroundFiller()).augment(picture())
        with pytest.raises(TypeError, match=r"ConstantBackgroundFiller\(255\)"):
            CenterPaste((50, 70), 255)


class TestRandomPaste(AugmentorContract):
    points = POINTS

    def make(self):
        return RandomPaste((50, 80))

    def test_each_place_is_drawn(self):
        aug = RandomPaste((42, 61))
        places = set()
        for _ in range(100):
            tfm = aug.get_transform(picture())
            places.add((tfm.y0, tfm.x0))
        assert places == {(y, x) for y in range(3) for x in range(2)}
