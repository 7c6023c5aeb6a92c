"""Images, masks, keypoints and boxes follow one image, each with options of its own."""

import pickle
from contextlib import nullcontext

import cv2
import numpy as np
import pytest

from tensorpack.dataflow import AugmentImageComponents, DataFromList, imgaug
from tensorpack.dataflow.imgaug import Target
from tests.contracts.augmentor import picture

SHAPE = (40, 60)
LABELS = {3, 7}


def labels(dtype=np.int32):
    mask = np.full(SHAPE, 3, dtype)
    mask[10:30, 20:40] = 7
    return mask


def moving():
    """Augmentors that interpolate or have a border, by name."""
    return {
        "Rotation": imgaug.Rotation(40, (0.5, 0.5)),
        "Affine": imgaug.Affine((0.5, 0.8), (0.1, 0.1), 20, 10),
        "Shift": imgaug.Shift(0.3, 0.3),
        "Resize": imgaug.Resize((55, 47)),
        "RandomPaste": imgaug.RandomPaste(80, imgaug.ConstantBackgroundFiller(128)),
        "GaussianDeform": imgaug.GaussianDeform([(0.2, 0.2), (0.7, 0.8)], SHAPE, 0.2, 25),
    }


def drawn(name, img=None):
    augmentor = moving()[name]
    augmentor.use_rng(np.random.RandomState(1))
    return augmentor.get_transform(picture(SHAPE) if img is None else img)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float32])
@pytest.mark.parametrize("name", list(moving()))
def test_a_mask_keeps_its_labels_and_has_a_border_of_its_own(name, dtype):
    tfm = drawn(name)
    plain = Target("mask").apply(tfm, labels(dtype))
    filled = Target("mask", fill=255).apply(tfm, labels(dtype))
    assert filled.dtype == dtype and set(np.unique(plain)) <= LABELS | {0}
    outside = filled == 255
    assert set(np.unique(filled[~outside])) <= LABELS
    assert outside.any() == (name != "Resize")
    if name != "GaussianDeform":  # OpenCV rounds a half to the other side
        np.testing.assert_array_equal(plain[~outside], filled[~outside])


@pytest.mark.parametrize("name", list(moving()))
def test_the_options_of_a_second_image(name):
    img = picture(SHAPE).astype(np.float32)
    tfm = drawn(name)
    before = tfm.apply_image(img)
    result = Target("image", cv2.INTER_NEAREST, 300).apply(tfm, img)
    assert set(np.unique(result)) <= set(np.unique(img)) | {300}
    assert (result == 300).any() == (name != "Resize")
    np.testing.assert_array_equal(tfm.apply_image(img), before)


@pytest.mark.parametrize("name", ["Rotation", "Affine", "Resize", "GaussianDeform"])
def test_a_mask_may_be_interpolated(name):
    heat = np.tile(np.linspace(0, 1, SHAPE[1], dtype=np.float32), (SHAPE[0], 1))
    tfm = drawn(name)
    result = Target("mask", interp=cv2.INTER_LINEAR).apply(tfm, heat)
    assert result.dtype == np.float32 and not set(np.unique(result)) <= set(np.unique(heat))
    assert set(np.unique(Target("mask").apply(tfm, heat))) <= set(np.unique(heat)) | {0}


def test_what_an_interpolation_makes_of_a_mask_of_integers_stays_within_them():
    tfm = imgaug.Resize((80, 120)).get_transform(picture(SHAPE))
    for dtype, most in ((np.uint8, 255), (np.int16, 2**15 - 1)):
        mask = np.zeros(SHAPE, dtype)
        mask[10:30, 20:40] = most
        result = Target("mask", interp=cv2.INTER_CUBIC).apply(tfm, mask)
        assert result.dtype == dtype
        flat = np.ones((80, 120), bool)
        flat[16:64, 36:84] = False
        flat[24:56, 44:76] = True
        np.testing.assert_array_equal(result[flat], np.repeat(np.repeat(mask, 2, 0), 2, 1)[flat])
        expected = tfm.with_options(cv2.INTER_CUBIC).apply_image(mask)
        assert np.abs(result.astype(int) - expected).max() <= 1


def test_a_fill_that_the_mask_cannot_have_is_refused():
    assert Target("mask", fill=np.nan).apply(drawn("Shift"), labels(np.float32)).dtype == np.float32
    for dtype, fill in ((np.uint8, -1), (np.int8, 255), (np.uint8, 0.5)):
        with pytest.raises(ValueError, match=f"a mask of .* cannot have the fill {fill}"):
            Target("mask", fill=fill).apply(drawn("Shift"), labels(dtype))


def test_a_second_image_without_interpolation_lies_where_the_first_one_does():
    ramp = np.tile(np.arange(64), (8, 1))
    tfm = imgaug.Resize((8, 8)).get_transform(ramp.astype(np.float32))
    nearest = Target("image", interp=cv2.INTER_NEAREST).apply(tfm, ramp.astype(np.float32))
    np.testing.assert_array_equal(nearest, tfm.apply_segmentation(ramp))


