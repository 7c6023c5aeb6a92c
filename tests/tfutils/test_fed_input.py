"""What is fed keeps its values, or is refused."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.fed_input import FedInput, cast


@pytest.mark.parametrize(
    "values, source, target",
    [
        ([True, False], "bool", "int32"),
        ([-128, 127], "int8", "int64"),
        ([0, 255], "uint8", "float32"),
        ([0, 2**31 - 1, -(2**31)], "int64", "int32"),
        ([0, 2**24, -(2**24)], "int64", "float32"),
        ([-3, 2048], "int32", "float16"),
        ([0.5, 65504.0], "float32", "float16"),
        ([1 + 2j], "complex128", "complex64"),
        ([1.0], ">f4", "<f4"),
        ([], "int64", "int8"),
        ([1.5, -2.0], "float32", tf.bfloat16.as_numpy_dtype),
        ([np.inf, -np.inf, 1.5], "float64", "float32"),
        ([0.0, -3.0, 2.0**31 - 1], "float64", "int32"),
        ([255.0], "float16", "uint8"),
    ],
)
def test_values_that_survive_are_cast(values, source, target):
    found = cast(np.array(values, source), np.dtype(target))
    assert found.dtype == np.dtype(target)
    assert found.astype(source).tolist() == values


@pytest.mark.parametrize(
    "value, source, target",
    [
        (2**31, "int64", "int32"),
        (256, "int64", "uint8"),
        (-1, "int8", "uint8"),
        (2**63, "uint64", "int64"),
        (2**24 + 1, "int64", "float32"),
        (-2049, "int32", "float16"),
        (1e39, "float64", "float32"),
        (-1e5, "float32", "float16"),
        (2.0**31, "float64", "int32"),
        (-1.0, "float32", "uint8"),
        (2.0**63, "float64", "int64"),
    ],
)
@pytest.mark.parametrize("shape", [[], [2, 2]])
def test_out_of_range_is_an_error(value, source, target, shape):
    with pytest.raises(ValueError, match="out of the range of " + target):
        cast(np.full(shape, value, source), np.dtype(target))


@pytest.mark.parametrize(
    "source, target",
    [
        ("float32", "bool"),
        ("int32", "bool"),
        ("complex64", "float32"),
        ("S3", "float32"),
        ("M8[s]", "int64"),
        ("V4", "float32"),
    ],
)
def test_a_change_of_kind_is_an_error(source, target):
    with pytest.raises(TypeError):
        cast(np.zeros(2, source), np.dtype(target))


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, 1e-9])
def test_floats_that_are_not_whole_do_not_become_integers(value):
    with pytest.raises(TypeError, match="from float64 to int32 changes what the values are"):
        cast(np.array([1.0, value]), np.dtype("int32"))


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
        "float64 to uint8 changes what the values are: do it first."
    )
