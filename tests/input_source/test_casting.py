import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source.casting import cast, to_strings

BFLOAT16 = np.dtype(tf.bfloat16.as_numpy_dtype)


@pytest.mark.parametrize(
    "values, source, target",
    [
        ([True, False], "bool", "int32"),
        ([True, False], "bool", "float32"),
        ([-128, 127], "int8", "int64"),
        ([0, 255], "uint8", "float32"),
        ([0, 2**31 - 1, -(2**31)], "int64", "int32"),
        ([0, 255], "int64", "uint8"),
        ([0, 2**24, -(2**24)], "int64", "float32"),
        ([-3, 2048], "int32", "float16"),
        ([0.5, -2.0], "float64", "float32"),
        ([0.5, 65504.0], "float32", "float16"),
        ([1 + 2j], "complex128", "complex64"),
        ([1.0], ">f4", "<f4"),
        ([], "float64", "float32"),
        ([], "int64", "int8"),
    ],
)
def test_what_survives_is_cast(values, source, target):
    array = np.array(values, source)
    found = cast(array, np.dtype(target))
    assert found.dtype == np.dtype(target)
    assert found.tolist() == array.tolist()


def test_an_array_of_the_right_dtype_is_not_copied():
    array = np.zeros(3, np.float32)
    assert cast(array, np.dtype("float32")) is array


def test_nan_and_infinity_stay():
    found = cast(np.array([np.nan, np.inf, -np.inf, 1.5]), np.dtype("float32"))
    np.testing.assert_array_equal(found, np.array([np.nan, np.inf, -np.inf, 1.5], np.float32))


def test_bfloat16():
    found = cast(np.array([1.5, -2.0], np.float32), BFLOAT16)
    assert found.dtype == BFLOAT16
    assert found.astype(np.float32).tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    "value, source, target",
    [
        (2**31, "int64", "int32"),
        (-(2**31) - 1, "int64", "int32"),
        (256, "int64", "uint8"),
        (-1, "int32", "uint8"),
        (-1, "int8", "uint8"),
        (2**63, "uint64", "int64"),
        (2**24 + 1, "int64", "float32"),
        (-2049, "int32", "float16"),
        (1e39, "float64", "float32"),
        (-1e5, "float32", "float16"),
    ],
)
@pytest.mark.parametrize("shape", [[], [3], [2, 2]])
def test_out_of_range_is_an_error(value, source, target, shape):
    array = np.zeros(shape, source)
    array[...] = value
    with pytest.raises(ValueError, match="out of the range of " + target):
        cast(array, np.dtype(target))


@pytest.mark.parametrize(
    "source, target",
    [
        ("float32", "int32"),
        ("float64", "int64"),
        ("float32", "bool"),
        ("int32", "bool"),
        ("complex64", "float32"),
        ("S3", "float32"),
        ("U3", "int32"),
        ("M8[s]", "int64"),
        ("V4", "float32"),
    ],
)
def test_a_change_of_kind_is_an_error(source, target):
    with pytest.raises(TypeError):
        cast(np.zeros(2, source), np.dtype(target))


@pytest.mark.parametrize("value", ["a", b"a\0", ["a", "b"], [b"a\0"], np.array(["a", "b"])])
def test_strings(value):
    found = to_strings(value)
    assert found.dtype == np.dtype(object)
    assert found.tolist() == (value.tolist() if isinstance(value, np.ndarray) else value)


@pytest.mark.parametrize("value", [1, [1.0], np.zeros(2), ["a", None], np.array(["a", 1], object)])
def test_what_is_no_string(value):
    with pytest.raises(TypeError, match="str"):
        to_strings(value)
