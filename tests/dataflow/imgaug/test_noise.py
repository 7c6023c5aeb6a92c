import numpy as np
import pytest

from tensorpack.dataflow import imgaug
from tensorpack.dataflow.imgaug import (
    AugmentationError,
    GaussianNoise,
    JpegNoise,
    SaltPepperNoise,
)
from tests.contracts.augmentor import AugmentorContract, picture

LARGE = (300, 300, 3)


def test_each_image_has_noise_of_its_own():
    for augmentor in (GaussianNoise(9), SaltPepperNoise()):
        first, second = (augmentor.augment(picture()) for _ in range(2))
        assert not np.array_equal(first, second)


class TestJpegNoise(AugmentorContract):
    def make(self):
        return JpegNoise()

    def test_channels_of_the_result(self):
        assert JpegNoise().augment(picture((40, 60))).shape == (40, 60, 3)
        assert JpegNoise().augment(picture((40, 60, 1))).shape == (40, 60, 3)
        with pytest.raises(AugmentationError, match="one or three channels"):
            JpegNoise().augment(picture((40, 60, 4)))

    def test_quality(self):
        drawn = {JpegNoise((40, 42)).get_transform(picture()).param for _ in range(100)}
        assert drawn == {40, 41, 42}
        with pytest.raises(ValueError, match="quality_range must be"):
            JpegNoise((0, 101))


class TestGaussianNoise(AugmentorContract):
    def make(self):
        return GaussianNoise(20)

    def test_distribution(self):
        for dtype in (np.float32, np.float64):
            noise = GaussianNoise(3, clip=False).augment(np.zeros(LARGE, dtype))
            assert noise.dtype == dtype
            assert abs(noise.mean()) < 0.03 and noise.std() == pytest.approx(3, rel=0.01)
            for sigmas, share in [(1, 0.6827), (2, 0.9545), (3, 0.9973)]:
                assert (abs(noise) < 3 * sigmas).mean() == pytest.approx(share, abs=0.005)

    def test_clip(self):
        for value, dtype in [(0, np.uint8), (255, np.uint8), (0, np.float32), (255, np.float32)]:
            result = GaussianNoise(9).augment(np.full((40, 60), value, dtype))
            assert result.min() >= 0 and result.max() <= 255 and result.shape == (40, 60)


class TestSaltPepperNoise(AugmentorContract):
    def make(self):
        return SaltPepperNoise()

    @pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int32])
    def test_shares(self, dtype):
        img = np.full(LARGE, 100, dtype)
        result = SaltPepperNoise(0.1, 0.3).augment(img)
        assert result.dtype == dtype and (img == 100).all()
        shares = [(result == value).mean() for value in (0, 100, 255)]
        np.testing.assert_allclose(shares, [0.3, 0.6, 0.1], atol=0.01)

    @pytest.mark.parametrize("white, black", [(0.9, 0.1), (2 / 3, 1 / 3), (0.3, 0.7)])
    def test_probabilities_that_add_up_to_one_but_for_rounding(self, white, black):
        result = SaltPepperNoise(white, black).augment(np.full((100, 100, 1), 7, np.uint8))
        assert set(np.unique(result)) == {0, 255}


@pytest.mark.parametrize("augmentor", [imgaug.Brightness(10), SaltPepperNoise(), JpegNoise()])
def test_integers_beyond_255_are_refused_where_they_would_be_clipped(augmentor):
    img = np.full((8, 8, 3), 42995, np.uint16)  # it became 255 everywhere
    with pytest.raises(AugmentationError, match=r"in \[0, 255\], got 42995: convert it first"):
        augmentor.augment(img)
    assert augmentor.augment(np.clip(img, 0, 255)).dtype == np.uint16
