from collections import namedtuple

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFromList
from tensorpack.input_source import DatapointChecker

SIGNATURE = [
    tf.TensorSpec([None, 3], tf.float32, "image"),
    tf.TensorSpec([None], tf.int32, "label"),
]


def right(size=2):
    return [np.ones([size, 3], np.float32), np.arange(size, dtype=np.int32)]


def test_right_arrays_pass_as_they_are():
    check = DatapointChecker(SIGNATURE)
    for size in 2, 2, 5, 2, 0:
        datapoint = right(size)
        found = check(datapoint)
        assert found[0] is datapoint[0]
        assert found[1] is datapoint[1]


def test_tuples_and_dicts():
    check = DatapointChecker(SIGNATURE)
    image, label = right()
    pair = namedtuple("Pair", "a b")
    for datapoint in (image, label), pair(image, label), {"label": label, "image": image}:
        found = check(datapoint)
        assert found[0] is image
        assert found[1] is label


@pytest.mark.parametrize("index", [0, 1, 5])
@pytest.mark.parametrize(
    "bad, error, message",
    [
        (None, TypeError, "gave None"),
        (np.array([None, 1], object), TypeError, r"gave object \[2\].*None among"),
        (np.array([0.5, 1.5], np.float32), TypeError, r"gave float32 \[2\].*from float32 to int32"),
        (np.zeros([2, 1], np.int32), ValueError, r"gave int32 \[2, 1\]: it has 2 dimensions"),
        (np.ma.MaskedArray([1, 2], mask=[True, False]), TypeError, "fill them first"),
        ([1, [2]], TypeError, "gave a list of length 2"),
    ],
)
def test_an_error_names_the_datapoint_the_component_and_both_sides(index, bad, error, message):
    check = DatapointChecker(SIGNATURE)
    for _ in range(index):
        check(right())
    prefix = rf"Datapoint {index}, component 1 \('label'\): the model takes int32 \[None\], .*"
    with pytest.raises(error, match=prefix + message):
        check([right()[0], bad])


def test_the_first_datapoint_tells_all_that_is_wrong():
    with pytest.raises(TypeError) as caught:
        DatapointChecker(SIGNATURE)([None, np.zeros([2, 2], np.int32)])
    first, second = str(caught.value).split("\n")
    assert "component 0 ('image')" in first
    assert "component 1 ('label')" in second


@pytest.mark.parametrize(
    "bad, error, message",
    [
        ([1], ValueError, "has 1 components, the model takes 2"),
        (right() + [1], ValueError, "has 3 components"),
        ({"image": 1}, ValueError, r"has components named \['image'\]"),
        ({"image": 1, "label": 2, "more": 3}, ValueError, "has components named .*'more'"),
        (np.zeros([2, 3]), TypeError, r"is float64 \[2, 3\]. A dataflow must yield lists"),
        (None, TypeError, "is None"),
    ],
)
def test_wrong_datapoints(bad, error, message):
    check = DatapointChecker(SIGNATURE)
    check(right())
    with pytest.raises(error, match=f"Datapoint 1 {message}"):
        check(bad)


def test_a_value_that_is_right_after_a_conversion_is_still_checked():
    check = DatapointChecker(SIGNATURE)
    check([np.zeros([2, 3]), [1, 2]])  # the shapes are known now, the dtypes are not
    with pytest.raises(TypeError, match="from float32 to int32"):
        check([np.zeros([2, 3]), np.full(2, 0.5, np.float32)])


def test_examples_that_are_in_no_batch_are_told_what_makes_batches():
    check = DatapointChecker(SIGNATURE)
    examples = DataFromList([[np.zeros(3, np.float32), 1]] * 2)
    with pytest.raises(ValueError, match=r"0 dim.* instead of 1, as .*\nBatchData\(flow, size\) m"):
        check(next(iter(examples)))
    assert [len(each) for each in check(next(iter(BatchData(examples, 2))))] == [2, 2]


def test_strings_are_checked_each_time():
    check = DatapointChecker([tf.TensorSpec(None, tf.string, "names")])
    for value in "a", b"a\0", ["a", b"b"], np.array(["a", "b"]):
        (found,) = check([value])
        assert found.dtype == np.dtype(object)
        assert found.tolist() == (value.tolist() if isinstance(value, np.ndarray) else value)
    for wrong in 1, np.zeros(2), ["a", None], np.array(["a", 1], object):
        with pytest.raises(TypeError, match="only str and bytes are strings|float64 to str"):
            check([wrong])
