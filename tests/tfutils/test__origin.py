"""The lines at which ops were made."""

import inspect

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils._origin import line_of_failure, line_of_op
from tensorpack.tfutils.symbolic_functions import huber_loss
from tests.helpers import eagerly


def here():
    """Path and line of the caller."""
    frame = inspect.currentframe().f_back
    return f"{__file__}:{frame.f_lineno}, in {frame.f_code.co_name}"


def test_an_op_is_from_the_innermost_line_of_the_user():
    with tf.Graph().as_default():
        op, line = tf.add(1, 2).op, here()
        inside, made = huber_loss(tf.zeros([3])), here()
    assert line_of_op(op) == line
    assert line_of_op(inside.op) == made
    assert line_of_op(object()) is None


@pytest.mark.parametrize("of_variable", [False, True])
def test_what_was_made_eagerly_is_named(of_variable):
    with eagerly():
        other = tf.Variable(1.0, name="other")
        made = tf.Variable(1.0, name="rate") if of_variable else tf.constant(1.0)
    in_graph = tf.get_variable("in_graph", [])
    with pytest.raises(RuntimeError) as info:
        tf.train.GradientDescentOptimizer(made).minimize(in_graph * 2)
    told = line_of_failure(info.value, tf.get_default_graph())
    what = "Variable 'rate:0'" if of_variable else "A variable or tensor"
    assert told.startswith(f"{what} was made before the trainer, while TensorFlow executed eagerly")
    assert "build_graph() or optimizer(), or call tf.compat.v1.disable_eager_execution()" in told
    assert line_of_failure(RuntimeError(f"another, of {other.name}"), in_graph.graph) is None


@pytest.mark.parametrize("of_gradient", [False, True])
def test_an_error_of_a_run_names_the_op(of_gradient):
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None])
        y, line = tf.subtract(x, tf.placeholder_with_default([1.0, 2.0], [None]), "mine"), here()
        fetched = tf.gradients(y, x)[0] if of_gradient else y
        with pytest.raises(tf.errors.InvalidArgumentError) as info:
            sess.run(fetched, {x: [1.0, 2.0, 3.0]})
        assert line_of_failure(info.value, graph) == f"The op 'mine' (Sub) was made at {line}."
        assert line_of_failure(info.value, tf.Graph()) is None
        assert line_of_failure(ValueError("{{node mine}}"), graph) is None
