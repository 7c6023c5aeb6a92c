"""Tests of the parameter table and of shape texts."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.model_utils import (
    apply_slim_collections,
    describe_trainable_vars,
    get_shape_str,
)
from tensorpack.utils import logger


def test_of_many_variables_the_terminal_has_the_sum_alone(log_lines, monkeypatch):
    for i in range(9):
        tf.get_variable(f"w{i}", [2])
    describe_trainable_vars()
    (kind, table), (_, line) = log_lines
    assert kind == "detail" and table.count("\n") == 12
    assert line.startswith("The model has #vars=9, #param=18 (0.00 MB")
    monkeypatch.setattr(logger, "is_verbose", lambda: True)
    describe_trainable_vars()
    assert log_lines[2:] == [("info", table)]


def test_a_variable_whose_shape_varies_is_not_counted(log_lines):
    size = tf.placeholder_with_default(3, [])
    tf.Variable(tf.zeros(tf.stack([size, 2])), validate_shape=False, name="varies")
    tf.get_variable("w", [2])
    describe_trainable_vars()
    ((_, table),) = log_lines
    assert "varies:0" in table and table.endswith("#param=2 (0.00 MB assuming all float32)")


def test_a_model_without_parameters_is_a_warning(log_lines):
    describe_trainable_vars()
    assert log_lines == [("warn", "There are no trainable variables in the graph!")]


@pytest.mark.parametrize(
    "shape, text",
    [([None, 84, 84, 4], "[None, 84, 84, 4]"), ([], "[]"), (None, "?")],
)
def test_shape_of_a_tensor_and_of_a_list(shape, text):
    x = tf.placeholder(tf.float32, shape)
    assert get_shape_str(x) == text
    assert get_shape_str([x, tf.get_variable("v", [4]), 3]) == f"{text}, [4], 3"


def test_a_cost_with_the_losses_and_updates_of_slim():
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(counter, 1.0))
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(2.0))
    total = apply_slim_collections(tf.constant(1.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert (total.name, session.run(total)) == ("total_cost:0", 3.0)
        assert session.run(counter) == 1.0
