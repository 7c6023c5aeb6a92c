import math

import cv2
import numpy as np
import pytest

from tensorpack.dataflow.imgaug import (
    Affine,
    AugmentationError,
    Flip,
    GaussianDeform,
    RandomResize,
    Resize,
    ResizeShortestEdge,
    Rotation,
    RotationAndCropValid,
    Shift,
    ShiftTransform,
    Transpose,
)
from tests.contracts.augmentor import AugmentorContract, picture

POINTS = [(22, 15), (36, 20), (30, 26)]
CONSTANT = {"border": cv2.BORDER_CONSTANT, "border_value": 0}


class Seeded:
    """Stands in for a random stream that always draws one end of the range."""

    def __init__(self, share):
        self.share = share

    def uniform(self, low, high, size=None):
        return np.full(size or (), low + self.share * (high - low))[()]

    def randint(self, low, high):
        return low + int(self.share * (high - 1 - low))


def drawn(augmentor, share, img=None):
    augmentor.use_rng(Seeded(share))
    return augmentor.get_transform(picture() if img is None else img)


class TestShift(AugmentorContract):
    points = POINTS

    def make(self):
        return Shift(0.2, 0.2, **CONSTANT)

    def test_a_colour_at_the_border(self):
        tfm = ShiftTransform(2, 0, (60, 40), cv2.BORDER_CONSTANT, (10, 20, 30))
        result = tfm.apply_image(picture())
        np.testing.assert_array_equal(result[:, :2], np.full((40, 2, 3), [10, 20, 30]))
        assert (tfm.apply_segmentation(np.full((40, 60), 2**40))[:, :3] == [0, 0, 2**40]).all()


class TestRotation(AugmentorContract):
    points = POINTS

    def make(self):
        return Rotation(20, (0.4, 0.6), **CONSTANT)

    def test_steps(self):
        aug = Rotation(180, (0.5, 0.5), step_deg=90)
        img = picture((40, 40, 3))
        results = {aug.augment(img).tobytes() for _ in range(60)}
        assert results == {np.ascontiguousarray(np.rot90(img, n)).tobytes() for n in range(4)}
        turns = []
        for arguments in ((50, (0, 1), 1, 1, 20), (180, (0, 1), 1, 1, 45)):
            for share in (0, 1):
                matrix = drawn(Rotation(*arguments), share).mat
                turns.append(math.degrees(math.atan2(matrix[0, 1], matrix[0, 0])))
        np.testing.assert_allclose(turns, [-40, 40, -135, 180])

    @pytest.mark.parametrize("most, step", [(0.3, 0.1), (0.6, 0.2), (0.7, 0.1), (179.9, 0.1)])
    def test_steps_that_are_no_binary_fractions_reach_the_ends(self, most, step):
        matrices = [drawn(Rotation(most, step_deg=step), share).mat for share in (0, 1)]
        turns = [math.degrees(math.atan2(matrix[0, 1], matrix[0, 0])) for matrix in matrices]
        np.testing.assert_allclose(turns, [-most, most], rtol=1e-5)


class TestRotationAndCropValid(AugmentorContract):
    points = [(28, 18), (33, 20), (30, 22)]

    def make(self):
        return RotationAndCropValid(30)

    @pytest.mark.parametrize("size", [(60, 40), (40, 60), (50, 50), (200, 7)])
    def test_the_largest_rectangle(self, size):
        w, h = size
        widths, heights = np.mgrid[1 : w + h, 1 : w + h]
        for degrees in range(-180, 181, 15):
            c, s = abs(np.cos(np.radians(degrees))), abs(np.sin(np.radians(degrees)))
            a, b = RotationAndCropValid.largest_rotated_rect(w, h, degrees)
            assert a * c + b * s <= w + 1e-4 and a * s + b * c <= h + 1e-4
            fits = (widths * c + heights * s <= w) & (widths * s + heights * c <= h)
            assert (widths * heights)[fits].max(initial=0) < (a + 1) * (b + 1)

    def test_no_border_is_seen(self):
        white = np.full((40, 60, 3), 255, np.uint8)
        for share in np.linspace(0, 1, 13):
            tfm = drawn(RotationAndCropValid(180), share, white)
            tfm.border = cv2.BORDER_CONSTANT
            assert tfm.apply_image(white).min() >= 250  # OpenCV counts in 1/32 of a pixel

    def test_right_angles(self):
        img = picture((41, 60, 3))
        for share, turns in [(0.5, 0), (0.75, 1), (1, 2)]:
            tfm = drawn(RotationAndCropValid(180), share, img)
            np.testing.assert_array_equal(tfm.apply_image(img), np.rot90(img, turns))


