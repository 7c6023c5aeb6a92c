import cv2
import numpy as np
import pytest

from tensorpack.dataflow.imgaug import ColorSpace, Grayscale, ToFloat32, ToUint8
from tests.contracts.augmentor import AugmentorContract, picture


class TestColorSpace(AugmentorContract):
    channels = (3,)

    def make(self):
        return ColorSpace(cv2.COLOR_BGR2YUV)

    def test_as_opencv_does_it(self):
        for dtype in (np.uint8, np.float32):
            img = picture(dtype=dtype)
            expected = cv2.cvtColor(img, cv2.COLOR_BGR2YUV)
            np.testing.assert_array_equal(self.make().augment(img), expected)
        assert self.make().augment(picture(dtype=np.float64)).dtype == np.float64

    def test_one_channel(self):
        to_gray = cv2.COLOR_BGR2GRAY
        assert ColorSpace(to_gray).augment(picture()).shape == (40, 60, 1)
        assert ColorSpace(to_gray, False).augment(picture()).shape == (40, 60)
        img = picture((40, 60, 1))
        assert ColorSpace(cv2.COLOR_GRAY2RGB).augment(img).shape == (40, 60, 3)
        with pytest.raises(TypeError, match="mode must be an integer"):
            ColorSpace("gray")


class TestGrayscale(AugmentorContract):
    channels = (3,)

    def make(self):
        return Grayscale()

    @pytest.mark.parametrize("rgb, mode", [(False, cv2.COLOR_BGR2GRAY), (True, cv2.COLOR_RGB2GRAY)])
    def test_as_opencv_does_it(self, rgb, mode):
        img = picture()
        expected = cv2.cvtColor(img, mode)
        np.testing.assert_array_equal(Grayscale(False, rgb).augment(img), expected)
        np.testing.assert_array_equal(Grayscale(rgb=rgb).augment(img)[:, :, 0], expected)
        result = Grayscale(rgb=rgb, keepshape=True).augment(img)
        np.testing.assert_array_equal(result, expected[:, :, np.newaxis].repeat(3, 2))
        assert isinstance(Grayscale(), ColorSpace)

    def test_contradiction(self):
        with pytest.raises(ValueError, match="keepshape=True"):
            Grayscale(keepdims=False, keepshape=True)


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

    def test_values(self):
        result = ToFloat32().augment(picture())
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, picture())
