"""A function in processes: what comes out is what went in, and processes outlive its errors."""

import gc
import itertools
import multiprocessing
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow import (
    DataFromGenerator,
    DataFromList,
    MapData,
    RepeatedData,
    StateNotKept,
)
from tensorpack.dataflow.process_map import MultiProcessMapData, MultiProcessMapDataZMQ
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow import process_functions as functions
from tests.dataflow.process_flows import ContractOfProcesses, closing, passes, seeded_passes
from tests.dataflow.process_functions import Plain, Ragged, Unsized, numbers
from tests.processes import LONG, open_files
from tests.tiers import first_fast

pytestmark = pytest.mark.usefixtures("own_streams")

both_orders = pytest.mark.parametrize("strict", [False, True], ids=["as they come", "strict"])


def mapped(ds, func=functions.tenfold, num_proc=2, **options):
    options.setdefault("start_method", "fork")
    options.setdefault("buffer_size", 8)
    return MultiProcessMapData(ds, num_proc, func, **options)


class TestAsTheyCome(ContractOfProcesses):
    length = 7
    deterministic = False
    keeps_state = False

    def make_flow(self):
        return mapped(numbers(7))


class TestStrict(DataFlowContract):
    length = 7

    def make_flow(self):
        return mapped(numbers(7), strict=True)


class TestStrictFilter(ContractOfProcesses):
    length = 4
    has_len = False
    deterministic = False

    def make_flow(self):
        ds = Unsized(numbers(9, shuffle=True))
        return mapped(ds, functions.odd, buffer_size=3, strict=True)


class TestStrictWithRandomNumbers(ContractOfProcesses):
    length = 6
    deterministic = False

    def make_flow(self):
        return mapped(RepeatedData(numbers(3, True), 2), functions.drawn, strict=True)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    size=st.integers(0, 30),
    num_proc=st.integers(1, 3),
    buffer_size=st.integers(1, 8),
    buffer_bytes=st.sampled_from([1, 5000, 2**30]),
    dropped=st.booleans(),
    strict=st.booleans(),
)
def test_what_comes_out_is_what_went_in(size, num_proc, buffer_size, buffer_bytes, dropped, strict):
    func = functions.not_of_three if dropped else functions.tenfold
    ds = numbers(size)
    expected = list(MapData(ds, func))
    options = {"buffer_size": buffer_size, "buffer_bytes": buffer_bytes, "strict": strict}
    for datapoints in passes(mapped(ds, func, num_proc, **options)):
        assert (datapoints if strict else sorted(datapoints)) == expected


@pytest.mark.parametrize("num_proc", first_fast([2, 3]))
@pytest.mark.parametrize("func", [functions.drawn, functions.not_of_three, functions.arrays_of])
def test_the_number_of_processes_does_not_matter(num_proc, func):
    expected, datapoints = (
        seeded_passes(lambda n=n: mapped(numbers(11, True), func, n, strict=True, buffer_size=n))
        for n in (1, num_proc)
    )
    assert_same(datapoints, expected)
    if func is functions.drawn:
        assert len({dp[1] for dp in expected[0] + expected[1]}) == 22


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_the_start_method_does_not_matter(method):
    expected, datapoints = (
        seeded_passes(
            lambda m=m: mapped(numbers(11, True), functions.drawn, strict=True, start_method=m)
        )
        for m in ("fork", method)
    )
    assert_same(datapoints, expected)


def test_the_flow_is_iterated_here_and_the_function_is_not_called_here():
    pids = []

    def generate():
        for i in range(10):
            pids.append(os.getpid())
            yield [i]

    with closing(mapped(DataFromGenerator(generate), functions.in_process)) as flow:
        workers = {pid for _, pid in flow}
    assert set(pids) == {os.getpid()}
    assert os.getpid() not in workers and 1 <= len(workers) <= 2


def test_what_is_done_first_comes_first_unless_strict():
    context = multiprocessing.get_context("fork")
    for strict in False, True:
        go_on = context.Event()

        def func(datapoint, go_on=go_on):
            assert datapoint[0] == 1 or go_on.wait(LONG)
            return datapoint

        with closing(mapped(numbers(2), func, strict=strict)) as flow:
            if strict:
                go_on.set()
                assert list(flow) == [[0], [1]]
            else:
                datapoints = iter(flow)
                assert next(datapoints) == [1]
                go_on.set()
                assert list(datapoints) == [[0]]


@both_orders
@pytest.mark.parametrize("buffer_size", [1, 5])
def test_no_more_is_taken_from_the_flow_than_asked_for(strict, buffer_size):
    taken = []

    def generate():
        for i in range(40):
            taken.append(i)
            yield [i]

    ds = DataFromGenerator(generate)
    with closing(mapped(ds, buffer_size=buffer_size, strict=strict)) as flow:
        for given_out, _ in enumerate(flow):
            assert len(taken) - given_out <= buffer_size
    assert given_out == 39