class TestAffine(AugmentorContract):
    points = POINTS

    def make(self):
        return Affine((0.8, 1.2), (0.1, 0.1), 15, 10, **CONSTANT)

    def test_shift_and_shear(self):
        middle, right, below = drawn(Affine(None, (0.1, 0.2), 0, 30), 1).apply_coords(
            np.array([[30, 20], [31, 20], [30, 21]])
        )
        np.testing.assert_allclose(middle, [36, 28])
        np.testing.assert_allclose(right - middle, [1, 0], atol=1e-9)
        np.testing.assert_allclose(below - middle, [-0.5, math.sqrt(0.75)])


ANCHORS = [(0.2, 0.2), (0.2, 0.8), (0.8, 0.2), (0.8, 0.8)]


class TestGaussianDeform(AugmentorContract):
    def make(self):
        return GaussianDeform(ANCHORS, (40, 60), 0.3)

    def test_a_pixel_follows_an_anchor_by_its_distance(self):
        aug = GaussianDeform([(0.5, 0.25)], (40, 60), 0.2)
        aug.use_rng(np.random.RandomState(0))
        move = np.random.RandomState(0).uniform(-5, 5, (1, 2))[0, ::-1]  # (y, x) is drawn
        moved = aug.get_transform(picture()).places - np.stack(
            np.meshgrid(np.arange(60), np.arange(40)), axis=2
        )
        np.testing.assert_allclose(moved[20, 15], move, atol=1e-5)
        np.testing.assert_allclose(moved[20, 45], move * np.exp(-(0.5**2) / 0.2), atol=1e-5)
        np.testing.assert_allclose(moved[30, 15], move * np.exp(-(0.25**2) / 0.2), atol=1e-5)

    def test_masks(self):
        aug = self.make()
        mask = np.zeros((40, 60), np.int64)
        mask[:, 30:] = 2**40
        tfm = aug.get_transform(picture())
        result = tfm.apply_segmentation(mask)
        image = tfm.apply_image((mask > 0).astype(np.float32))
        assert result.dtype == np.int64
        sure = abs(image - 0.5) > 0.1  # OpenCV counts in 1/32 of a pixel
        np.testing.assert_array_equal(result[sure] > 0, image[sure] > 0.5)

    def test_coordinates_are_an_error(self):
        with pytest.raises(NotImplementedError, match="apply_coords"):
            self.make().get_transform(picture()).apply_coords(np.zeros((1, 2)))

    def test_another_size(self):
        with pytest.raises(AugmentationError, match="40 rows and 60 columns"):
            self.make().augment(picture((30, 60, 3)))


SOME_POINTS = [(7, 9), (40, 20), (52, 32)]


class TestFlip(AugmentorContract):
    points = SOME_POINTS

    def make(self):
        return Flip(horiz=True)

    @pytest.mark.parametrize("both", [True, False])
    def test_one_direction(self, both):
        with pytest.raises(ValueError, match="horiz=True or vert=True"):
            Flip(horiz=both, vert=both)


class TestResize(AugmentorContract):
    points = SOME_POINTS

    def make(self):
        return Resize((70, 100))


class TestResizeShortestEdge(AugmentorContract):
    points = SOME_POINTS

    def make(self):
        return ResizeShortestEdge(64)

    def test_shape(self):
        assert ResizeShortestEdge(20).augment(picture((40, 61, 3))).shape == (20, 31, 3)
        assert ResizeShortestEdge(20).augment(picture((61, 40, 3))).shape == (31, 20, 3)


class TestRandomResize(AugmentorContract):
    points = SOME_POINTS

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
    points = SOME_POINTS

    def make(self):
        return Transpose()
