import numpy as np
import pytest

from tensorpack.dataflow.imgaug import AugmentationError, GaussianDeform
from tests.contracts.augmentor import AugmentorContract, picture

ANCHORS = [(0.2, 0.2), (0.2, 0.8), (0.8, 0.2), (0.8, 0.8)]


class TestGaussianDeform(AugmentorContract):
    def make(self):
        return GaussianDeform(ANCHORS, (40, 60), 0.3)

    def test_a_pixel_follows_an_anchor_by_its_distance(self):
        aug = GaussianDeform([(0.5, 0.25)], (40, 60), 0.2, randrange=4)
        aug.use_rng(np.random.RandomState(0))
        move = np.random.RandomState(0).uniform(-4, 4, (1, 2))[0, ::-1]  # (y, x) is drawn
        moved = aug.get_transform(picture()).places - np.stack(
            np.meshgrid(np.arange(60), np.arange(40)), axis=2
        )
        np.testing.assert_allclose(moved[20, 15], move, atol=1e-5)
        np.testing.assert_allclose(moved[20, 45], move * np.exp(-(0.5**2) / 0.2), atol=1e-5)
        np.testing.assert_allclose(moved[30, 15], move * np.exp(-(0.25**2) / 0.2), atol=1e-5)

    def test_anchors_add_up(self):
        aug = GaussianDeform([(0.5, 0.5), (0.5, 0.5), (0, 1)], (40, 60), 0.001)
        aug.use_rng(np.random.RandomState(0))
        moves = np.random.RandomState(0).uniform(-5, 5, (3, 2))[:, ::-1]
        places = aug.get_transform(picture()).places
        np.testing.assert_allclose(places[20, 30] - [30, 20], moves[0] + moves[1], atol=1e-4)

    def test_no_range_leaves_the_image(self):
        aug = GaussianDeform(ANCHORS, (40, 60), randrange=0)
        np.testing.assert_array_equal(aug.augment(picture()), picture())

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
        with pytest.raises(ValueError, match="anchors are"):
            GaussianDeform([1, 2], (40, 60))
