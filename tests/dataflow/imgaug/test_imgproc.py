"""What photometric augmentors do at the ends of their ranges; test_release_0_11.py has values."""

import cv2
import numpy as np
import pytest

from tensorpack.dataflow import imgaug
from tensorpack.dataflow.imgaug import ColorSpace, Grayscale, ToFloat32, ToUint8, imgproc
from tests.contracts.augmentor import AugmentorContract, picture


class PhotometricContract(AugmentorContract):
    """An augmentor that leaves shape and dtype, coordinates and masks as they are."""

    dtypes = (np.uint8, np.float32, np.float64)
    extra = ((40, 60), (40, 60, 1), (40, 60, 5))

    def test_shape_and_dtype_stay(self):
        shapes = [(40, 60, 3), *(self.extra if 1 in self.channels else ())]
        for shape in shapes:
            for dtype in self.dtypes:
                result = self.seeded().augment(picture(shape, dtype))
                assert (result.shape, result.dtype) == (shape, dtype)

    def test_nothing_moves(self):
        tfm = self.seeded().get_transform(self.image())
        coords = np.array([[1.5, 2.5]])
        np.testing.assert_array_equal(tfm.apply_coords(coords), coords)
        boxes = np.array([[1.0, 2.0, 3.0, 5.0]])
        np.testing.assert_array_equal(tfm.apply_box(boxes), boxes)
        mask = np.arange(4).reshape(2, 2)
        np.testing.assert_array_equal(tfm.apply_segmentation(mask), mask)


class ColourContract(PhotometricContract):
    """An augmentor of images with three channels."""

    channels = (3,)

    def test_one_channel(self):
        with pytest.raises(imgaug.AugmentationError, match=r"takes images \[h, w, 3\], got .*40, "):
            self.make().augment(picture((40, 60, 1)))


class TestHue(ColourContract):
    dtypes = (np.uint8, np.float32)  # as OpenCV

    def make(self):
        return imgaug.Hue((-30, 30))


class TestSaturation(ColourContract):
    def make(self):
        return imgaug.Saturation(0.9)

    def test_bright_colours_do_not_overflow(self):
        img = np.zeros((4, 4, 3), np.uint8)
        img[:, :, 0] = 255
        augmentor = imgaug.Saturation(0.9)
        result = augmentor._augment(img, 1.9)
        np.testing.assert_array_equal(result[0, 0], [255, 0, 0])
        assert augmentor._augment(img, 0)[0, 0].tolist() == [76, 76, 76]


class TestBrightness(PhotometricContract):
    def make(self):
        return imgaug.Brightness(100)


class TestBrightnessScale(PhotometricContract):
    def make(self):
        return imgaug.BrightnessScale((0.5, 2))


class TestContrast(PhotometricContract):
    def make(self):
        return imgaug.Contrast((0.5, 1.5))

    def test_the_mean_of_many_channels_and_pixels(self):
        img = np.full((1500, 1500, 5), 100.3, np.float32)
        np.testing.assert_allclose(imgaug.Contrast((0, 0)).augment(img), img, rtol=1e-6)

    def test_arguments_of_both_generations(self):
        assert imgaug.Contrast((0.5, 1.5), clip=False).clip is False
        later = imgaug.Contrast((0.5, 1.5), True, False)
        assert (later.rgb, later.clip) == (True, False)
        assert imgaug.Contrast((0.5, 1.5), None, clip=False).clip is False
        by_name = imgaug.Contrast((0.5, 1.5), False, clip=False)
        assert (by_name.rgb, by_name.clip) == (False, False)
        with pytest.raises(imgaug.AugmentationError, match=r"\[h, w, 3\]"):
            imgaug.Contrast((0.5, 1.5), rgb=True).augment(picture((4, 4, 2)))

    @pytest.mark.parametrize("clip", [True, False])
    def test_one_bool_is_the_clip_of_2017(self, monkeypatch, clip):
        warnings = []
        monkeypatch.setattr(imgproc, "log_once", lambda text, level: warnings.append(text))
        augmentor = imgaug.Contrast((0.8, 1.2), clip)
        assert (augmentor.clip, augmentor.rgb) == (clip, None)
        assert warnings == [f"Contrast: write clip={clip} or rgb={clip}; it is read as clip."]

    def test_a_grey_image_is_its_own_grey_version(self):
        grey = picture((40, 60))
        for img in (grey, grey[:, :, np.newaxis]):
            results = []
            for rgb in (None, True):
                augmentor = imgaug.Contrast((0.5, 1.5), rgb=rgb)
                augmentor.use_rng(np.random.RandomState(0))
                results.append(augmentor.augment(img))
            np.testing.assert_array_equal(*results)


