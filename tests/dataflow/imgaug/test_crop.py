import cv2
import numpy as np
import pytest

from tensorpack.dataflow.imgaug import (
    AugmentationError,
    BackgroundFiller,
    CenterCrop,
    CenterPaste,
    ConstantBackgroundFiller,
    GoogleNetRandomCropAndResize,
    RandomCrop,
    RandomCropAroundBox,
    RandomCropRandomShape,
    RandomCutout,
    RandomPaste,
    perturb_BB,
)
from tensorpack.dataflow.imgaug.crop import FixedCrop
from tensorpack.utils.rect import Rect
from tests.contracts.augmentor import AugmentorContract, picture

POINTS = [(24, 17), (34, 18), (30, 24)]


def transforms(augmentor, count, shape=(40, 60, 3)):
    augmentor.use_rng(np.random.RandomState(0))
    img = picture(shape)
    return [augmentor.get_transform(img) for _ in range(count)]


class TestRandomCrop(AugmentorContract):
    points = POINTS

    def make(self):
        return RandomCrop((32, 50))

    def test_each_place_is_drawn(self):
        places = {(tfm.y0, tfm.x0) for tfm in transforms(RandomCrop((38, 59)), 100)}
        assert places == {(y, x) for y in range(3) for x in range(2)}

    @pytest.mark.parametrize("kind", [RandomCrop, CenterCrop])
    def test_the_image_is_too_small(self, kind):
        with pytest.raises(AugmentationError, match=r"crop_shape=\(40, 61\).*\(40, 60, 3\)"):
            kind((40, 61)).augment(picture())
        with pytest.raises(ValueError, match="at least 1"):
            kind(0)


class TestCenterCrop(AugmentorContract):
    points = POINTS

    def make(self):
        return CenterCrop((32, 50))


class TestRandomCropRandomShape(AugmentorContract):
    points = POINTS

    def make(self):
        return RandomCropRandomShape(50, 36)

    def test_each_size_is_drawn(self):
        sizes = {(tfm.h, tfm.w) for tfm in transforms(RandomCropRandomShape(58, 20, 59, 22), 100)}
        assert sizes == {(h, w) for h in (20, 21, 22) for w in (58, 59)}
        assert {tfm.w for tfm in transforms(RandomCropRandomShape(59, 40), 50)} == {59, 60}

    def test_aspect_ratio(self):
        for tfm in transforms(RandomCropRandomShape(5, 10, max_aspect_ratio=1.5), 200):
            assert max(tfm.w / tfm.h, tfm.h / tfm.w) <= 1.5
        for tfm in transforms(RandomCropRandomShape(1, 1, max_aspect_ratio=1), 20):
            assert tfm.w == tfm.h

    def test_a_ratio_that_rounding_makes_a_little_less(self):
        aug = RandomCropRandomShape(40, 63, 60, 80, max_aspect_ratio=1.4)
        for _ in range(400):
            aug.augment(np.zeros((100, 100)))

    def test_no_size(self):
        aug = RandomCropRandomShape(50, 5, hmax=10, max_aspect_ratio=2)
        with pytest.raises(AugmentationError, match="max_aspect_ratio=2.*low >= high"):
            aug.augment(picture())
        with pytest.raises(AugmentationError, match="less than 50 rows"):
            RandomCropRandomShape(5, 50).augment(picture())
        with pytest.raises(ValueError, match="wmax must be a whole number of at least 5"):
            RandomCropRandomShape(5, 5, wmax=4)


class TestRandomCropAroundBox(AugmentorContract):
    points = POINTS

    def make(self):
        return RandomCropAroundBox(0.1)

    def test_strips(self):
        most = int(0.1 * np.sqrt(2400))
        crops = transforms(RandomCropAroundBox(0.1), 100)
        edges = np.array(
            [[tfm.y0, tfm.x0, 40 - tfm.y0 - tfm.h, 60 - tfm.x0 - tfm.w] for tfm in crops]
        )
        assert edges.min(axis=0).tolist() == [0] * 4 and edges.max(axis=0).tolist() == [most] * 4


class TestPerturbBB:
    def test_edges_stay_near_and_in_the_image(self):
        box, rng = Rect(2, 10, 30, 20), np.random.RandomState(0)
        perturbed = [perturb_BB((40, 60), box, 5.7, rng) for _ in range(300)]
        edges = np.array([[box.x0, box.y0, box.x1, box.y1] for box in perturbed])
        assert edges.min(axis=0).tolist() == [0, 5, 27, 25]
        assert edges.max(axis=0).tolist() == [7, 15, 37, 35]
        ratios = np.array([box.w / box.h for box in perturbed])
        assert np.all(abs(ratios / 1.5 - 1) <= 0.3) and box == Rect(2, 10, 30, 20)


class TestGoogleNetRandomCropAndResize(AugmentorContract):
    points = POINTS

    def make(self):
        return GoogleNetRandomCropAndResize((0.9, 1), (1.4, 1.6), (90, 120))

    def test_parts(self):
        aug = GoogleNetRandomCropAndResize((0.2, 0.5), (0.5, 2), 32)
        for tfm in transforms(aug, 200):
            crop, resize = tfm.tfms
            assert 0.19 <= crop.h * crop.w / 2400 <= 0.52 and 0.47 <= crop.w / crop.h <= 2.1
            part = picture()[crop.y0 : crop.y0 + crop.h, crop.x0 : crop.x0 + crop.w]
            expected = cv2.resize(part, (32, 32), interpolation=cv2.INTER_LINEAR)
            np.testing.assert_array_equal(tfm.apply_image(picture()), expected)

    def test_nothing_fits(self):
        aug = GoogleNetRandomCropAndResize((0.5, 1), target_shape=(20, 10))
        crop, _ = aug.get_transform(picture((10, 300, 3))).tfms
        assert (crop.y0, crop.x0, crop.h, crop.w) == (0, 147, 10, 5)
        crop, _ = aug.get_transform(picture((300, 10, 3))).tfms
        assert (crop.y0, crop.x0, crop.h, crop.w) == (140, 0, 20, 10)


class TestRandomCutout(AugmentorContract):
    def make(self):
        return RandomCutout((5, 20), 10, 7.6)


class TestFixedCrop(AugmentorContract):
    points = POINTS

    def make(self):
        return FixedCrop(Rect(10, 5, 40, 30))


PASTED_POINTS = [(7, 9), (40, 20), (52, 32)]


class TestCenterPaste(AugmentorContract):
    points = PASTED_POINTS

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

    def test_pasting_never_wraps_around(self):
        class Bytes(BackgroundFiller):
            def fill(self, background_shape, img):
                return np.zeros((*background_shape, 3), np.uint8)

        with pytest.raises(AugmentationError, match="uint8"):
            CenterPaste((50, 70), Bytes()).augment(picture(dtype=np.uint16))

    def test_a_filler_of_an_old_script(self):
        class Old(BackgroundFiller):
            def _fill(self, background_shape, img):
                return np.full((*background_shape, 3), 5, np.uint8)

        result = CenterPaste((42, 60), Old()).augment(picture())
        assert (result[[0, -1]] == 5).all() and np.array_equal(result[1:41], picture())


class TestRandomPaste(AugmentorContract):
    points = PASTED_POINTS

    def make(self):
        return RandomPaste((50, 80))
