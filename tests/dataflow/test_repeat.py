"""Repetition is exact, and never spins on a flow that yields nothing."""

import itertools
import multiprocessing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.dataflow import (
    DataFromGenerator,
    FixedSizeData,
    MapData,
    MultiThreadMapData,
    RepeatedData,
    RepeatedDataPoint,
)
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import numbers, shuffled
from tests.dataflow.process_flows import closing


def drop(datapoint):
    return None


TestRepeatedDataInRandomOrder = contract_of(
    lambda: RepeatedData(shuffled(4), 3), length=12, deterministic=False
)
TestEndlessInRandomOrder = contract_of(
    lambda: RepeatedData(shuffled(4), -1), has_len=False, deterministic=False
)
TestRepeatedDataPointInRandomOrder = contract_of(
    lambda: RepeatedDataPoint(shuffled(4), 3), length=12, deterministic=False
)
TestFixedSizeDataInRandomOrder = contract_of(
    lambda: FixedSizeData(shuffled(4), 6), length=6, deterministic=False, independent=False
)
TestFixedSizeDataWithoutStateInRandomOrder = contract_of(
    lambda: FixedSizeData(shuffled(4), 6, keep_state=False), length=6, deterministic=False
)


@given(st.integers(1, 5), st.integers(0, 4))
def test_repeated_is_the_list_times_the_number(count, num):
    flow = RepeatedData(numbers(count), num)
    assert list(flow) == list(numbers(count)) * num
    assert len(flow) == count * num


@given(st.integers(1, 5), st.integers(0, 30))
def test_repeated_forever(count, taken):
    datapoints = itertools.islice(RepeatedData(numbers(count), -1), taken)
    assert list(datapoints) == [[i % count] for i in range(taken)]


@given(st.integers(1, 5), st.integers(1, 7), st.integers(1, 4))
def test_passes_of_fixed_size_continue_one_another(count, size, passes):
    flow = FixedSizeData(numbers(count), size)
    found = [list(flow) for _ in range(passes)]
    assert [len(datapoints) for datapoints in found] == [size] * passes
    assert sum(found, []) == [[i % count] for i in range(size * passes)]


@pytest.mark.parametrize("num", [-1, 2])
def test_a_pass_without_a_datapoint_is_an_error(num):
    for empty in numbers(0), MapData(numbers(5), drop):
        with pytest.raises(RuntimeError, match="yielded nothing in pass 1"):
            list(RepeatedData(empty, num))
    with pytest.raises(RuntimeError, match="^DataFromList yielded nothing in pass 1"):
        list(FixedSizeData(numbers(0), 2))  # it says nothing of the RepeatedData within


def test_a_later_pass_without_a_datapoint_is_an_error():
    supply = [[[1]], []]
    flow = RepeatedData(DataFromGenerator(lambda: supply.pop(0)), -1)
    datapoints = iter(flow)
    assert next(datapoints) == [1]
    with pytest.raises(RuntimeError, match="DataFromGenerator yielded nothing in pass 2"):
        next(datapoints)


def test_reset_state_takes_fixed_size_back_to_the_beginning():
    flow = FixedSizeData(numbers(5), 2)
    assert list(flow) == [[0], [1]]
    flow.reset_state()
    assert list(flow) == [[0], [1]]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_fixed_size_starts_again_after_an_error(error):
    def fail_once(datapoint):
        if failures:
            raise failures.pop()
        return datapoint

    failures = [error("once")]
    flow = FixedSizeData(MapData(numbers(5), fail_once), 2)
    with pytest.raises(error, match="once"):
        list(flow)
    assert list(flow) == [[0], [1]]


def test_a_forked_copy_of_fixed_size_begins_a_pass_of_its_own():
    def take(pipe):
        pipe.send(list(flow))

    flow = FixedSizeData(MultiThreadMapData(numbers(6), 2, lambda datapoint: datapoint), 2)
    flow.reset_state()
    assert len(list(flow)) == 2
    receiver, sender = multiprocessing.Pipe(False)
    with closing(flow), receiver:
        child = multiprocessing.get_context("fork").Process(target=take, args=(sender,))
        child.start()
        assert receiver.poll(20) and len(receiver.recv()) == 2
        child.join(5)


@pytest.mark.parametrize(
    "kind, wrong", [(RepeatedData, -2), (RepeatedDataPoint, 0), (FixedSizeData, "2.5")]
)
def test_wrong_numbers(kind, wrong):
    with pytest.raises((TypeError, ValueError), match=f"{kind.__name__}.*got {wrong!r}"):
        kind(numbers(3), wrong)
