"""Transforms and augmentors give the pixels and coordinates that release 0.11 gave.

`release_0_11.json` has what it gave on OpenCV 5.0: for each case and image the shape, the dtype,
some values, and where two points are afterwards. Known differences are left out, or allowed for:
uint8 is rounded instead of cut off, `Gamma` of floats is exact, and coordinates of warps are
measured from the corner of a pixel, also of those that are given by the inverse matrix.
"""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from tensorpack.dataflow import imgaug as A
from tensorpack.dataflow.imgaug import deform as D
from tensorpack.dataflow.imgaug import transform as T

RECORDED = Path(__file__).with_name("release_0_11.json")
FRACTIONS = (0.13, 0.77)
POINTS = [[1.5, 2.5], [9.0, 7.0]]
MATRIX = np.array([[0.9, 0.2, 1.0], [-0.1, 1.1, -2.0]])
CONSTANT, NEAREST, CUBIC = cv2.BORDER_CONSTANT, cv2.INTER_NEAREST, cv2.INTER_CUBIC
PCA = ([55.5, 4.8, 1.2], [[-0.57, 0.72, 0.41], [-0.58, 0.0, -0.81], [-0.58, -0.69, 0.42]])


class Fraction:
    """A random stream all of whose numbers are at one fraction of their range."""

    def __init__(self, fraction):
        self.fraction = fraction

    def uniform(self, low=0.0, high=1.0, size=None):
        drawn = np.float64(low + self.fraction * (high - low))
        return np.full(size, drawn) if size else drawn

    def rand(self, *shape):
        return self.uniform(size=shape or None)

    def randint(self, low, high=None, size=None):
        low, high = (0, low) if high is None else (low, high)
        return np.floor(self.uniform(low, high, size)).astype(int)

    def randn(self, *shape):
        return np.linspace(-0.5, 0.9, int(np.prod(shape))).reshape(shape) * self.fraction

    def choice(self, count, p):
        return int(np.searchsorted(np.cumsum(p), self.fraction))

    def permutation(self, count):
        return np.arange(count)


