"""Segmentation: images and masks that move together, the mean IoU, training and pictures."""

import os

import cv2
import numpy as np
import pytest
import segmentation

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tests.examples.small_dqn import read_stats


@pytest.mark.one_row
@pytest.mark.slow
def test_it_learns_goes_on_and_finds_shapes(log_dir, tmp_path):
    flags = ["--logdir", log_dir, "--steps-per-epoch", "10"]
    with tf.Graph().as_default():
        segmentation.main([*flags, "--max-epoch", "1"])
    with tf.Graph().as_default():
        segmentation.main([*flags, "--max-epoch", "2", "--resume", "auto"])
    first, second = read_stats(log_dir)
    assert (first["global_step"], second["global_step"]) == (10, 20)
    assert 0 < second["cost"] < first["cost"]
    assert 0 < second["validation_mean_iou"] < second["validation_iou/background"] < 1
    photo, out = str(tmp_path / "photo.png"), str(tmp_path / "masks.png")
    cv2.imwrite(photo, np.full([90, 120, 3], 200, np.uint8))
    segmentation.main(["--predict", photo, photo, "--load", log_dir, "--out", out])
    side = 2 * segmentation.SIZE
    assert cv2.imread(out).shape == (2 * side + 4, 2 * side + 4, 3)
    drawn = cv2.imread(os.path.join(log_dir, "shapes-002.png"))
    assert drawn.shape == (3 * side + 2 * 4, 8 * side + 7 * 4, 3)


def test_a_mask_moves_with_its_image():
    mask = segmentation.examples(20, seed=3)[0][1]
    image = np.where(mask[:, :, None] > 0, 220, 60).astype(np.uint8).repeat(3, axis=2)
    flow = segmentation.augmented(DataFromList([[image, mask]] * 20))
    flow.reset_state()
    datapoints = list(flow)
    for moved, labels in datapoints:
        assert set(np.unique(labels)) <= {*np.unique(mask), segmentation.IGNORE}
        inside, outside = moved[(labels > 0) & (labels < 255)], moved[labels == 0]
        assert np.median(inside) - np.median(outside) > 100
    assert any((labels == segmentation.IGNORE).any() for _, labels in datapoints)


def test_every_class_is_drawn_and_an_image_depends_on_the_seed_alone():
    (image, mask), *others = segmentation.examples(20, seed=1)
    assert image.shape == (48, 48, 3) and mask.shape == (48, 48)
    assert {*np.unique([mask for _, mask in others])} == {0, 1, 2, 3}
    assert np.array_equal(image, segmentation.examples(1, seed=1)[0][0])


def test_the_mean_is_over_classes_of_all_pixels():
    inferencer = segmentation.MeanIoU()
    inferencer.before_inference()
    for count in (1, 3):
        confusion = np.diag([10, 0, 0, 2]).astype(np.int32)
        confusion[0, 1] = count  # background that was taken for a disc
        confusion[2, 3] = 1
        inferencer.on_fetches([confusion])
    scalars = inferencer.after_inference()
    assert scalars["validation_iou/background"] == 20 / 24
    assert scalars["validation_iou/disc"] == scalars["validation_iou/rectangle"] == 0
    assert scalars["validation_iou/triangle"] == 4 / 6
    np.testing.assert_allclose(scalars["validation_mean_iou"], (20 / 24 + 4 / 6) / 4)
