"""Rectangles and the pixels in them."""

import numpy as np
import pytest

from tensorpack.utils.rect import BoxBase, FloatBox, IntBox, Rect

IMAGE = np.arange(50 * 40 * 3).reshape(50, 40, 3)


def test_corners_and_area():
    rect = Rect(3, 4, 10, 20)
    assert (rect.x0, rect.y0, rect.x1, rect.y1, rect.area()) == (3, 4, 13, 24, 200)
    assert repr(rect) == "Rect(x=3, y=4, w=10, h=20)"
    copy = rect.copy()
    assert copy == rect and copy is not rect
    assert Rect().area() == 0


@pytest.mark.parametrize("values", [(-1, 0, 5, 5), (0, -1, 5, 5), (0, 0, -1, 5), (0, 0, 5, -1)])
def test_what_is_no_rectangle_in_an_image(values):
    with pytest.raises(ValueError, match="allow_neg=True"):
        Rect(*values)


def test_validate():
    rect = Rect(3, 4, 10, 20)
    assert rect.validate() and rect.validate((24, 13)) and rect.validate(IMAGE.shape)
    assert not rect.validate((23, 13)) and not rect.validate((24, 12))
    assert not Rect(-1, 0, 5, 5, allow_neg=True).validate()
    assert not Rect(0, 0, 0, 5).validate()


def test_pixels_of_a_rectangle():
    np.testing.assert_array_equal(Rect(3, 4, 10, 20).roi(IMAGE), IMAGE[4:24, 3:13])
    assert Rect(30, 0, 10, 50).roi(IMAGE[:, :, 0]).shape == (50, 10)
    with pytest.raises(ValueError, match="roi_zeropad"):
        Rect(31, 0, 10, 5).roi(IMAGE)


@pytest.mark.parametrize("x, y", [(-3, -4), (35, 45), (3, 4), (100, 100), (-50, 0)])
def test_pixels_outside_of_the_image_are_zero(x, y):
    padded = np.zeros((250, 240, 3), IMAGE.dtype)
    padded[100:150, 100:140] = IMAGE
    found = Rect(x, y, 10, 20, allow_neg=True).roi_zeropad(IMAGE)
    np.testing.assert_array_equal(found, padded[y + 100 : y + 120, x + 100 : x + 110])


def test_expand_keeps_the_centre():
    assert Rect(30, 40, 10, 20).expand(2) == Rect(25, 30, 20, 40)
    assert Rect(30, 40, 7, 9).expand(1.5) == Rect(28, 37, 10, 13)
    assert Rect(3, 4, 10, 20).expand(2) == Rect(-2, -6, 20, 40, allow_neg=True)


def test_a_box_of_pixels_includes_its_last_ones():
    box = IntBox(1, 2, 5, 7)
    assert (box.w, box.h, box.area(), repr(box)) == (5, 6, 30, "IntBox(x1=1, y1=2, x2=5, y2=7)")
    assert box.roi(IMAGE).tolist() == IMAGE[2:8, 1:6].tolist()
    assert IntBox(5, 5, 5, 5).is_box() and not IntBox(5, 5, 4, 5).is_box()
    assert box.is_valid_box((8, 6)) and not box.is_valid_box((7, 6))
    assert not IntBox(-1, 0, 3, 3).is_valid_box((9, 9))
    box.clip_by_shape((4, 5))
    assert box == IntBox(1, 2, 4, 3)


def test_a_box_of_coordinates():
    box = FloatBox(1.5, 2.0, 5.0, 7.0)
    assert (box.w, box.h, box.area(), box.is_box()) == (3.5, 5.0, 17.5, True)
    assert not FloatBox(5.0, 5.0, 5.0, 6.0).is_box()
    box.clip_by_shape((4, 5))
    assert box == FloatBox(1.5, 2.0, 5.0, 4.0) and isinstance(box, BoxBase)
    assert FloatBox.from_intbox(IntBox(1, 2, 5, 7)) == FloatBox(1, 2, 6, 8)
