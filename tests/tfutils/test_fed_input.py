"""What is fed keeps its values, or is refused."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.fed_input import FedInput, cast
from tensorpack.tfutils.prepared import prepare


@pytest.mark.parametrize(
    "values, source, target",
    [
        ([True, False], "bool", "int32"),
        ([0, 1], "int64", "bool"),
        ([1.0, 0.0], "float32", "bool"),
        ([0, 2**31 - 1, -(2**31)], "int64", "int32"),
        ([0, 2**24, -(2**24), 2**24 + 2, 2**40, -(2**63)], "int64", "float32"),
        ([2**63], "uint64", "float32"),
        ([0.5, 65504.0], "float32", "float16"),
        ([1.0], ">f4", "<f4"),
        ([1.5, -2.0], "float32", tf.bfloat16.as_numpy_dtype),
        ([2, -256], "int32", tf.bfloat16.as_numpy_dtype),
        ([np.inf, -np.inf, 1.5], "float64", "float32"),
        ([0.0, -3.0, 2.0**31 - 1], "float64", "int32"),
    ],
)
def test_values_that_survive_are_cast(values, source, target):
    found = cast(np.array(values, source), np.dtype(target))
    assert found.dtype == np.dtype(target)
    assert found.real.astype(source).tolist() == values or found.astype(source).tolist() == values


@pytest.mark.parametrize("text, target", [("25", "int32"), (b"25", "uint8"), ("25.0", "float32")])
def test_text_of_a_number_is_that_number(text, target):
    assert cast(np.array([text]), np.dtype(target)).tolist() == [25]
    with pytest.raises(ValueError, match="'a'|could not convert"):
        cast(np.array(["a"]), np.dtype(target))


@pytest.mark.parametrize(
    "value, source, target",
    [
        (2, "int64", "bool"),
        (np.nan, "float32", "bool"),
        (2**31, "int64", "int32"),
        (-1, "int8", "uint8"),
        (2**63, "uint64", "int64"),
        (2**24 + 1, "int64", "float32"),
        (257, "int32", tf.bfloat16.as_numpy_dtype),
        (1e39, "float64", "float32"),
        (2.0**31, "float64", "int32"),
        (-1.0, "float32", "uint8"),
        (0.5, "float64", "int32"),
        (np.nan, "float64", "int32"),
    ],
)
@pytest.mark.parametrize("shape", [[], [2, 2]])
def test_a_value_that_would_change_is_an_error(value, source, target, shape):
    with pytest.raises((TypeError, ValueError), match=f"a cast from {source} to .* changes "):
        cast(np.full(shape, value, source), np.dtype(target))


@pytest.mark.parametrize(
    "source, target",
    [("complex64", "float32"), ("S3", "bool"), ("M8[s]", "int64"), ("V4", "float32")],
)
def test_a_change_of_kind_is_an_error(source, target):
    with pytest.raises(TypeError, match="changes what the values are"):
        cast(np.zeros(2, source), np.dtype(target))


@pytest.mark.parametrize(
    "value, dtype",
    [
        (0, tf.bool),
        (1.0, tf.bool),
        ([1, 0], tf.bool),
        ("25", tf.int32),
        ("2.5", tf.float32),
        (Fraction(5, 2), tf.float32),
        (Decimal(2), tf.int32),
        (np.array([1, 2.0], object), tf.int32),
        (2**70, tf.float32),
        (np.array([2**63 + 1, 0], object), tf.uint64),
        (str(2**63 + 1), tf.uint64),
        (True, tf.bfloat16),
        (np.char.array(["a"]), tf.string),
        (np.zeros([0, 3]), tf.string),
    ],
)
def test_what_session_run_takes_without_loss_is_taken(value, dtype):
    x = tf.placeholder(dtype, None)
    y = tf.identity(x)
    with tf.Session() as sess:
        found = prepare(sess, [y], [x]).call(value)[0]
        right = sess.run(y, {x: value})
    assert found.dtype == right.dtype and found.tolist() == right.tolist()


@pytest.mark.parametrize(
    "value", [[2**63 + 1, 0], (np.uint64(2**63 + 1), np.int64(3)), [2**53 + 1, 2.0]]
)
def test_integers_that_numpy_would_round_keep_their_digits(value):
    found = FedInput("'key:0'", tf.uint64, tf.TensorShape([None])).feed(value)
    assert found.tolist() == [int(each) for each in value]


def test_whole_floats_for_integers_are_a_warning_once(capsys):
    label = FedInput("component 1 ('label')", tf.int32, tf.TensorShape([None]))
    for _ in range(2):
        assert label.feed(np.ones(3)).dtype == np.int32
    (line,) = capsys.readouterr().out.splitlines()
    assert "WRN There is float64 in component 1 ('label') where the model takes int32" in line


def test_an_error_names_the_input_both_sides_and_what_to_do():
    image = FedInput("'image:0'", tf.uint8, tf.TensorShape([None, 2]))
    with pytest.raises(TypeError) as caught:
        image.feed(np.full([1, 2], 0.9))
    assert str(caught.value) == (
        "'image:0': the model takes uint8 [None, 2], the call gave float64 [1, 2]: a cast from "
        "float64 to uint8 changes 0.9: do it first."
    )
