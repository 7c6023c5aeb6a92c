"""Tests of whether one op makes another run."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.dependency import dependency_of_fetches, dependency_of_targets


@pytest.fixture
def ops():
    """a -> b -> c, with d before c by control dependency, and e apart."""
    a = tf.placeholder(tf.float32, [], name="a")
    b = tf.identity(a, name="b")
    d = tf.no_op(name="d")
    with tf.control_dependencies([d]):
        c = tf.identity(b, name="c")
    return {"a": a, "b": b, "c": c, "d": d, "e": tf.constant(0, name="e")}


@pytest.mark.parametrize(
    "targets, op, expected",
    [
        ("c", "a", True),
        ("c", "d", True),
        ("b", "d", False),
        ("a", "c", False),
        ("eb", "a", True),
        ("e", "a", False),
        ("a", "a", True),
        ("", "a", False),
    ],
)
def test_targets(ops, targets, op, expected):
    targets = [ops[each] for each in targets]
    for _ in range(2):  # the second answer is remembered
        assert dependency_of_targets(targets, ops[op]) is expected


def test_fetches_of_every_form(ops):
    assert dependency_of_fetches("c:0", ops["a"])
    assert dependency_of_fetches("c", ops["a"])
    assert dependency_of_fetches({"x": [ops["e"], (ops["c"],)]}, ops["a"])
    assert not dependency_of_fetches([ops["e"], []], ops["a"])
    slices = tf.IndexedSlices(ops["b"], ops["e"])
    assert dependency_of_fetches(slices, ops["a"])
    sparse = tf.SparseTensor(tf.constant([[0]], tf.int64), [0.0], tf.cast([ops["a"]], tf.int64))
    assert dependency_of_fetches([sparse], ops["a"])
    assert not dependency_of_fetches(tf.get_variable("v", initializer=1.0), ops["a"])
    with pytest.raises(TypeError, match="Can not convert a int into a Tensor or Operation"):
        dependency_of_fetches(5, ops["a"])


def test_variables_and_loops(ops):
    v = tf.get_variable("v", initializer=1.0)
    read = v * 2.0
    assert dependency_of_targets([read], v)
    assert not dependency_of_targets([v], ops["a"])
    loop = tf.while_loop(lambda x: x < 3, lambda x: x + 1, [ops["a"]])
    assert dependency_of_targets([loop], ops["a"])
