"""Frames to images, the same numbers whichever way they go; numbers drawn in the graph."""

import layers
import numpy as np
import pytest
from layers import Draws, as_images

from tensorpack.compat import tfv1 as tf


@pytest.fixture(params=[True, False], ids=["words", "transposed"])
def way(request, monkeypatch):
    """Which way the frames go, whatever the machine."""
    monkeypatch.setattr(layers, "_words_are_faster", lambda: request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("count, history", [(5, 4), (9, 4), (3, 2)])
def test_values_are_those_of_the_first_and_last_frames(count, history):
    frames = np.random.RandomState(0).randint(0, 256, (3, count, 7, 9)).astype(np.uint8)
    frames[0, :, 0, 0], frames[0, :, 0, 1], frames[0, :, 0, 2] = 255, 128, 127  # signs and carries
    fed = tf.placeholder(tf.uint8, [None, count, 7, 9])
    made = as_images(fed, history)
    with tf.Session() as sess:
        first, last = sess.run(made, {fed: frames})
    channels = frames.transpose(0, 2, 3, 1)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, channels[..., :history])
    np.testing.assert_array_equal(last, channels[..., -history:])
    assert [tensor.shape.as_list() for tensor in made] == [[None, 7, 9, history]] * 2


def test_draws_depend_on_their_two_numbers_and_on_their_order_alone():
    number = tf.placeholder(tf.int64, [])
    drawn = [Draws(number, stream) for stream in (0, 0, 1)]
    tensors = [draws.uniform([3]) for draws in [*drawn, drawn[0]]]
    with tf.Session() as sess:
        one, same, other_stream, next_one = sess.run(tensors, {number: 7})
        np.testing.assert_array_equal(sess.run(tensors[0], {number: 7}), one)
        other_step = sess.run(tensors[0], {number: 8})
    np.testing.assert_array_equal(one, same)
    assert not {*one} & {*other_stream, *next_one, *other_step}
