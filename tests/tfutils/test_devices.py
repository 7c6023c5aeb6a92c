"""Towers ask for their GPU without a word from TensorFlow where there is none."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.devices import device_text, tower_device


@pytest.mark.parametrize("use_resource", [False, True])
def test_ops_ask_for_the_gpu_and_nothing_is_said(use_resource, capfd, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with tf.device(tower_device(1)):
        weight = tf.get_variable(
            "w", [2], initializer=tf.zeros_initializer(), use_resource=use_resource
        )
        loss = tf.reduce_sum(tf.square(weight - 1.0), name="loss")
        train = tf.train.AdamOptimizer(0.1).minimize(loss)
    assert loss.op.device == "/device:GPU:1"
    assert weight.op.device == "/device:CPU:0"
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        assert sess.run(loss) < 2
    assert "Failed to place" not in capfd.readouterr().err


def test_towers_are_spread_over_several_cpus(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "".join(tower_device(gpu, cpus=2)[-1] for gpu in (-1, 0, 1, 2)) == "0010"


@pytest.mark.parametrize("gpus, text", [(True, "/gpu:1"), (False, "/cpu:0")])
def test_the_log_names_a_gpu_where_there_is_one(gpus, text, monkeypatch):
    monkeypatch.setattr("tensorpack.tfutils.devices.have_gpus", lambda: gpus)
    assert device_text(1) == text
    assert (device_text(-1), device_text("/cpu:1")) == ("/cpu:0", "/cpu:1")
    assert device_text(1, tower_device(1)) == text
    assert device_text(1, "/device:CPU:1") == "/device:CPU:1"
