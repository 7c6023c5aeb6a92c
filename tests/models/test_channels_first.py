"""Layers with channels first compute what they do with channels last; `make gpu-check` runs this.

TensorFlow 1 has such layers on GPUs only.
"""

import numpy as np
import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import ModelDesc
from tensorpack.models import (
    AvgPooling,
    BatchNorm,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    DepthwiseConv2D,
    FixedUnPooling,
    GlobalAvgPooling,
    InstanceNorm,
    LayerNorm,
    MaxPooling,
)
from tensorpack.predict import PredictConfig
from tensorpack.predict.export import ModelExporter
from tensorpack.tfutils.argscope import argscope
from tensorpack.tfutils.tower import TowerContext
from tensorpack.utils.gpu import get_num_gpu

from .tools import run

pytestmark = pytest.mark.skipif(not is_tfv2() and not get_num_gpu(), reason="it needs a GPU")
TOLERANCE = 5e-3 if get_num_gpu() else 1e-4  # tensor cores shorten float32
IMAGE, VOLUME = (4, 12, 10, 8), (2, 6, 8, 10, 8)  # channels last
LAYERS = {
    "Conv2D": lambda x, order: Conv2D("l", x, 16, 3, activation=tf.nn.relu, data_format=order),
    "Conv2D, strides": lambda x, order: Conv2D("l", x, 16, 5, strides=2, data_format=order),
    "Conv2D, groups": lambda x, order: Conv2D("l", x, 16, 3, split=2, data_format=order),
    "Conv2DTranspose": lambda x, order: Conv2DTranspose("l", x, 6, 3, 2, data_format=order),
    "DepthwiseConv2D": lambda x, order: DepthwiseConv2D("l", x, 2, 3, data_format=order),
    "Conv3D": lambda x, order: Conv3D("l", x, 8, 3, data_format=order),
    "MaxPooling": lambda x, order: MaxPooling("l", x, 2, data_format=order),
    "AvgPooling": lambda x, order: AvgPooling("l", x, 3, 2, "same", data_format=order),
    "GlobalAvgPooling": lambda x, order: GlobalAvgPooling("l", x, data_format=order),
    "FixedUnPooling": lambda x, order: FixedUnPooling("l", x, 2, data_format=order),
    "BatchNorm": lambda x, order: BatchNorm("l", x, data_format=order),
    "LayerNorm": lambda x, order: LayerNorm("l", x, data_format=order),
    "InstanceNorm": lambda x, order: InstanceNorm("l", x, data_format=order),
}


@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_gradients_are_those_of_channels_last(name):
    shape = VOLUME if name == "Conv3D" else IMAGE
    rank = len(shape)
    first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    values = np.random.RandomState(0).randn(*shape).astype(np.float32)
    x, outputs = tf.get_variable("x", initializer=values), []
    for order in ("channels_last", "channels_first"):
        swap = order == "channels_first"
        scope = tf.variable_scope("", reuse=tf.AUTO_REUSE)
        with scope, TowerContext("", is_training=True):
            output = LAYERS[name](tf.transpose(x, first) if swap else x, order)
        gradients = tf.gradients(tf.reduce_sum(output**3), tf.trainable_variables())
        if swap and output.shape.ndims > 2:
            output = tf.transpose(output, last)
        outputs.append([output, *gradients])
    for expected, actual in zip(*run(outputs)):
        assert np.abs(actual - expected).max() < TOLERANCE * np.abs(expected).max()


class Network(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None, 3, 32, 32], tf.float32, "image")]

    def build_graph(self, image):
        layers = [Conv2D, BatchNorm, MaxPooling, GlobalAvgPooling]
        with argscope(layers, data_format="channels_first"):
            x = BatchNorm("norm", Conv2D("first", image, 16, 3, activation=tf.nn.relu))
            x = GlobalAvgPooling("mean", Conv2D("second", MaxPooling("pool", x, 2), 32, 3))
        tf.identity(x, name="features")
        return tf.constant(0.0)


def test_exports_compute_what_the_network_does(tmp_path):
    outputs = {"input_names": ["image"], "output_names": ["features"]}
    exporter = ModelExporter(PredictConfig(model=Network(), **outputs))
    images = [np.random.RandomState(1).rand(2, 3, 32, 32).astype(np.float32)]
    exporter.export_compact(tmp_path / "frozen.pb", check_inputs=images)
    exporter.export_serving(tmp_path / "serving", check_inputs=images)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frozen.pb", "serving"]
