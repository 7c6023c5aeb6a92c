"""Every datapoint comes as often as asked for, near its place, and in the same order again."""

import collections
import itertools
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow import (
    BatchDataByShape,
    CacheData,
    ConcatData,
    DataFromGenerator,
    DataFromList,
    MapData,
    RepeatedData,
)
from tensorpack.dataflow.shuffle import LocallyShuffleData
from tensorpack.utils import fix_rng_seed
from tests.contracts.dataflow import assert_plain, assert_same, contract_of
from tests.dataflow.flows import Of2017, check_resumes, flow_of, numbers, shuffled
from tests.dataflow.process_functions import Unsized

SIZES = st.integers(1, 8)
SEEDS = st.integers(0, 2**20)


TestLocallyShuffleData = contract_of(
    lambda: LocallyShuffleData(numbers(20), 6), length=20, deterministic=False
)
TestBufferOfOne = contract_of(lambda: LocallyShuffleData(numbers(5), 1), length=5)
TestReused = contract_of(
    lambda: LocallyShuffleData(shuffled(7), 3, num_reuse=3, shuffle_interval=2),
    length=21,
    deterministic=False,
)
TestWithoutEnd = contract_of(
    lambda: LocallyShuffleData(RepeatedData(shuffled(5), -1), 4), has_len=False, deterministic=False
)
TestUnknownLength = contract_of(
    lambda: LocallyShuffleData(Unsized(Of2017()), 2),
    length=5,
    has_len=False,
    deterministic=False,
    keeps_state=False,
)


@given(SEEDS, st.integers(0, 20), SIZES, st.integers(1, 3), SIZES)
def test_every_datapoint_comes_as_often_as_asked_for_and_no_more_than_the_buffer_is_read(
    seed, count, size, reuse, interval
):
    fix_rng_seed(seed)
    read = []

    def source():
        for i in range(count):
            read.append(i)
            yield [i]

    yielded = collections.Counter()
    for (i,) in LocallyShuffleData(DataFromGenerator(source), size, reuse, interval):
        gone = sum(1 for uses in yielded.values() if uses == reuse)
        assert len(read) - gone <= size
        yielded[i] += 1
    assert yielded == dict.fromkeys(range(count), reuse)
    assert len(LocallyShuffleData(numbers(count), size, reuse, interval)) == count * reuse


@settings(max_examples=80)
@given(SEEDS, st.integers(0, 15), SIZES, st.integers(1, 3), SIZES, st.integers(0, 50))
def test_it_resumes_from_anywhere(seed, count, size, reuse, interval, taken):
    fix_rng_seed(seed)
    check_resumes(lambda: LocallyShuffleData(shuffled(count), size, reuse, interval), taken)


def test_all_orders_of_a_full_buffer_are_equally_likely():
    fix_rng_seed(0)
    flow = LocallyShuffleData(flow_of("abc"), 3)
    found = collections.Counter("".join(flow) for _ in range(1200))
    assert len(found) == 6
    assert all(abs(count - 200) < 60 for count in found.values())


def test_no_datapoint_is_in_a_state():
    flow = LocallyShuffleData(DataFromList([[object()] for _ in range(9)]), 4)
    next(iter(flow))
    assert_plain(flow.state_dict())
    pickle.dumps(flow.state_dict())


@pytest.mark.parametrize("count", [0, 3, 4, 5, 10, 11])
def test_a_flow_below_that_has_ended_is_resumed_as_one_that_has_ended(count):
    def make_flow():
        cached = CacheData(shuffled(4), shuffle=True)
        return ConcatData([LocallyShuffleData(cached, 3, 2), numbers(3)])

    check_resumes(make_flow, count)


@pytest.mark.parametrize("taken", range(6))
def test_an_epoch_that_is_left_early_has_finished_the_flow_below_as_without_a_resume(taken):
    def make_flow():
        kinds = MapData(shuffled(22), lambda dp: [np.zeros(dp[0] % 2), dp[0]])
        return LocallyShuffleData(BatchDataByShape(kinds, 4, 0), 12)

    fix_rng_seed(1)
    flow, twin = make_flow(), make_flow()
    going = iter(flow)
    list(itertools.islice(going, taken))
    twin.load_state_dict(flow.state_dict())
    rest = iter(twin)
    assert_same(list(itertools.islice(going, 1)), list(itertools.islice(rest, 1)))
    del going, rest
    assert_same(list(flow), list(twin))


def test_an_error_of_the_flow_leaves_the_state_before_it():
    def fail_late(datapoint):
        if datapoint[0] == 8 and failures:
            raise failures.pop()
        return datapoint

    failures = [ZeroDivisionError("once")]
    flow = LocallyShuffleData(MapData(numbers(20), fail_late), 4)
    found = []
    with pytest.raises(ZeroDivisionError, match="once"):
        for datapoint in flow:
            found.append(datapoint)
    twin = LocallyShuffleData(MapData(numbers(20), fail_late), 4)
    twin.load_state_dict(flow.state_dict())
    assert sorted(found + list(twin)) == list(numbers(20))


def test_arguments():
    flow = LocallyShuffleData(numbers(3), 10, nr_reuse=2)
    assert (flow.buffer_size, flow.num_reuse, flow.shuffle_interval) == (10, 2, 3)
    assert LocallyShuffleData(numbers(3), 2).shuffle_interval == 1
    assert LocallyShuffleData(numbers(3), 2, 1, 5).shuffle_interval == 5
    with pytest.raises(ValueError, match="num_reuse must be a whole number of at least 1"):
        LocallyShuffleData(numbers(3), 2, 0)


def test_only_what_is_in_the_buffer_is_held():
    class Point(list):
        """A list that can be referred to weakly."""

    def point(datapoint):
        made = Point(datapoint)
        points.append(weakref.ref(made))
        return made

    def held():
        return sum(1 for reference in points if reference() is not None)

    points = []
    flow = LocallyShuffleData(MapData(numbers(200), point), 10)
    list(itertools.islice(flow, 100))
    twin = LocallyShuffleData(MapData(numbers(200), point), 10)
    twin.load_state_dict(flow.state_dict())
    points.clear()
    going = iter(twin)
    assert 0 < held() < len(points)
    assert held() <= 10
    for _ in going:
        assert held() <= 10 + 1  # and the last one that was read, in a frame of the flow
    assert len(points) > 100