class TestErrors:
    @both_orders
    @pytest.mark.parametrize("number", [0, 5, 9])
    def test_that_of_the_function_is_raised_and_the_processes_continue(self, strict, number):
        func = functions.At(number, functions.fail)
        with closing(mapped(numbers(10), func, strict=strict)) as flow:
            for _ in range(3):
                datapoints = []
                with pytest.raises(LookupError, match="no such datapoint") as caught:
                    datapoints.extend(flow)
                assert "in fail" in str(caught.value.__cause__)
                if strict:
                    datapoints = list(itertools.islice(flow, number))
                    assert datapoints == [[i] for i in range(number)]
            assert len(multiprocessing.active_children()) == 2

    def test_in_a_strict_flow_it_comes_at_its_place(self):
        func = functions.At(6, functions.fail)
        with closing(mapped(numbers(10), func, strict=True)) as flow:
            going = iter(flow)
            assert list(itertools.islice(going, 6)) == [[i] for i in range(6)]
            state = flow.state_dict()
            with pytest.raises(LookupError):
                next(going)
            assert flow.state_dict()["number"] == state["number"] == 6
            assert list(going) == []

    @both_orders
    def test_that_of_the_flow_comes_behind_all_before_it(self, strict):
        def generate():
            yield from ([i] for i in range(7))
            raise OSError("the file is gone")

        with closing(mapped(DataFromGenerator(generate), strict=strict)) as flow:
            for _ in range(2):
                going, datapoints = iter(flow), []
                with pytest.raises(OSError, match="the file is gone"):
                    for datapoint in going:
                        datapoints.append(datapoint)
                assert sorted(datapoints) == [[10 * i] for i in range(7)]


def test_there_is_no_state_without_one_of_the_flow():
    with closing(mapped(Plain(5), functions.same, strict=True)) as flow:
        for _ in range(2):
            going = iter(flow)
            with pytest.raises(StateNotKept, match="Plain keeps no state"):
                flow.state_dict()
            next(going)
            with pytest.raises(StateNotKept, match="Plain keeps no state"):
                flow.state_dict()
        assert len(list(flow)) == 5


class TestData:
    def test_a_datapoint_is_the_functions_own_and_its_arrays_are_not(self):
        ds = DataFromList([[1, np.zeros(1000)]] * 4, shuffle=False)
        with closing(mapped(ds, functions.spoiled)) as flow:
            assert [dp[0] for dp in flow] == [-1] * 4
        assert ds.lst[0][0] == 1
        with closing(mapped(ds, functions.written)) as flow:
            with pytest.raises(ValueError, match="read-only"):
                list(flow)

    def test_all_kinds_of_datapoints(self):
        with closing(mapped(Ragged(60), functions.same, strict=True, buffer_size=20)) as flow:
            assert_same(list(flow), list(Ragged(60)))

    def test_a_function_may_keep_everything(self):
        ds = MapData(numbers(100), functions.whole_array)
        with closing(mapped(ds, functions.Keeps(), 1, buffer_bytes=100000)) as flow:
            assert [n for (n,) in flow] == list(range(1, 101))


def test_processes_end_although_the_flow_cannot_be_closed(monkeypatch):
    def refuse(flow):
        raise ConnectionError("of the flow")

    monkeypatch.setattr(Plain, "close", refuse)
    flow = mapped(Plain(3))
    flow.reset_state()
    assert len(multiprocessing.active_children()) == 2
    with pytest.raises(ConnectionError, match="of the flow"):
        flow.close()
    assert multiprocessing.active_children() == []


def test_64_processes_have_room_below_the_usual_limit_and_give_it_back():
    ds = MapData(numbers(200), functions.whole_array)
    flow = mapped(ds, functions.same, num_proc=64, buffer_size=2000)
    passes(mapped(numbers(1)), 1)  # starts the helper process of multiprocessing
    gc.collect()  # of tests before
    before = open_files()
    with closing(flow):
        assert len(list(flow)) == 200
        most = 64 * (4 * flow._limits.slots + 9)  # 9: pipes of the channels, worker, and process
        assert len(open_files()) - len(before) <= most < 1024 - 100
    assert open_files() == before


def test_both_names_and_the_default_of_a_process_for_each_core():
    assert MultiProcessMapDataZMQ is MultiProcessMapData
    with closing(MultiProcessMapData(numbers(3), map_func=functions.same)) as flow:
        assert flow.num_proc == len(os.sched_getaffinity(0))
        assert len(flow) == 3