CASES = {
    "Affine": lambda: A.Affine(),
    "Affine scale": lambda: A.Affine(scale=(0.8, 1.3)),
    "Affine translate_frac": lambda: A.Affine(translate_frac=(0.25, 0.3)),
    "Brightness": lambda: A.Brightness(30),
    "Brightness clip=False": lambda: A.Brightness(90, False),
    "BrightnessScale": lambda: A.BrightnessScale((0.6, 1.4)),
    "CenterCrop": lambda: A.CenterCrop((7, 8)),
    "CenterPaste": lambda: A.CenterPaste((15, 20), A.ConstantBackgroundFiller(9)),
    "Clip": lambda: A.Clip(30, 200),
    "ColorSpace": lambda: A.ColorSpace(cv2.COLOR_BGR2HSV),
    "Contrast": lambda: A.Contrast((0.6, 1.4)),
    "Contrast rgb=True": lambda: A.Contrast((0.6, 1.4), rgb=True),
    "Contrast rgb=False clip=False": lambda: A.Contrast((0.2, 2), rgb=False, clip=False),
    "Flip": lambda: A.Flip(horiz=True),
    "Flip vert": lambda: A.Flip(vert=True, prob=0.9),
    "Gamma": lambda: A.Gamma(),
    "GaussianBlur": lambda: A.GaussianBlur((1, 4)),
    "GaussianBlur sigma_range": lambda: A.GaussianBlur((1, 4), (0.5, 2.0), False),
    "GaussianBlur max_size": lambda: A.GaussianBlur(max_size=5),
    "GaussianDeform": lambda: D.GaussianDeform([(0.2, 0.3), (0.7, 0.6)], (12, 16), 0.3),
    "GaussianDeform randrange": lambda: D.GaussianDeform([(0.5, 0.5)], (12, 16), randrange=4),
    "Grayscale": lambda: A.Grayscale(),
    "Grayscale rgb keepshape": lambda: A.Grayscale(rgb=True, keepshape=True),
    "Grayscale keepdims=False": lambda: A.Grayscale(False),
    "Hue": lambda: A.Hue((0, 100)),
    "Hue rgb=False": lambda: A.Hue((-100, 0), rgb=False),
    "JpegNoise": lambda: A.JpegNoise(),
    "Lighting": lambda: A.Lighting(0.7, *PCA),
    "MapImage": lambda: A.MapImage(lambda img: img[::-1], lambda coords: coords + 1),
    "MeanVarianceNormalize": lambda: A.MeanVarianceNormalize(),
    "MeanVarianceNormalize all_channel=False": lambda: A.MeanVarianceNormalize(False),
    "MinMaxNormalize": lambda: A.MinMaxNormalize(),
    "MinMaxNormalize all_channel=False": lambda: A.MinMaxNormalize(0, 1, False),
    "RandomApplyAug": lambda: A.RandomApplyAug(A.Transpose(1), 0.6),
    "RandomChooseAug": lambda: A.RandomChooseAug([A.Transpose(1), A.Resize(6)]),
    "RandomChooseAug probabilities": lambda: A.RandomChooseAug(
        [(A.Resize(5), 0.1), (A.Resize(6), 0.2), (A.Resize(8), 0.7)]
    ),
    "RandomCrop": lambda: A.RandomCrop((7, 8)),
    "RandomCrop of all": lambda: A.RandomCrop((12, 16)),
    "RandomCutout": lambda: A.RandomCutout(5, 7, 128.0),
    "RandomOrderAug": lambda: A.RandomOrderAug([A.Resize((8, 6)), A.Transpose(1)]),
    "RandomResize": lambda: A.RandomResize((0.5, 1.5), (0.5, 1.5)),
    "RandomResize minimum": lambda: A.RandomResize((0.5, 1.5), (0.5, 1.5), (15, 13), 0.5),
    "RandomResize aspect_ratio_thres=0": lambda: A.RandomResize((0.5, 1.5), aspect_ratio_thres=0),
    "Resize": lambda: A.Resize((20, 30)),
    "Resize nearest": lambda: A.Resize((5, 9), NEAREST),
    "Resize area": lambda: A.Resize(6, cv2.INTER_AREA),
    "ResizeShortestEdge": lambda: A.ResizeShortestEdge(9, CUBIC),
    "Rotation": lambda: A.Rotation(30),
    "Rotation constant": lambda: A.Rotation(30, (0.5, 0.5), CUBIC, CONSTANT, None, (9, 8, 7)),
    "Saturation": lambda: A.Saturation(),
    "Saturation rgb=False clip=False": lambda: A.Saturation(0.9, False, clip=False),
    "Shift": lambda: A.Shift(0.25, 0.35),
    "Shift constant": lambda: A.Shift(0.25, 0.35, CONSTANT, (7, 8, 9)),
    "Shift reflect": lambda: A.Shift(0.25, 0.35, cv2.BORDER_REFLECT_101),
    "ToFloat32": lambda: A.ToFloat32(),
    "ToUint8": lambda: A.ToUint8(),
    "Transpose": lambda: A.Transpose(),
    "List": lambda: A.AugmentorList([A.Resize((11, 14)), A.RandomCrop(9), A.Flip(horiz=True)]),
    "CropTransform": lambda: T.CropTransform(3, 4, 7, 8),
    "FlipTransform": lambda: T.FlipTransform(12, 16),
    "PhotometricTransform": lambda: T.PhotometricTransform(lambda img: img // 2, "half"),
    "ResizeTransform": lambda: T.ResizeTransform(12, 16, 5, 20, cv2.INTER_LINEAR),
    "TransposeTransform": lambda: T.TransposeTransform(),
    "WarpAffineTransform": lambda: T.WarpAffineTransform(MATRIX, (16, 12)),
    "WarpAffineTransform reflect": lambda: T.WarpAffineTransform(
        MATRIX, (18, 10), NEAREST, borderMode=cv2.BORDER_REFLECT
    ),
    "WarpAffineTransform inverse": lambda: T.WarpAffineTransform(
        MATRIX, (16, 12), cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP, borderValue=(9, 8, 7)
    ),
}


def images():
    """Returns smooth images, in which a pixel is much like its neighbour."""
    rows, columns = np.mgrid[:12, :16]
    planes = [5 * rows + 9 * columns, 215 - 12 * rows + 2 * columns, (rows - 6) ** 2 * 5 + columns]
    img = np.stack(planes, axis=2)
    return [img.astype(np.uint8), (img + 0.4).astype(np.float32)]


def give(augmentor, fraction):
    """Lends a stream to an augmentor and those in it; 0.11 has no `use_rng`."""
    augmentor.rng = Fraction(fraction)
    parts = [*getattr(augmentor, "augmentors", ()), *getattr(augmentor, "aug_lists", ())]
    for each in [*parts, *([augmentor.aug] if hasattr(augmentor, "aug") else [])]:
        give(each, fraction)


def results(make):
    """Returns [shape, dtype, values, coordinates] for each fraction and image."""
    for fraction in FRACTIONS:
        for img in images():
            tfm = make()
            if isinstance(tfm, A.ImageAugmentor):
                give(tfm, fraction)
                img, tfm = tfm.augment_return_params(img)
            else:
                img = tfm.apply_image(img)
            try:
                coords = tfm.apply_coords(np.array(POINTS, np.float32)).round(3).tolist()
            except NotImplementedError:
                coords = None
            some = img.ravel()[:: max(1, img.size // 7)]
            yield [list(img.shape), img.dtype.name, some.astype(float).round(3).tolist(), coords]


@pytest.mark.parametrize("case", CASES)
def test_what_release_0_11_gave(case):
    recorded = json.loads(RECORDED.read_text())[case]
    for result, expected in zip(results(CASES[case]), recorded):
        if "Deform" not in case:  # it gave float64
            assert result[:2] == expected[:2]
        atol = 2 if case == "Gamma" else 1 if result[1] == "uint8" else 0.01
        np.testing.assert_allclose(result[2], expected[2], atol=atol)
        if expected[3] is not None and "inverse" not in case:
            atol = 0.25 if case.startswith(("Affine", "Rotation", "WarpAffine")) else 1e-3
            np.testing.assert_allclose(result[3], expected[3], atol=atol)


def test_all_is_recorded():
    recorded = json.loads(RECORDED.read_text())
    assert list(recorded) == list(CASES)
    assert {len(each) for each in recorded.values()} == {2 * len(FRACTIONS)}
