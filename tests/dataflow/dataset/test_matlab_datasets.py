"""SVHN, Caltech 101 Silhouettes and BSDS500 are read from files of MATLAB."""

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile
from tensorpack.dataflow.dataset import BSDS500, Caltech101Silhouettes, SVHNDigit
from tensorpack.utils import change_env
from tests.contracts.dataflow import DataFlowContract
from tests.dataflow.dataset.published import (
    ground_truth,
    matlab,
    random_images,
    write_archive,
)

cv2 = pytest.importorskip("cv2")
pytest.importorskip("scipy")

DIGITS = np.array([1, 9, 10, 5], np.uint8)
IMAGES = random_images(4, 32, 32, 3)
SILHOUETTES = random_images(3, 784) % 2


def write_svhn(folder, part="train", images=IMAGES, digits=DIGITS):
    folder.mkdir(parents=True, exist_ok=True)
    content = matlab(X=images.transpose(1, 2, 3, 0), y=digits[:, np.newaxis])
    (folder / f"{part}_32x32.mat").write_bytes(content)


class TestSVHN(DataFlowContract):
    length = 4

    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        write_svhn(tmp_path)
        self.folder = tmp_path

    def make_flow(self):
        return SVHNDigit("train", self.folder, shuffle=False)


def test_digits_of_svhn_are_in_rgb_and_10_is_0(tmp_path):
    write_svhn(tmp_path / "svhn_data", "extra")
    write_svhn(tmp_path / "svhn_data", "test", IMAGES[:1], DIGITS[:1])
    with change_env("TENSORPACK_DATASET", str(tmp_path)):
        flow = SVHNDigit("extra")
        mean = SVHNDigit.get_per_pixel_mean(("extra", "test"))
    assert flow.shuffle
    flow = SVHNDigit("extra", tmp_path / "svhn_data", shuffle=False)
    for (image, label), expected, digit in zip(flow, IMAGES, [1, 9, 0, 5]):
        assert type(label) is int and label == digit
        np.testing.assert_array_equal(image, expected)
        image[:] = 0  # the consumer's own
    np.testing.assert_array_equal(flow.X, IMAGES)
    assert flow.Y.tolist() == [1, 9, 0, 5]
    flow.X, flow.Y = flow.X[2:], flow.Y[2:]
    assert [label for _, label in flow] == [0, 5] and len(flow) == 2
    both = np.concatenate([IMAGES, IMAGES[:1]]).mean(axis=0)
    assert mean.dtype == np.float32
    np.testing.assert_allclose(mean, both, rtol=1e-6)


def test_damaged_files_of_matlab_are_named(tmp_path):
    path = tmp_path / "train_32x32.mat"
    whole = matlab(X=IMAGES.transpose(1, 2, 3, 0), y=DIGITS[:, np.newaxis])
    for content in b"<html>", whole[: len(whole) // 2]:
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match="train_32x32.mat is not a MATLAB file"):
            SVHNDigit("train", tmp_path)
    path.write_bytes(matlab(X=IMAGES))
    with pytest.raises(DamagedFile, match="train_32x32.mat is not .* of X and y .*'y'"):
        SVHNDigit("train", tmp_path)


def test_silhouettes(tmp_path):
    labels = np.array([[101], [1], [7]], np.uint8)
    content = matlab(val_data=SILHOUETTES, val_labels=labels)
    (tmp_path / "caltech101_silhouettes_28_split1.mat").write_bytes(content)
    flow = Caltech101Silhouettes("val", shuffle=False, dir=tmp_path)
    assert [label for _, label in flow] == [100, 0, 6]
    image, label = next(iter(flow))
    assert image.dtype == np.uint8 and type(label) is int
    np.testing.assert_array_equal(image, SILHOUETTES[0].reshape(28, 28))


def drawn(rows, columns):
    """A photograph that is smooth, and what two people drew in it."""
    image = np.full((rows, columns, 3), 40, np.uint8)
    image[:, :, 2] = np.linspace(0, 255, columns)
    first, second = np.zeros((2, rows, columns), np.uint8)
    first[5], second[:, 7] = 1, 1
    return image, first, second


def bsds():
    """The files of the part "val" of BSDS500: a photograph that lies, and one that stands."""
    contents = {"images/val/Thumbs.db": b"x", "images/test/1.jpg": b"x"}
    for name, size in ("2", (481, 321)), ("1", (321, 481)):
        image, *boundaries = drawn(*size)
        jpeg = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()
        contents[f"images/val/{name}.jpg"] = jpeg
        contents[f"groundTruth/val/{name}.mat"] = ground_truth(*boundaries)
    return {f"BSR/BSDS500/data/{name}": content for name, content in contents.items()}


def test_contours_of_bsds500(tmp_path):
    write_archive(tmp_path / "BSR_bsds500.tgz", bsds())
    flow = BSDS500("val", tmp_path, shuffle=False)
    assert len(flow) == 2
    for index, (image, edges) in enumerate(flow):
        assert (image.dtype, image.shape) == (np.uint8, (321, 481, 3))
        assert (edges.dtype, edges.shape) == (np.float32, (321, 481))
        expected, *boundaries = drawn(*((321, 481), (481, 321))[index])
        share = np.mean(boundaries, axis=0)
        if index:  # stands
            expected, share = expected.swapaxes(0, 1), share.T
        assert np.abs(image.astype(int) - expected).max() < 12  # in BGR
        np.testing.assert_array_equal(edges, share)
        image[:] = 0  # the consumer's own
    assert next(iter(flow))[0].any()
