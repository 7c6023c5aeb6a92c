"""A function in threads: what comes out is what went in, in order or as it comes, and in bounds."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow import (
    DataFromGenerator,
    MapData,
    ProxyDataFlow,
    StateNotKept,
)
from tensorpack.dataflow.threads import MultiThreadMapData, ThreadedMapData
from tests.contracts.dataflow import DataFlowContract, contract_of
from tests.dataflow.flows import numbers, shuffled
from tests.dataflow.process_functions import Unsized, odd, same, tenfold
from tests.dataflow.thread_functions import Watched, both_orders
from tests.processes import LONG


class TestInTheOrderOfCompletion(DataFlowContract):
    length = 9
    deterministic = False
    keeps_state = False

    def make_flow(self):
        return MultiThreadMapData(numbers(9), 3, tenfold, buffer_size=4)

    def test_without_a_state_it_says_so(self):
        flow = self.make_flow()
        for call in flow.state_dict, lambda: flow.load_state_dict({}):
            with pytest.raises(StateNotKept, match="keeps no state.*strict=True it keeps one"):
                call()


class TestOneThread(TestInTheOrderOfCompletion):
    deterministic = True

    def make_flow(self):
        return ThreadedMapData(numbers(9), 1, tenfold)


TestStrict = contract_of(
    lambda: MultiThreadMapData(numbers(9), 3, tenfold, buffer_size=4, strict=True), length=9
)
TestStrictFilter = contract_of(
    lambda: MultiThreadMapData(Unsized(shuffled(9)), 3, odd, buffer_size=2, strict=True),
    length=4,
    has_len=False,
    deterministic=False,
)


@settings(max_examples=150)
@given(
    size=st.integers(0, 30),
    num_thread=st.integers(1, 4),
    buffer_size=st.integers(1, 8),
    dropped=st.sets(st.integers(0, 4)),
    strict=st.booleans(),
)
def test_what_comes_out_is_what_went_in(size, num_thread, buffer_size, dropped, strict):
    def func(datapoint):
        return None if datapoint[0] % 5 in dropped else tenfold(datapoint)

    before = threading.enumerate()
    flow = MultiThreadMapData(numbers(size), num_thread, func, buffer_size, strict)
    expected = list(MapData(numbers(size), func))
    for _ in range(2):
        found = list(flow)
        assert (found if strict else sorted(found)) == expected
        assert threading.enumerate() == before


def test_what_is_done_first_comes_first():
    received = threading.Event()

    def func(datapoint):
        assert datapoint == [1] or received.wait(LONG)
        return datapoint

    datapoints = iter(MultiThreadMapData(numbers(2), 2, func))
    assert next(datapoints) == [1]
    received.set()
    assert list(datapoints) == [[0]]


class OneReader(ProxyDataFlow):
    """Fails if two threads use it at the same time, whether in one pass or in several."""

    def __init__(self, ds):
        super().__init__(ds)
        self._busy = threading.Lock()

    def __iter__(self):
        self._look()
        return map(self._look, self.ds)

    def _look(self, datapoint=None):
        assert self._busy.acquire(blocking=False), "two threads at a time"
        time.sleep(0)  # lets another thread run
        self._busy.release()
        return datapoint

    def state_dict(self):
        self._look()
        return {}


@both_orders
def test_the_flow_is_read_by_one_thread_at_a_time(strict):
    flow = MultiThreadMapData(OneReader(numbers(100)), 4, same, buffer_size=3, strict=strict)
    found = [datapoint for pair in zip(flow, flow) for datapoint in pair]
    assert sorted(found) == [[i // 2] for i in range(200)]


@both_orders
@pytest.mark.parametrize("num_thread", [1, 3])
@pytest.mark.parametrize("buffer_size", [1, 4])
def test_the_buffer_is_filled_and_no_more_than_that(strict, num_thread, buffer_size):
    ds = Watched(buffer_size, 20)
    flow = MultiThreadMapData(ds, num_thread, same, buffer_size=buffer_size, strict=strict)
    assert list(ds.consume(flow, 20)) == []


def test_a_state_may_be_loaded_into_a_flow_that_is_in_use():
    flow = MultiThreadMapData(numbers(9), 2, tenfold, strict=True)
    start = flow.state_dict()
    going = iter(flow)
    next(going)
    flow.load_state_dict(start)
    assert flow.state_dict()["ds"]["count"] == 0
    going.close()
    assert flow.state_dict()["ds"]["count"] == 0
    assert list(flow) == [[10 * i] for i in range(9)]


# Arguments
def test_seeded_only_if_the_order_is():
    ds = DataFromGenerator(lambda: iter([[1]]))
    assert not MultiThreadMapData(ds, 2, same).seeded
    assert MultiThreadMapData(ds, 1, same).seeded
    assert MultiThreadMapData(ds, 2, same, strict=True).seeded

    class Unseeded(ProxyDataFlow):
        seeded = False

    assert not MultiThreadMapData(Unseeded(ds), 1, same, strict=True).seeded
