"""Layers of a detector take a batch without a box, where TensorFlow's convolution does."""

import pytest

from tests.processes import run_python

DETECTOR = """
import numpy as np
from tensorpack.compat import tfv1 as tf
from tensorpack.models import (
    AvgPooling, BatchNorm, Conv2D, Conv2DTranspose, FullyConnected, GlobalAvgPooling, MaxPooling,
)
from tensorpack.tfutils.tower import TowerContext

def block(name, x, stride):
    with tf.variable_scope(name):
        left = BatchNorm("bn", Conv2D("a", x, 8, 3, strides=stride), training=False)
        return tf.nn.relu(left + Conv2D("b", x, 8, 1, strides=stride, use_bias=False))

def head(boxes):
    rows = tf.shape(boxes)[0]
    image = tf.ones([1, 32, 32, 4])
    regions = tf.image.crop_and_resize(image, boxes, tf.zeros([rows], tf.int32), [28, 28])
    shared = block("second", block("first", AvgPooling("pool", regions, 2), 2), 1)
    pooled = GlobalAvgPooling("gap", MaxPooling("max", shared, 2))
    offsets = tf.reshape(FullyConnected("box", pooled, 12), [-1, 3, 4])
    masks = Conv2D("mask", Conv2DTranspose("up", shared, 4, 2, strides=2), 3, 1)
    return offsets, masks

tf.disable_eager_execution()
boxes = tf.placeholder(tf.float32, [None, 4])
with TowerContext("", is_training=True):
    outputs = head(boxes)
gradients = tf.gradients(sum(map(tf.reduce_sum, outputs)), tf.trainable_variables())
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for rows in 0, 2:
        values = sess.run([*outputs, *gradients], {boxes: np.zeros((rows, 4))})
        assert [each.shape for each in values[:2]] == [(rows, 3, 4), (rows, 14, 14, 3)]
        assert all(np.isfinite(each).all() for each in values)
"""


@pytest.mark.nightly
@pytest.mark.one_row
@pytest.mark.slow
def test_a_detector_without_a_box():
    # On a CPU, oneDNN's convolution of TensorFlow 2.21 returns an empty input as it is, and its
    # gradient of max-pooling ends the process.
    run_python("-c", DETECTOR, env={"TF_ENABLE_ONEDNN_OPTS": "0"}, check=True)