def test_another_size_than_that_of_the_image_is_refused():
    flow = DataFromList([{"image": picture(SHAPE), "mask": labels()[::2]}])
    for augmentor in imgaug.Flip(horiz=True), imgaug.RandomCrop(20), imgaug.Rotation(9):
        targets = {"image": "image", "mask": "mask"}
        augmented = AugmentImageComponents(flow, [augmentor], targets=targets)
        moves = isinstance(augmentor, imgaug.Flip)  # which is right for any size
        refused = pytest.raises(imgaug.AugmentationError, match="have the height and width of that")
        with nullcontext() if moves else refused:
            list(augmented)


def test_colours_and_lists():
    img = picture()
    paste = imgaug.AugmentorList(
        [imgaug.CenterPaste(70), imgaug.Rotation(10), imgaug.Brightness(9)]
    )
    tfm = pickle.loads(pickle.dumps(paste.get_transform(img)))
    result = Target("image", cv2.INTER_NEAREST, (1, 2, 3)).apply(tfm, np.full_like(img, 100))
    shift = int(result[35, 35, 0]) - 100
    assert result[1, 35].tolist() == [max(1 + shift, 0), max(2 + shift, 0), max(3 + shift, 0)]
    assert Target("mask", fill=9).apply(tfm, labels())[1, 35] == 9


def test_a_warp_by_the_inverse_matrix_takes_all_along():
    img = np.zeros(SHAPE, np.uint8)
    img[18:23, 28:33] = 200
    matrix = np.array([[1.0, 0, -10], [0, 1, 6]])
    tfm = imgaug.WarpAffineTransform(matrix, (60, 40), cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
    moved = tfm.apply_image(img)
    assert moved[14, 40] == 200
    np.testing.assert_array_equal(tfm.apply_segmentation(img), moved)
    np.testing.assert_allclose(tfm.apply_coords(np.array([[30.5, 20.5]])), [[40.5, 14.5]])


def test_a_flow_with_one_of_each():
    img = np.zeros((*SHAPE, 3), np.uint8)
    img[10:30, 20:40] = 200
    datapoint = {
        "points": np.array([[20.0, 10.0], [40.0, 30.0]]),
        "image": img,
        "depth": labels(np.float32),
        "mask": labels(),
        "boxes": np.array([[20.0, 10.0, 40.0, 30.0]]),
        "name": "a",
    }
    flow = AugmentImageComponents(
        DataFromList([datapoint] * 5, shuffle=False),
        [imgaug.Rotation(40, (0.5, 0.5), border=cv2.BORDER_REFLECT), imgaug.Flip(horiz=True)],
        targets={
            "points": "keypoints",
            "image": "image",
            "depth": Target("image", interp=cv2.INTER_NEAREST, fill=-1),
            "mask": Target("mask", fill=255),
            "boxes": "boxes",
        },
    )
    flow.reset_state()
    flow.rng.seed(3)
    results = list(flow)
    assert any((each["mask"] == 255).any() for each in results)
    assert len({each["points"].tobytes() for each in results}) == 5
    for each in results:
        assert LABELS <= set(np.unique(each["mask"])) <= LABELS | {255}
        same = (each["mask"] == 255) == (each["depth"] == -1)  # but for rounding at the edge
        assert same.mean() > 0.995
        assert ((each["mask"] == 7) == (each["depth"] == 7)).mean() > 0.995
        assert each["image"].max() <= 200  # its border is a reflection
        assert ((each["image"][:, :, 0] > 100) == (each["mask"] == 7)).mean() > 0.98
        x, y = np.nonzero(each["mask"] == 7)[::-1]
        np.testing.assert_allclose(
            each["boxes"][0], [x.min(), y.min(), x.max() + 1, y.max() + 1], atol=1.5
        )
        (x0, y0), (x1, y1) = each["points"]
        assert abs(np.hypot(x1 - x0, y1 - y0) - np.hypot(20, 20)) < 1e-3
        assert each["name"] == "a"


def test_targets_are_what_the_indices_are():
    datapoint = [picture(), np.ones((2, 2)), labels()]

    def results(**kwargs):
        flow = AugmentImageComponents(
            DataFromList([datapoint], shuffle=False), [imgaug.Rotation(40)], **kwargs
        )
        flow.reset_state()
        flow.rng.seed(3)
        return next(iter(flow))

    by_index = results(index=[0], coords_index=[1], mask_index=[2])
    by_target = results(targets={2: "mask", 0: "image", 1: "keypoints"})
    for one, other in zip(by_index, by_target):
        np.testing.assert_array_equal(one, other)


def test_wrong_targets():
    with pytest.raises(ValueError, match="one of image, mask, keypoints, boxes; got 'points'"):
        Target("points")
    with pytest.raises(ValueError, match="only images and masks"):
        Target("boxes", fill=3)
    source = DataFromList([[0, 1]])

    def flow(targets, **kwargs):
        return AugmentImageComponents(source, [], targets=targets, **kwargs)

    with pytest.raises(ValueError, match="needs an image in index or targets"):
        flow({0: "mask"})
    with pytest.raises(ValueError, match="Give interp and fill of 0, the first image, to"):
        flow({0: Target("image", fill=3)})
    with pytest.raises(ValueError, match="one of image, mask, keypoints, boxes; got 3"):
        flow({0: 3})
    with pytest.raises(ValueError, match="targets or indices, got both"):
        flow({0: "image"}, mask_index=[1])