class TestGamma(PhotometricContract):
    def make(self):
        return imgaug.Gamma()

    def test_values_out_of_range(self):
        img = np.array([[-5, 300]], np.float32)
        np.testing.assert_allclose(self.make().augment(img), [[0, 255]])
        with pytest.raises(ValueError, match="of at least -1"):
            imgaug.Gamma((-2, 0))


class TestClip(PhotometricContract):
    def make(self):
        return imgaug.Clip(10, 200)

    def test_limits(self):
        with pytest.raises(ValueError, match="smaller one first"):
            imgaug.Clip(3, 2)


class TestLighting(ColourContract):
    eigval = (55.5, 4.8, 1.2)
    eigvec = ((-0.57, 0.72, 0.41), (-0.58, 0.0, -0.81), (-0.58, -0.69, 0.42))

    def make(self):
        return imgaug.Lighting(1, self.eigval, self.eigvec)


class TestMeanVarianceNormalize(AugmentorContract):
    def make(self):
        return imgaug.MeanVarianceNormalize()

    def test_images_of_one_colour(self):
        for all_channel in (True, False):
            augmentor = imgaug.MeanVarianceNormalize(all_channel)
            np.testing.assert_allclose(
                augmentor.augment(np.full((10, 10, 3), 251, np.uint8)), 0, atol=1e-3
            )
        img = np.full((10, 10, 3), 5, np.float32)
        img[0, 0] = 5.1
        low, high = imgaug.MeanVarianceNormalize().augment(img).ravel()[[-1, 0]]
        assert high - low == pytest.approx(0.1 * 300**0.5, rel=1e-4)  # the least divisor


class TestMinMaxNormalize(AugmentorContract):
    def make(self):
        return imgaug.MinMaxNormalize()


class TestGaussianBlur(PhotometricContract):
    def make(self):
        return imgaug.GaussianBlur((1, 3), (0.5, 2), symmetric=False)

    def drawn(self, augmentor):
        return {augmentor.get_transform(picture()).param for _ in range(200)}

    def test_sizes_of_both_generations(self):
        expected = {((size, size), (0, 0)) for size in (1, 3, 5)}
        for augmentor in (
            imgaug.GaussianBlur(),
            imgaug.GaussianBlur(3),
            imgaug.GaussianBlur(max_size=3),
            imgaug.GaussianBlur((0, 3)),
        ):
            assert self.drawn(augmentor) == expected
        sizes = {size for size, _ in self.drawn(imgaug.GaussianBlur((1, 3), symmetric=False))}
        assert sizes == {(3, 3), (3, 5), (5, 3), (5, 5)}

    @pytest.mark.parametrize("size", [0, (2, 2), (-1, 2), (3, 1), (1, 2, 3)])
    def test_sizes(self, size):
        with pytest.raises(ValueError, match="size_range must be"):
            imgaug.GaussianBlur(size)


class TestColorSpace(AugmentorContract):
    channels = (3,)

    def make(self):
        return ColorSpace(cv2.COLOR_BGR2YUV)

    def test_what_opencv_does_not_take(self):
        with pytest.raises(imgaug.AugmentationError, match=r"60, 3\), float64: OpenCV"):
            self.make().augment(picture(dtype=np.float64))

    def test_one_channel(self):
        to_gray = cv2.COLOR_BGR2GRAY
        assert ColorSpace(to_gray).augment(picture()).shape == (40, 60, 1)
        assert ColorSpace(to_gray, False).augment(picture()).shape == (40, 60)
        img = picture((40, 60, 1))
        assert ColorSpace(cv2.COLOR_GRAY2RGB).augment(img).shape == (40, 60, 3)
        with pytest.raises(TypeError, match="mode must be a number"):
            ColorSpace("gray")


class TestGrayscale(AugmentorContract):
    channels = (3,)

    def make(self):
        return Grayscale()


class TestToUint8(AugmentorContract):
    def make(self):
        return ToUint8()

    def test_values(self):
        img = np.array([[1.7, 300, -4, 255.9, 2.5]])
        result = ToUint8().augment(img)
        assert result.dtype == np.uint8 and result.tolist() == [[1, 255, 0, 255, 2]]
        assert ToUint8().augment(np.array([[-1, 256]])).tolist() == [[0, 255]]


class TestToFloat32(AugmentorContract):
    def make(self):
        return ToFloat32()
