"""A batch holds exactly the values of its datapoints, in arrays of its own, or is an error."""

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.dataflow import BatchData, DataFromGenerator, DataFromList, FakeData
from tensorpack.utils._tracebacks import notes_of
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import Of2017, flow_of
from tests.dataflow.process_functions import Unsized

TestBatchData = contract_of(
    lambda: BatchData(FakeData([[2, 3], []], size=11, random=False), 3), length=3
)
TestBatchDataWithRemainder = contract_of(
    lambda: BatchData(flow_of([{"n": i, "s": str(i)} for i in range(11)]), 3, remainder=True),
    length=4,
)
TestBatchDataOfShuffled = contract_of(
    lambda: BatchData(DataFromList([[i] for i in range(10)]), 3, remainder=True),
    length=4,
    deterministic=False,
)
TestBatchDataOfUnknownLength = contract_of(
    lambda: BatchData(Unsized(Of2017()), 2), length=2, has_len=False, keeps_state=False
)


@given(st.integers(1, 20), st.integers(1, 9), st.booleans(), st.booleans())
def test_batches_joined_again_are_the_flow(count, size, remainder, use_list):
    flow = flow_of([[i] for i in range(count)])
    if size > count and not remainder:
        with pytest.raises(ValueError, match=f"{size}.* has only {count} datapoints"):
            BatchData(flow, size)
        return
    batches = BatchData(flow, size, remainder=remainder, use_list=use_list)
    sizes = [len(component) for (component,) in batches]
    joined = [int(i) for (component,) in batches for i in component]
    kept = count if remainder else count - count % size
    assert joined == list(range(kept))
    assert len(sizes) == len(batches)
    assert set(sizes[:-1]) <= {size}
    assert 1 <= sizes[-1] <= size


@given(
    st.lists(st.integers(0, 4), max_size=3),
    st.sampled_from(["bool", "uint8", "int32", "int64", "float16", "float32", "float64"]),
    st.integers(1, 5),
)
def test_arrays_keep_dtype_shape_and_values(shape, dtype, size):
    flow = FakeData([shape], size=size, dtype=dtype)
    datapoints = list(flow)
    (batch,) = BatchData.aggregate_batch(datapoints)
    assert batch.dtype == np.dtype(dtype)
    assert batch.shape == (size, *shape)
    for row, (component,) in zip(batch, datapoints):
        np.testing.assert_array_equal(row, component)


@pytest.mark.parametrize(
    "values, expected",
    [
        ([1, 2], np.array([1, 2], np.int32)),
        ([True, False], np.array([True, False])),
        ([0.5, 2.0], np.array([0.5, 2], np.float32)),
        ([1, 0.5], np.array([1, 0.5], np.float32)),
        ([True, 2], np.array([1, 2], np.int32)),
        ([float("inf"), float("nan")], np.array([np.inf, np.nan], np.float32)),
        ([np.int64(1), np.int64(2**40)], np.array([1, 2**40], np.int64)),
        ([np.float32(1), np.float64(2)], np.array([1, 2], np.float64)),
        ([np.int64(1), 2], np.array([1, 2], np.int64)),
        ([np.float64(0.1), 0.1, 1e300], np.array([0.1, 0.1, 1e300], np.float64)),
        ([0.1, np.longdouble(0.1)], np.array([0.1, 0.1], np.longdouble)),
        ([0.1, np.float16(1)], np.array([0.1, 1], np.float32)),
        ([np.uint8(1), np.int8(-1)], np.array([1, -1], np.int16)),
        ([np.timedelta64(1, "s")] * 2, np.array([1, 1], "m8[s]")),
        (["a", "bcd"], np.array(["a", "bcd"])),
        ([b"a", b"bcd"], np.array([b"a", b"bcd"])),
    ],
)
def test_scalars(values, expected):
    (batch,) = BatchData.aggregate_batch([[value] for value in values])
    assert batch.dtype == expected.dtype
    np.testing.assert_array_equal(batch, expected)


@pytest.mark.parametrize(
    "values, error, message",
    [
        ([0, 2**31], ValueError, r"from 0 to 2147483648.*np.int64\(value\)"),
        ([np.int64(1), 2**31], ValueError, "int32"),
        ([1.0, 1e39], ValueError, "too large for float32"),
        ([b"a", b"b\0"], ValueError, "zero byte"),
        ([None, 1], TypeError, "Component 1 is NoneType"),
        ([np.array([None]), np.array([1])], TypeError, "Component 1 is an array of objects"),
        (["a", b"a"], TypeError, "Component 1 of a batch mixes bytes and str"),
        (["a", 1], TypeError, "mixes int and str"),
        ([np.int64(1), np.float32(1)], ValueError, "kinds: float32, int64"),
        ([np.int64(1), np.uint64(1)], ValueError, "kinds: int64, uint64"),
        ([np.timedelta64(1, "s"), np.timedelta64(1, "D")], ValueError, "kinds: timedelta64"),
        ([np.ma.array([1, 2], mask=[0, 1])], TypeError, "Component 1 is MaskedArray"),
    ],
)
def test_what_does_not_fit_is_an_error(values, error, message):
    with pytest.raises(error, match=message):
        BatchData.aggregate_batch([["good", value] for value in values])


def test_different_shapes_are_named_and_what_to_do():
    shapes = [(4, 3), (2, 3), (2, 3), (), *((size,) for size in range(16))]
    flow = BatchData(flow_of([{"image": np.zeros(shape)} for shape in [()] * 20 + shapes]), 20)
    with pytest.raises(ValueError) as caught:
        list(flow)
    (note,) = notes_of(caught.value)
    assert note.startswith("BatchData failed on datapoint 20 to 39 (counted from 0 where")
    assert "[{'image': float64 (4, 3)}, {'image': float64 (2, 3)}, " in note
    expected = "Component 'image' of a batch of 20 has different shapes, such as (), (0,), (1,): "
    assert str(caught.value).startswith(expected + "equalise them")


