import cv2
import numpy as np
import pytest

from tensorpack.dataflow.imgaug import (
    Brightness,
    CropTransform,
    FlipTransform,
    PhotometricTransform,
    ResizeTransform,
    Transform,
    TransformFactory,
    TransformList,
    TransposeTransform,
    WarpAffineTransform,
)
from tests.contracts.augmentor import picture

FLIP, RESIZE = FlipTransform(40, 60), ResizeTransform(40, 60, 80, 30, 1)
TRANSFORMS = [
    FLIP,
    FlipTransform(40, 60, horiz=False),
    RESIZE,
    CropTransform(5, 7, 20, 30),
    TransposeTransform(),
    WarpAffineTransform([[1, 0.1, 2], [-0.1, 1, 3]], (70, 50)),
    PhotometricTransform(Brightness(10), param=3.0),
    TransformList([FLIP, RESIZE]),
]
names = pytest.mark.parametrize("tfm", TRANSFORMS, ids=lambda tfm: type(tfm).__name__)


class Scale(Transform):
    """A user's, which also knows what to do with polygons."""

    def apply_image(self, img):
        return img * 2

    def apply_coords(self, coords):
        return coords * 2

    def apply_polygons(self, polygons):
        return [self.apply_coords(polygon) for polygon in polygons]


def turn(degrees):
    angle = np.deg2rad(degrees)
    matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return TransformFactory("turn", apply_coords=lambda coords: coords @ matrix.T)


def test_a_warp_by_the_inverse_matrix_takes_all_along():
    img = np.zeros((40, 60), np.uint8)
    img[18:23, 28:33] = 200
    matrix = [[1.0, 0, -10], [0, 1, 6]]
    tfm = WarpAffineTransform(matrix, (60, 40), cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    moved = tfm.apply_image(img)
    assert moved[14, 40] == 200
    np.testing.assert_array_equal(tfm.apply_segmentation(img), moved)
    np.testing.assert_allclose(tfm.apply_coords(np.array([[30.5, 20.5]])), [[40.5, 14.5]])


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_a_list_gives_coordinates_of_the_same_floats_whatever_is_in_it(dtype):
    points, boxes = np.ones((3, 2), dtype), np.ones((2, 4), dtype)
    lists = [TransformList(tfms) for tfms in ([], [FLIP], [TRANSFORMS[5]])]
    dtypes = {tfm.apply_coords(points).dtype for tfm in lists}
    dtypes |= {tfm.apply_box(boxes).dtype for tfm in lists}
    assert dtypes == {np.dtype(np.float32 if dtype is np.float32 else np.float64)}


@names
def test_arguments_are_left_as_they_were(tfm):
    values = [np.array([[10.0, 12.0, 20.0, 22.0]]), np.zeros((40, 60), np.int32)]
    for method, value in zip((tfm.apply_box, tfm.apply_segmentation), values):
        value.flags.writeable = False
        method(value)  # an error if it writes


@names
def test_no_coordinates_and_boxes(tfm):
    assert tfm.apply_coords(np.zeros((0, 2))).shape == (0, 2)
    assert tfm.apply_box(np.zeros((0, 4))).shape == (0, 4)


def test_wrong_shapes():
    with pytest.raises(ValueError, match=r"Coordinates have the shape \[N, 2\], got \(4,\)"):
        FLIP.apply_coords(np.zeros(4))
    with pytest.raises(ValueError, match=r"Boxes have the shape \[N, 4\], got \(3, 2\)"):
        FLIP.apply_box(np.zeros((3, 2)))
    for tfm in (RESIZE, CropTransform(0, 0, 50, 50)):
        with pytest.raises(ValueError, match=r"shape \(20, 20, 3\)"):
            tfm.apply_image(picture((20, 20, 3)))
        with pytest.raises(ValueError, match=r"shape \(20, 20\)"):
            tfm.apply_segmentation(picture((20, 20)))


def test_boxes():
    boxes = np.array([[1, 2, 11, 7], [0, 0, 60, 40]])
    expected = [[49, 2, 59, 7], [0, 0, 60, 40]]
    np.testing.assert_array_equal(FLIP.apply_box(boxes), expected)
    np.testing.assert_array_equal(RESIZE.apply_box(boxes), [[0.5, 4, 5.5, 14], [0, 0, 30, 80]])
    root = 2**0.5
    np.testing.assert_allclose(
        turn(45).apply_box(np.array([[0.0, 0, 1, 1]])), [[-root / 2, 0, root / 2, root]], atol=1e-12
    )


class TestTransformList:
    def test_the_order(self):
        add = TransformFactory(apply_image=lambda img: img + 1)
        double = TransformFactory(apply_image=lambda img: img * 2)
        assert TransformList([add, double]).apply_image(3) == 8
        assert (TransformList([add]) + double).apply_image(3) == 8
        assert (double + TransformList([add])).apply_image(3) == 7

    def test_methods_of_all_parts(self):
        polygons = [np.ones((3, 2))]
        result = TransformList([Scale(), Scale()]).apply_polygons(polygons)
        np.testing.assert_array_equal(result, [np.full((3, 2), 4)])
        assert TransformList([]).apply_polygons(polygons) is polygons
        with pytest.raises(NotImplementedError, match=r"FlipTransform has no apply_polygons\(\)"):
            TransformList([Scale(), FLIP]).apply_polygons(polygons)


class TestTransformFactory:
    def test_methods(self):
        tfm = TransformFactory(
            "scale",
            apply_coords=lambda coords: coords * 2,
            apply_polygons=lambda value: value[::-1],
        )
        np.testing.assert_array_equal(tfm.apply_box(np.ones((1, 4))), [[2, 2, 2, 2]])
        assert tfm.apply_polygons([1, 2]) == [2, 1]
        assert repr(tfm) == "scale" and repr(TransformFactory()) == "TransformFactory"
        with pytest.raises(NotImplementedError, match=r"scale has no apply_image\(\)"):
            tfm.apply_image(picture())
