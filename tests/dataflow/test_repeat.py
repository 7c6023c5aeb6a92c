"""Repetition is exact, and never spins on a flow that yields nothing."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.dataflow import (
    DataFromGenerator,
    DataFromList,
    FixedSizeData,
    MapData,
    RepeatedData,
    RepeatedDataPoint,
)
from tests.contracts.dataflow import DataFlowContract


def numbers(count):
    return DataFromList([[i] for i in range(count)], shuffle=False)


def drop(datapoint):
    return None


class TestRepeatedData(DataFlowContract):
    length = 12

    def make_flow(self):
        return RepeatedData(numbers(4), 3)


class TestEndlessRepeatedData(DataFlowContract):
    has_len = False

    def make_flow(self):
        return RepeatedData(numbers(4), -1)


class TestRepeatedDataPoint(DataFlowContract):
    length = 12

    def make_flow(self):
        return RepeatedDataPoint(numbers(4), 3)


class TestFixedSizeData(DataFlowContract):
    length = 6
    independent = False

    def make_flow(self):
        return FixedSizeData(numbers(3), 6)


class TestFixedSizeDataWithoutState(DataFlowContract):
    length = 7

    def make_flow(self):
        return FixedSizeData(numbers(3), 7, keep_state=False)


@given(st.integers(1, 5), st.integers(0, 4))
def test_repeated_is_the_list_times_the_number(count, num):
    flow = RepeatedData(numbers(count), num)
    assert list(flow) == list(numbers(count)) * num
    assert len(flow) == count * num


@given(st.integers(1, 5), st.integers(0, 30))
def test_repeated_for_ever_goes_round(count, taken):
    datapoints = itertools.islice(RepeatedData(numbers(count), -1), taken)
    assert list(datapoints) == [[i % count] for i in range(taken)]


@given(st.integers(1, 5), st.integers(1, 7), st.integers(1, 4))
def test_passes_of_fixed_size_continue_one_another(count, size, passes):
    flow = FixedSizeData(numbers(count), size)
    found = [list(flow) for _ in range(passes)]
    assert [len(datapoints) for datapoints in found] == [size] * passes
    assert sum(found, []) == [[i % count] for i in range(size * passes)]


def test_repeated_data_has_the_keyword_of_2017():
    assert RepeatedData(numbers(2), nr=3).num == 3
    assert RepeatedDataPoint(numbers(2), nr=2).num == 2
    with pytest.raises(TypeError, match="both 'nr' and 'num'"):
        RepeatedData(numbers(2), nr=3, num=3)


@pytest.mark.parametrize("num", [-1, 2])
def test_a_pass_without_a_datapoint_is_an_error(num):
    for empty in numbers(0), MapData(numbers(5), drop):
        with pytest.raises(RuntimeError, match="yielded nothing in pass 1"):
            list(RepeatedData(empty, num))
    with pytest.raises(RuntimeError, match="yielded nothing"):
        list(FixedSizeData(numbers(0), 2))


def test_a_later_pass_without_a_datapoint_is_an_error():
    supply = [[[1]], []]
    flow = RepeatedData(DataFromGenerator(lambda: supply.pop(0)), -1)
    datapoints = iter(flow)
    assert next(datapoints) == [1]
    with pytest.raises(RuntimeError, match="DataFromGenerator, which yielded nothing in pass 2"):
        next(datapoints)


def test_repeated_datapoint_comes_in_a_row():
    assert list(RepeatedDataPoint(numbers(2), 3)) == [[0], [0], [0], [1], [1], [1]]


def test_reset_state_takes_fixed_size_back_to_the_beginning():
    flow = FixedSizeData(numbers(5), 2)
    assert list(flow) == [[0], [1]]
    flow.reset_state()
    assert list(flow) == [[0], [1]]


def test_fixed_size_begins_anew_after_an_error():
    def fail_once(datapoint):
        if failures:
            raise failures.pop()
        return datapoint

    failures = [ZeroDivisionError("once")]
    flow = FixedSizeData(MapData(numbers(5), fail_once), 2)
    with pytest.raises(ZeroDivisionError, match="once"):
        list(flow)
    assert list(flow) == [[0], [1]]


@pytest.mark.parametrize(
    "kind, number", [(RepeatedData, -2), (RepeatedDataPoint, 0), (FixedSizeData, 0)]
)
def test_wrong_numbers(kind, number):
    with pytest.raises(ValueError, match=f"{kind.__name__}.*got {number}"):
        kind(numbers(3), number)
