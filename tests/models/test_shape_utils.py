"""Tests of StaticDynamicShape."""

from tensorpack.compat import tfv1 as tf
from tensorpack.models import StaticDynamicAxis, StaticDynamicShape

from .tools import run


def test_a_shape_in_both_forms():
    x = tf.placeholder(tf.float32, [None, 4, None])
    shape = StaticDynamicShape(x)
    assert shape.ndims == 3
    assert shape.get_static() == [None, 4, None]
    shape.apply(0, lambda size: size * 2)
    shape.apply(1, lambda size: size + 1)
    shape.apply(2, lambda size: 7)
    assert shape.get_static() == [None, 5, 7]
    fetches = [shape.get_dynamic(), shape.get_dynamic(0)]
    values, first = run(fetches, {x: [[[0.0] * 2] * 4] * 3})
    assert values.tolist() == [6, 5, 7] and first == 6
    assert shape.get_dynamic(1) == 5


def test_an_axis():
    running = tf.constant(3)
    axis = StaticDynamicAxis(None, running).apply(lambda size: size * 2)
    assert axis.static is None and run(axis.dynamic) == 6
    axis = StaticDynamicAxis(3, running).apply(lambda size: size * 2)
    assert (axis.static, axis.dynamic) == (6, 6)
