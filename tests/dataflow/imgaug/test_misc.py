import numpy as np
import pytest

from tensorpack.dataflow.imgaug import Flip, RandomResize, Resize, ResizeShortestEdge, Transpose
from tests.contracts.augmentor import AugmentorContract, picture

POINTS = [(7, 9), (40, 20), (52, 32)]


class TestFlip(AugmentorContract):
    points = POINTS

    def make(self):
        return Flip(horiz=True)

    def test_both_directions(self):
        img = picture()
        np.testing.assert_array_equal(Flip(horiz=True, prob=1).augment(img), img[:, ::-1])
        np.testing.assert_array_equal(Flip(vert=True, prob=1).augment(img), img[::-1])
        np.testing.assert_array_equal(Flip(vert=True, prob=0).augment(img), img)

    @pytest.mark.parametrize("both", [True, False])
    def test_one_direction(self, both):
        with pytest.raises(ValueError, match="horiz=True or vert=True"):
            Flip(horiz=both, vert=both)


class TestResize(AugmentorContract):
    points = POINTS

    def make(self):
        return Resize((70, 100))

    def test_shape(self):
        assert Resize(20).augment(picture((40, 60, 1))).shape == (20, 20, 1)
        assert Resize((10, 20)).augment(picture((40, 60))).shape == (10, 20)


class TestResizeShortestEdge(AugmentorContract):
    points = POINTS

    def make(self):
        return ResizeShortestEdge(64)

    def test_shape(self):
        assert ResizeShortestEdge(20).augment(picture((40, 61, 3))).shape == (20, 31, 3)
        assert ResizeShortestEdge(20).augment(picture((61, 40, 3))).shape == (31, 20, 3)


class TestRandomResize(AugmentorContract):
    points = POINTS

    def make(self):
        return RandomResize((0.9, 1.5), (0.9, 1.5))

    def test_aspect_ratio_is_kept(self):
        for _ in range(20):
            h, w, _ = RandomResize((30, 120), aspect_ratio_thres=0).augment(picture()).shape
            assert 30 <= w <= 120 and h == int(w * 40 / 60 + 0.5)

    def test_no_size_fits(self, caplog):
        aug = RandomResize((0.5, 0.6), minimum=(50, 0))
        assert aug.augment(picture()).shape == (40, 60, 3)

    def test_sizes_below_the_minimum_are_raised_to_it(self):
        assert RandomResize((0.5, 0.5), minimum=(45, 30)).augment(picture()).shape == (30, 45, 3)


class TestTranspose(AugmentorContract):
    points = POINTS

    def make(self):
        return Transpose()

    def test_result(self):
        img = picture()
        np.testing.assert_array_equal(Transpose(prob=1).augment(img), img.transpose(1, 0, 2))
