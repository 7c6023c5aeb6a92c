"""What every augmentor must do: a test class per augmentor inherits `AugmentorContract`."""

import copy
import pickle

import numpy as np
import pytest


def picture(shape=(40, 60, 3), dtype=np.uint8, seed=0):
    """Returns noise, uint8 or float32 in [0, 255]; read-only, as it belongs to the flow."""
    img = np.random.RandomState(seed).randint(0, 256, shape).astype(dtype)
    img.flags.writeable = False
    return img


def drawn_dots(tfm, shape, points):
    """Returns where white squares of 5 x 5 pixels around `points` are after a transform.

    The points are (column, row) in an image of a shape; the result is float `[N, 2]`.
    """
    centres = []
    for column, row in points:
        img = np.zeros(shape, np.float32)
        img[row - 2 : row + 3, column - 2 : column + 3] = 255
        result = tfm.apply_image(img)
        weights = result.reshape(result.shape[:2] + (-1,))[:, :, 0]
        rows, columns = np.mgrid[: weights.shape[0], : weights.shape[1]] + 0.5
        total = weights.sum()
        assert total, "the dot left the image"
        centres.append([(columns * weights).sum() / total, (rows * weights).sum() / total])
    return np.array(centres)


class AugmentorContract:
    """Tests of the augmentor of `make`; class attributes say what holds for it."""

    shape = (40, 60, 3)  # of the images
    channels = (1, 3)  # numbers of channels that it takes
    dtypes = (np.uint8, np.float32)  # that it takes
    points = None  # (column, row) of pixels that stay in the image, if it moves pixels
    tolerance = 0.3  # pixels

    def make(self):
        """Returns a new augmentor."""
        raise NotImplementedError

    def image(self, dtype=np.uint8, channels=None):
        return picture(self.shape[:2] + (channels or max(self.channels),), dtype)

    def seeded(self, seed=0):
        augmentor = self.make()
        augmentor.use_rng(np.random.RandomState(seed))
        return augmentor

    def test_an_image_of_each_kind(self):
        for dtype in self.dtypes:
            for channels in self.channels:
                result = self.seeded().augment(self.image(dtype, channels))
                assert result.ndim == 3 and result.size and result.dtype.kind in "uf"

    def test_the_image_is_left_as_it_was(self):
        img = self.image()
        before = img.copy()
        for seed in range(5):
            self.seeded(seed).augment(img)  # an error if it writes
        np.testing.assert_array_equal(img, before)

    def test_equal_streams_give_equal_results(self):
        for seed in range(5):
            first, second = (self.seeded(seed).augment(self.image()) for _ in range(2))
            np.testing.assert_array_equal(first, second)

    def test_a_transform_is_a_value(self):
        augmentor = self.seeded()
        expected, tfm = augmentor.augment_return_params(self.image())
        for copied in (tfm, pickle.loads(pickle.dumps(tfm)), copy.deepcopy(tfm)):
            np.testing.assert_array_equal(copied.apply_image(self.image()), expected)
            np.testing.assert_array_equal(
                augmentor.augment_with_params(self.image(), copied), expected
            )

    def test_each_reset_gives_another_stream(self):
        augmentor = self.make()
        augmentor.reset_state()
        before = augmentor.rng
        augmentor.reset_state()
        assert augmentor.rng is not before

    def test_coordinates_follow_the_pixels(self):
        if self.points is None:
            pytest.skip("says nothing of points")
        pixels = np.array(self.points)
        for seed in range(5):
            tfm = self.seeded(seed).get_transform(self.image())
            coords = tfm.apply_coords(pixels + 0.5)
            expected = drawn_dots(tfm, self.shape, self.points)
            np.testing.assert_allclose(coords, expected, atol=self.tolerance)
            assert coords is not pixels

    def test_masks_follow_the_pixels(self):
        if self.points is None:
            pytest.skip("says nothing of points")
        for seed in range(5):
            tfm = self.seeded(seed).get_transform(self.image())
            mask = np.zeros(self.shape[:2], np.int64)
            for label, (column, row) in enumerate(self.points, 1):
                mask[row - 2 : row + 3, column - 2 : column + 3] = label
            result = tfm.apply_segmentation(mask)
            assert result.dtype == np.int64 and set(np.unique(result)) <= set(np.unique(mask))
            places = np.floor(tfm.apply_coords(np.array(self.points) + 0.5)).astype(int)
            labels = [result[row, column] for column, row in places]
            assert labels == list(range(1, len(self.points) + 1))
