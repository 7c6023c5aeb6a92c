"""The first complete pass is kept, and no other; a resumed run has the same passes."""

import itertools
import pickle

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchDataByShape,
    DataFromGenerator,
    DataFromList,
    MapData,
    TestDataSpeed,
)
from tensorpack.dataflow.cache import CacheData
from tensorpack.dataflow.map import DatapointMap
from tensorpack.utils import fix_rng_seed
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import Of2017, check_resumes, doubled, numbers, shuffled


def five():
    return iter([[i, np.float32(i)] for i in range(5)])


class Counted(DatapointMap):
    """Counts its passes and what they yield."""

    passes = yielded = 0

    def _transform(self, datapoints):
        self.passes += 1
        return super()._transform(datapoints)

    def _apply(self, datapoint):
        self.yielded += 1
        return datapoint


def counted(count):
    return Counted(shuffled(count))


TestCacheData = contract_of(lambda: CacheData(numbers(5)), length=5)
TestShuffledCache = contract_of(
    lambda: CacheData(MapData(shuffled(6), doubled), shuffle=True), length=6, deterministic=False
)
TestCacheOfUnknownLength = contract_of(
    lambda: CacheData(DataFromGenerator(five)), length=5, has_len=False, keeps_state=False
)


def test_a_complete_pass_is_read_only_once():
    ds = counted(5)
    flow = CacheData(ds)
    first = list(flow)
    assert [list(flow) for _ in range(3)] == [first] * 3
    assert (ds.passes, ds.yielded) == (1, 5)
    assert all(one is two for one, two in zip(first, flow))


def test_a_pass_that_is_left_leaves_no_cache():
    ds = counted(5)
    flow = CacheData(ds)
    list(itertools.islice(flow, 5))  # its end was not seen
    assert len(list(flow)) == 5
    assert (ds.passes, ds.yielded) == (2, 10)
    list(flow)
    assert (ds.passes, ds.yielded) == (2, 10)


def test_of_two_first_passes_the_one_that_ends_first_is_kept():
    ds = counted(20)
    flow = CacheData(ds)
    one, two = iter(flow), iter(flow)
    begun = list(itertools.islice(one, 7))
    second = list(two)
    first = begun + list(one)
    assert first != second
    assert sorted(first) == sorted(second) == list(numbers(20))
    assert list(flow) == list(flow) == second
    assert ds.passes == 2


def test_shuffling_begins_with_the_second_pass():
    flow = CacheData(numbers(50), shuffle=True)
    first = list(flow)
    assert first == list(numbers(50))
    pairs = list(zip(flow, flow))  # two passes at the same time
    second, third = zip(*pairs)
    assert len({tuple(map(tuple, one_pass)) for one_pass in (first, second, third)}) == 3
    assert sorted(second) == sorted(third) == first


def test_reset_state_keeps_the_cache():
    ds = counted(5)
    flow = CacheData(ds)
    first = list(flow)
    flow.reset_state()
    assert list(flow) == first
    flow = TestDataSpeed(CacheData(ds), size=100)
    list(flow)
    list(flow)
    assert ds.passes == 2


def test_a_state_after_reset_state_is_that_of_the_cache():
    flow = CacheData(shuffled(9), shuffle=True)
    list(flow)
    flow.reset_state()
    twin = CacheData(shuffled(9), shuffle=True)
    twin.load_state_dict(flow.state_dict())
    for _ in range(3):
        assert list(twin) == list(flow)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("left", [0, 3])
@pytest.mark.parametrize("complete", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 4, 6])
def test_it_resumes_after_passes_that_were_left_and_reads_the_flow_once(
    shuffle, left, complete, count
):
    flow = CacheData(counted(6), shuffle)
    for _ in range(left):
        list(itertools.islice(flow, 2))
    for _ in range(complete):
        list(flow)
    going = iter(flow)
    list(itertools.islice(going, count))
    twin = CacheData(counted(6), shuffle)
    twin.reset_state()
    twin.load_state_dict(pickle.loads(pickle.dumps(flow.state_dict())))
    for original in going, flow, flow:
        assert list(twin) == list(original)
    assert (twin.ds.passes, twin.ds.yielded) == (1, 6)


def test_a_pass_may_be_longer_than_the_length():
    def make_flow():
        arrays = DataFromList([[np.zeros(1 + number % 2)] for number in range(2)], shuffle=False)
        return CacheData(BatchDataByShape(arrays, 2, 0, remainder=True))

    assert len(make_flow()) == 1
    check_resumes(make_flow, 2)


def test_only_what_is_shuffled_needs_a_seed(monkeypatch):
    monkeypatch.setattr("tensorpack.utils.rng._streams.seeded", False)
    assert CacheData(Of2017()).seeded
    assert not CacheData(Of2017(), shuffle=True).seeded
    assert not CacheData(shuffled(3)).seeded
    fix_rng_seed(0)
    assert CacheData(shuffled(3), shuffle=True).seeded
