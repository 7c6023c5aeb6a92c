"""Layers with channels first against the same layers with channels last, and their exports.

    python benchmarks/nchw.py

Both orders are computed from the same numbers with the same weights, in training, with the
gradients of the weights. Prints the largest difference of each layer, as a part of the largest
number, and fails above `TOLERANCE`, which tensor cores that shorten float32 stay below. Then a
network of these layers is exported, as a frozen graph and a SavedModel, each with a check.
Runs on the first GPU, or the CPU where there is none.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from _report import say

import tensorpack as tp
from tensorpack.compat import tfv1 as tf
from tensorpack.models import (
    AvgPooling,
    BatchNorm,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    DepthwiseConv2D,
    FixedUnPooling,
    FullyConnected,
    GlobalAvgPooling,
    InstanceNorm,
    LayerNorm,
    MaxPooling,
)
from tensorpack.predict.export import ModelExporter
from tensorpack.tfutils.tower import TowerContext

TOLERANCE = 5e-3
IMAGE, VOLUME = (4, 12, 10, 8), (2, 6, 8, 10, 8)  # channels last
FIRST, LAST = "channels_first", "channels_last"
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


def difference(layer, shape):
    """The largest difference between both orders, as a part of the largest number."""
    x = np.random.RandomState(0).randn(*shape).astype(np.float32)
    found = []
    with tf.Graph().as_default():
        weight = tf.get_variable("x", initializer=x)  # a gradient has to go through the layer
        for order in (LAST, FIRST):
            given = tf.transpose(weight, swap(len(shape))) if order == FIRST else weight
            scope = tf.variable_scope("", reuse=tf.AUTO_REUSE)
            with scope, TowerContext("", is_training=True):
                output = layer(given, order)
            gradients = tf.gradients(tf.reduce_sum(output**3), tf.trainable_variables())
            if order == FIRST and output.shape.ndims > 2:
                output = tf.transpose(output, swap(len(shape), back=True))
            found.append([output, *gradients])
        with tf.Session(config=tp.tfutils.common.get_default_sess_config()) as sess:
            sess.run(tf.global_variables_initializer())
            last, first = sess.run(found)
    return max(np.abs(a - b).max() / np.abs(a).max() for a, b in zip(last, first))


def swap(rank, back=False):
    """The permutation of axes that puts channels first, or last again."""
    spatial = list(range(2, rank)) if back else list(range(1, rank - 1))
    return [0, *spatial, 1] if back else [0, rank - 1, *spatial]


class Network(tp.ModelDesc):
    """A small classifier, channels first."""

    def inputs(self):
        """Images."""
        return [tf.TensorSpec([None, 3, 32, 32], tf.float32, "image")]

    def build_graph(self, image):
        """Ten numbers an image, as "logits"."""
        with tp.argscope([Conv2D, BatchNorm, MaxPooling, GlobalAvgPooling], data_format=FIRST):
            x = BatchNorm("norm", Conv2D("first", image, 16, 3, activation=tf.nn.relu))
            x = GlobalAvgPooling("mean", Conv2D("second", MaxPooling("pool", x, 2), 32, 3))
        tf.identity(FullyConnected("last", x, 10), name="logits")
        return tf.constant(0.0)


def export(folder):
    """Writes two exports, each checked on random images; returns their names."""
    with tf.Graph().as_default(), TowerContext("", is_training=False):
        Network().build_graph(tf.zeros([1, 3, 32, 32]))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            weights = {v.op.name: v for v in tf.global_variables()}
            weights = sess.run(weights)
    config = tp.PredictConfig(
        model=Network(),
        session_init=tp.SmartInit(weights),
        input_names=["image"],
        output_names=["logits"],
    )
    images = [np.random.RandomState(1).rand(2, 3, 32, 32).astype(np.float32)]
    ModelExporter(config).export_compact(folder / "frozen.pb", check_inputs=images)
    ModelExporter(config).export_serving(folder / "serving", check_inputs=images)
    return sorted(path.name for path in folder.iterdir())


def main():
    """Compares, exports and prints; the exit code is 1 where orders differ."""
    differences = {
        name: difference(layer, VOLUME if name == "Conv3D" else IMAGE)
        for name, layer in LAYERS.items()
    }
    for name, each in differences.items():
        say(f"{name:18} {each:.1e}")
    with tempfile.TemporaryDirectory() as folder:
        say(f"exported and checked: {', '.join(export(Path(folder)))}")
    worst = max(differences, key=differences.get)
    say(f"{len(LAYERS)} layers, largest difference {differences[worst]:.1e} ({worst})")
    sys.exit(not differences[worst] < TOLERANCE)


if __name__ == "__main__":
    main()
