"""The lines at which ops were made."""

import inspect

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils._origin import line_of_caller, line_of_failure, line_of_op
from tensorpack.tfutils.symbolic_functions import huber_loss


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


def test_the_line_that_calls():
    assert line_of_caller() == here()


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
