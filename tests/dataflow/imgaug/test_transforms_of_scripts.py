"""Transforms have the names and attributes that scripts of 2018 to 2023 read and set."""

import cv2
import numpy as np
import pytest

from tensorpack.dataflow.imgaug import (
    Identity,
    NoOpTransform,
    RandomResize,
    Rotation,
    Shift,
    WarpAffineTransform,
)
from tensorpack.dataflow.imgaug.transform import Transform

MOVED = np.array([[1, 0, 3], [0, 1, -2]], np.float64)


def test_a_warp_has_opencvs_names_and_fills_with_zeros_unless_told():
    warp = WarpAffineTransform(MOVED, (8, 6))
    assert sorted(vars(warp)) == ["borderMode", "borderValue", "dsize", "interp", "mat"]
    assert (warp.dsize, warp.interp, warp.borderMode, warp.borderValue) == ((8, 6), 1, 0, 0)
    img = np.full((6, 8), 50, np.uint8)
    assert warp.apply_image(img)[0, 0] == 0
    by_name = WarpAffineTransform(
        mat=MOVED, dsize=(8, 6), interp=0, borderMode=cv2.BORDER_CONSTANT, borderValue=7
    )
    assert by_name.apply_image(img)[0, 0] == 7


@pytest.mark.parametrize("augmentor", [Rotation(40), Shift(0.5, 0.5)])
def test_a_script_gives_the_mask_a_border_of_its_own(augmentor):
    augmentor.border, augmentor.border_value = cv2.BORDER_CONSTANT, 128
    img = np.zeros((20, 30), np.uint8)
    for _ in range(20):
        warp = augmentor.get_transform(img)
        assert set(np.unique(warp.apply_image(img))) <= set(range(129))
        warp.borderValue = 1
        warp.interp = cv2.INTER_NEAREST
        assert set(np.unique(warp.apply_image(img))) <= {0, 1}
        by_hand = cv2.warpAffine(
            img, warp.mat, warp.dsize, flags=warp.interp, borderMode=0, borderValue=1
        )
        np.testing.assert_array_equal(warp.apply_image(img), by_hand)


def test_a_transform_of_a_script_stores_its_arguments():
    class Fill(Transform):
        def __init__(self, value, channel=0):
            super().__init__()
            self._init(locals())

        def apply_image(self, img):
            return np.full_like(img, self.value + self.channel)

    assert vars(Fill(3)) == {"value": 3, "channel": 0}
    assert Fill(3, channel=2).apply_image(np.zeros(2)).tolist() == [5, 5]


def test_a_transform_that_changes_nothing():
    nothing, img = NoOpTransform(), np.ones((2, 3))
    assert isinstance(Identity().get_transform(img), NoOpTransform)
    assert nothing.apply_image(img) is nothing.apply_segmentation(img) is img
    assert nothing.apply_coords(img) is img


@pytest.mark.parametrize("sizes", [(0.5, 2), (1, 1.5)])
def test_a_range_with_a_float_is_one_of_multiples(sizes):
    augmentor = RandomResize(sizes)
    for _ in range(10):
        width = augmentor.augment(np.zeros((40, 60), np.uint8)).shape[1]
        assert 60 * sizes[0] <= width <= 60 * sizes[1]
