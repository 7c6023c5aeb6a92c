"""Batches that are made in processes are those of `BatchData` over a map."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow import BatchData, DataFromList, MapData, UnknownLength
from tensorpack.dataflow.process_map import (
    MultiProcessMapAndBatchData,
    MultiProcessMapAndBatchDataZMQ,
)
from tensorpack.utils._tracebacks import notes_of
from tensorpack.utils.packing.packed_arrays import is_immutable
from tests.contracts.dataflow import assert_same
from tests.dataflow import process_functions as functions
from tests.dataflow.process_flows import ContractOfProcesses, closing, passes
from tests.dataflow.process_functions import Unsized, numbers

pytestmark = pytest.mark.usefixtures("own_streams")


def batched(ds, func=functions.tenfold, num_proc=2, batch_size=4, **options):
    options.setdefault("start_method", "fork")
    return MultiProcessMapAndBatchData(ds, num_proc, func, batch_size, **options)


class TestBatches(ContractOfProcesses):
    length = 3
    deterministic = False
    keeps_state = False

    def make_flow(self):
        return batched(numbers(13))


@pytest.mark.parametrize("remainder", [False, True])
@pytest.mark.parametrize("func", [functions.arrays_of, functions.tenfold])
def test_one_process_makes_the_batches_of_batch_data(func, remainder):
    expected = list(BatchData(MapData(numbers(13), func), 4, remainder))
    with closing(batched(numbers(13), func, 1, remainder=remainder)) as flow:
        assert_same(list(flow), expected)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    size=st.integers(0, 30),
    num_proc=st.integers(1, 3),
    batch_size=st.integers(1, 5),
    buffers=st.integers(1, 3),
    dropped=st.booleans(),
    remainder=st.booleans(),
)
def test_each_datapoint_is_in_one_batch(size, num_proc, batch_size, buffers, dropped, remainder):
    func = functions.not_of_three if dropped else functions.tenfold
    expected = [n for (n,) in MapData(numbers(size), func)]
    flow = batched(
        Unsized(numbers(size)),
        func,
        num_proc,
        batch_size,
        buffer_size=buffers * batch_size,
        remainder=remainder,
    )
    for batches in passes(flow):
        sizes = [len(batch) for (batch,) in batches]
        values = [n for (batch,) in batches for n in batch.tolist()]
        left = len(expected) % batch_size
        if remainder:
            assert sorted(values) == expected
            assert sizes == [batch_size] * (len(expected) // batch_size) + [left] * bool(left)
        else:
            assert set(values) <= set(expected) and len(values) == len(expected) - left
            assert set(sizes) <= {batch_size}


@pytest.mark.parametrize(
    "datapoints",
    [
        [{"x": np.full(300, i), "name": str(i)} for i in range(8)],
        [[np.array([(i, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f4")])] for i in range(8)],
    ],
    ids=["dicts and strings", "records"],
)
def test_batches_are_those_of_batch_data(datapoints):
    ds = DataFromList(datapoints, shuffle=False)
    with closing(batched(ds, functions.same, 1)) as flow:
        assert_same(list(flow), list(BatchData(ds, 4)))


def test_arrays_of_strings_of_any_length():
    dtype = pytest.importorskip("numpy", "2.0").dtypes.StringDType()
    rows = [[np.array(["a" * i, "b"], dtype)] for i in range(8)]
    ds = DataFromList(rows, shuffle=False)
    with closing(batched(ds, functions.same, 1)) as flow:
        assert_same(list(flow), list(BatchData(ds, 4)))


def test_batches_go_to_tensorflow_without_a_copy():
    with closing(batched(numbers(24), functions.whole_array)) as flow:
        batches = list(flow)
        assert len(batches) == 6
        for (batch,) in batches:
            assert batch.shape == (4, 10000)
            assert is_immutable(batch) and batch.ctypes.data % 64 == 0
            assert (batch == batch[:, :1]).all()


def test_datapoints_that_do_not_fit_are_an_error():
    ds = DataFromList([[np.zeros(i + 200)] for i in range(4)], shuffle=False)
    with closing(batched(ds, functions.same)) as flow:
        with pytest.raises(ValueError, match="Component 0 of a batch of 4 has different") as caught:
            list(flow)
    (note,) = notes_of(caught.value)
    assert "BatchData failed on datapoint 0 to 3 (counted" in note and "float64 (203,)" in note


def test_the_flow_is_not_read_far_ahead():
    taken = []

    class Watched(DataFromList):
        def __iter__(self):
            for datapoint in super().__iter__():
                taken.append(datapoint)
                yield datapoint

    ds = Watched([[i] for i in range(200)], shuffle=False)
    with closing(batched(ds, functions.tenfold, 2, 4, buffer_size=11)) as flow:
        for count, _ in enumerate(flow, 1):
            assert len(taken) <= 4 * (count + 1)
    assert count == 50


def test_lengths_and_names():
    assert MultiProcessMapAndBatchDataZMQ is MultiProcessMapAndBatchData
    assert len(batched(numbers(13))) == 3
    assert len(batched(numbers(13), remainder=True)) == 4
    with pytest.raises(UnknownLength):
        len(batched(Unsized(numbers(13))))


@pytest.mark.parametrize(
    "options, error, message",
    [
        (
            {"batch_size": 4, "buffer_size": 3},
            ValueError,
            "buffer_size must be a whole number of at least 4",
        ),
        ({"batch_size": 14}, ValueError, "batch_size=14, but DataFromList has only 13"),
    ],
)
def test_wrong_arguments(options, error, message):
    with pytest.raises(error, match=message):
        batched(numbers(13), **options)