@pytest.mark.parametrize(
    "datapoints, error, message",
    [
        ([[1], [1, 2]], ValueError, "a list of 1 components and a list of 2 components"),
        ([{"a": 1}, {"b": 1}], ValueError, "differ in form: a dict of a and a dict of b"),
        ([{0: 1}, [1]], ValueError, "a dict of 0 and a list of 1 components"),
        ([np.zeros(2), np.zeros(2)], TypeError, "got ndarray"),
        ([], ValueError, "at least one"),
    ],
)
def test_different_forms(datapoints, error, message):
    with pytest.raises(error, match=message):
        BatchData.aggregate_batch(datapoints, use_list=True)


def test_dicts_and_tuples():
    batch = BatchData.aggregate_batch([{"b": 1, "a": 2.0}, {"a": 3.0, "b": 4}])
    assert [(key, batch[key].tolist()) for key in batch] == [("b", [1, 4]), ("a", [2, 3])]
    assert isinstance(BatchData.aggregate_batch([(1,), (2,)]), list)


def test_batches_are_new_and_contiguous():
    planar = np.zeros((3, 4, 5), np.float32).transpose(2, 1, 0)
    reused = [planar]
    flow = BatchData(DataFromGenerator(lambda: iter([reused] * 6)), 2)
    batches = [batch for (batch,) in flow]
    assert len(batches) == 3
    for number, batch in enumerate(batches):
        assert batch.flags.c_contiguous and batch.flags.owndata and batch.flags.writeable
        assert batch.shape == (2, 5, 4, 3)
        batch[:] = number
    assert [batch.max() for batch in batches] == [0, 1, 2]
    assert planar.max() == 0


@pytest.mark.parametrize("size", [10**8, 10**15])
def test_a_size_for_which_there_is_no_memory_takes_a_whole_pass(size):
    (batch,) = BatchData(flow_of([[np.full(2**14, i, "u1")] for i in range(3)]), size, True)
    assert batch[0].shape == (3, 2**14)


def test_a_subclass_gets_the_datapoints_as_they_are():
    class Tagged(BatchData):
        @staticmethod
        def aggregate_batch(data_holder, use_list=False):
            return [list(data_holder)]

    Pair = collections.namedtuple("Pair", "image label")
    datapoints = [Pair(np.zeros(2**15, "u1"), n) for n in range(4)]
    batches = list(Tagged(DataFromGenerator(lambda: iter(datapoints)), 2))
    assert all(dp is datapoints[dp.label] for (batch,) in batches for dp in batch)


def test_batch_size_must_be_a_whole_number():
    with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1"):
        BatchData(flow_of([[1]]), 0)
    assert len(list(BatchData(flow_of([[1], [2], [3], [4]]), "2"))) == 2


# Padding
def texts(kind=list):
    """Datapoints with a text of 0 to 4 numbers, its length, and a table of two sizes."""
    for i in range(11):
        array = np.arange(1, i * 3 % 5 + 1, dtype="int16")
        if kind is dict:
            yield {"text": array, "size": len(array), "table": np.ones((i % 3, 2 + i % 2))}
        else:
            yield kind([array, len(array), np.ones((i % 3, 2 + i % 2))])


TestPadded = contract_of(
    lambda: BatchData(flow_of(list(texts())), 3, remainder=True, pad=[0, 2]), length=4
)


@pytest.mark.parametrize("kind", [list, tuple, dict])
@pytest.mark.parametrize("use_list", [False, True])
@pytest.mark.parametrize("values", [None, (-7, 0.5)])
def test_padded_to_the_largest_of_the_batch(kind, use_list, values):
    keys = ("text", "table") if kind is dict else (0, 2)
    pad = keys if values is None else dict(zip(keys, values))
    datapoints = list(texts(kind))
    before = [repr(dp) for dp in datapoints]
    batches = list(BatchData(flow_of(datapoints), 4, True, use_list, pad=pad))
    assert [repr(dp) for dp in datapoints] == before
    assert [len(batch[keys[0]]) for batch in batches] == [4, 4, 3]
    for start, batch in zip((0, 4, 8), batches):
        for key, value in zip(keys, values or (0, 0)):
            arrays = [dp[key] for dp in datapoints[start : start + 4]]
            shape = tuple(max(array.shape[i] for array in arrays) for i in range(arrays[0].ndim))
            assert isinstance(batch[key], list if use_list else np.ndarray)
            for padded, array in zip(batch[key], arrays):
                widths = [(0, most - size) for most, size in zip(shape, array.shape)]
                expected = np.pad(array, widths, "constant", constant_values=value)
                assert padded.dtype == array.dtype
                np.testing.assert_array_equal(padded, expected)


@pytest.mark.parametrize(
    "datapoints, pad, error, message",
    [
        ([[np.ones(2)]] * 2, [1], IndexError, "takes component 1, which"),
        ([[np.ones(2)], [np.ones((2, 2))]], [0], ValueError, "arrays have 1 and 2 dimensions"),
        ([[np.ones(2)], [[1.0, 2.0]]], [0], TypeError, "Component 0 is list"),
        ([[np.ones(i, "uint8")] for i in (1, 2)], {0: -1}, ValueError, "uint8.*padded with -1"),
        ([[np.ones(i, "int8")] for i in (1, 2)], {0: 0.5}, ValueError, "int8.*padded with 0.5"),
    ],
)
def test_what_cannot_be_padded(datapoints, pad, error, message):
    with pytest.raises(error, match=message):
        list(BatchData(flow_of(datapoints), 2, pad=pad))
