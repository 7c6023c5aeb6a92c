"""Layers in both orders of their axes, as `make gpu-check` compares them on a GPU."""

import nchw
import pytest

from tensorpack.compat import is_tfv2


@pytest.mark.skipif(not is_tfv2(), reason="TensorFlow 1 has no such layers on CPUs")
@pytest.mark.parametrize("name", nchw.LAYERS)
def test_layers_in_both_orders_are_the_same(name):
    shape = nchw.VOLUME if name == "Conv3D" else nchw.IMAGE
    assert nchw.difference(nchw.LAYERS[name], shape) < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(not is_tfv2(), reason="TensorFlow 1 has no such layers on CPUs")
def test_a_network_with_channels_first_is_exported(tmp_path):
    assert nchw.export(tmp_path) == ["frozen.pb", "serving"]
