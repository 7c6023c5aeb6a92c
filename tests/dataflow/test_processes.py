"""Whole flows in processes: what comes out is what the flow has, in whatever order it may come."""

import itertools
import multiprocessing
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow import (
    BatchData,
    FakeData,
    LocallyShuffleData,
    MapData,
    MultiProcessMapData,
    MultiThreadMapData,
    MultiThreadRunner,
    RepeatedData,
)
from tensorpack.dataflow.processes import (
    MultiProcessPrefetchData,
    MultiProcessRunner,
    MultiProcessRunnerZMQ,
    PrefetchData,
    PrefetchDataZMQ,
    PrefetchOnGPUs,
)
from tensorpack.utils.rng import _streams, fix_rng_seed
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow import process_functions as functions
from tests.dataflow.process_flows import (
    FORKED,
    ContractOfProcesses,
    closing,
    mixture,
    passes,
    seeded_passes,
    strict,
)
from tests.dataflow.process_functions import Endless, Noisy, Plain, Ragged, Slow, Unsized, numbers
from tests.processes import LONG, in_thread

pytestmark = pytest.mark.usefixtures("own_streams")


class TestStrictShuffled(DataFlowContract):
    length = 7
    deterministic = False

    def make_flow(self):
        return strict(numbers(7, shuffle=True), 2)


@pytest.mark.slow
class TestStrictWithThreeProcesses(ContractOfProcesses):
    length = 4
    has_len = False
    deterministic = False

    def make_flow(self):
        return strict(MapData(Unsized(numbers(9, shuffle=True)), functions.odd), 3, 3)


class TestStrictBatches(ContractOfProcesses):
    length = 3

    def make_flow(self):
        ds = MapData(numbers(13), functions.arrays_of)
        return strict(BatchData(ds, 5, remainder=True), 2)


@pytest.mark.slow
class TestStrictWithoutAState(ContractOfProcesses):
    length = 5

    def make_flow(self):
        return strict(Plain(5), 2, 2)


class TestStrictWithRandomNumbersOfItsOwn(ContractOfProcesses):
    length = 6
    deterministic = False

    def make_flow(self):
        return strict(Noisy(RepeatedData(Noisy(numbers(3, shuffle=True)), 2)), 2)


@pytest.mark.slow
class TestStrictWithoutAnEnd(ContractOfProcesses):
    has_len = False

    def make_flow(self):
        return strict(RepeatedData(numbers(4), -1), 2)


class TestMixture(ContractOfProcesses):
    length = 6
    deterministic = False
    independent = False
    keeps_state = False

    def make_flow(self):
        return mixture(numbers(6, shuffle=True))


@pytest.mark.one_row
@pytest.mark.slow
class TestMixtureWithoutAnEnd(TestMixture):
    length = None
    has_len = False

    def make_flow(self):
        return mixture(Endless(), 2)


AT_17 = functions.Drops(17)
FLOWS = {
    "list": lambda: numbers(11, shuffle=True),
    "map": lambda: MapData(numbers(11, shuffle=True), functions.drawn),
    "drops": lambda: MapData(
        MapData(numbers(20, shuffle=True), functions.not_of_three), functions.drawn
    ),
    "batches": lambda: BatchData(MapData(numbers(11, shuffle=True), functions.drawn), 3),
    "batches of what is left": lambda: BatchData(
        MapData(MapData(numbers(40, shuffle=True), functions.not_of_three), functions.drawn), 4
    ),
    "batches with a late drop": lambda: MapData(
        BatchData(MapData(MapData(numbers(23), AT_17), functions.drawn), 3, True), functions.drawn
    ),
    "a map of batches": lambda: MapData(
        BatchData(MapData(numbers(12, shuffle=True), functions.drawn), 2), functions.drawn
    ),
    "threads": lambda: MapData(
        MultiThreadMapData(numbers(11, shuffle=True), 3, functions.late), functions.drawn
    ),
    "batches of threads": lambda: BatchData(
        MultiThreadMapData(numbers(11, shuffle=True), 3, functions.late), 2
    ),
    "a shuffle of threads": lambda: LocallyShuffleData(
        MultiThreadMapData(numbers(11), 3, functions.late), 4
    ),
    "a user's": lambda: MapData(Noisy(Plain(7)), functions.drawn),
    "random data": lambda: FakeData([[3], [200]], 8),
    "ragged": lambda: Ragged(9),
    "nothing": lambda: MapData(numbers(5), functions.nothing),
    "empty": lambda: numbers(0),
}


class TestStrict:
    @pytest.mark.parametrize("name", FLOWS)
    def test_the_number_of_processes_does_not_matter(self, name):
        expected = seeded_passes(lambda: strict(FLOWS[name](), 1))
        for num_proc, num_prefetch in (2, 1), (3, 20):
            found = seeded_passes(lambda n=num_proc, k=num_prefetch: strict(FLOWS[name](), n, k))
            assert_same(found, expected)

    def test_the_first_pass_is_not_the_second(self):
        first, second = seeded_passes(strict, MapData(Plain(5), functions.drawn))
        assert len({dp[2] for dp in first + second}) == 10
        first, second = seeded_passes(strict, numbers(20, shuffle=True))
        assert first != second and sorted(first) == sorted(second) == list(numbers(20))

    def test_another_seed_gives_other_data(self):
        found = []
        for seed in 1, 2, 1:
            fix_rng_seed(seed)
            found.append(passes(strict(MapData(numbers(20, shuffle=True), functions.drawn))))
        assert_same(found[0], found[2])
        assert found[0][0][0] != found[1][0][0]
        assert {dp[1] for dp in found[0][0]}.isdisjoint({dp[1] for dp in found[1][0]})

    def test_processes_share_the_work_of_maps(self):
        with closing(strict(MapData(numbers(20), functions.in_process), 2)) as flow:
            found = list(flow)
        workers = [pid for _, pid in found]
        assert len(set(workers[::2])) == len(set(workers[1::2])) == 1
        assert workers[0] != workers[1] and os.getpid() not in workers

    def test_an_order_that_depends_on_threads_is_refused(self):
        mix = MultiThreadRunner(lambda: numbers(5), 2, 2)
        with closing(strict(MapData(mix, functions.same), 2)) as flow:
            with pytest.raises(RuntimeError, match="The order of MapData is not the same in all"):
                next(iter(flow))
        with closing(strict(mix, 1)) as flow:
            assert len(list(flow)) == 5

    @pytest.mark.parametrize("num_proc", [1, 2, 3])
    @pytest.mark.parametrize(
        "make",
        [
            MapData,
            lambda ds, func: MultiThreadMapData(ds, 2, func),
            lambda ds, func: MultiProcessMapData(ds, 2, func, strict=True, **FORKED),
        ],
        ids=["map", "threads", "processes inside"],
    )
    def test_they_share_the_maps_of_batches(self, make, num_proc):
        made = multiprocessing.get_context("fork").Value("i", 0)

        def count(datapoint):
            with made.get_lock():
                made.value += 1
            return functions.in_process(datapoint)

        with closing(strict(BatchData(make(numbers(60), count), 5), num_proc)) as flow:
            found = list(flow)
        assert np.concatenate([numbers for numbers, _ in found]).tolist() == list(range(60))
        assert made.value == 60
        assert len({pid for _, pids in found for pid in pids.tolist()}) == num_proc

    @pytest.mark.slow
    def test_a_state_continues_behind_a_dropped_datapoint(self):
        for taken in range(9):
            fix_rng_seed(3)
            expected = passes(strict(FLOWS["batches with a late drop"](), 2), 2)
            fix_rng_seed(3)
            with closing(strict(FLOWS["batches with a late drop"](), 2)) as flow:
                flow.reset_state()
                begun = list(itertools.islice(flow, taken))
                state = flow.state_dict()
            with closing(strict(FLOWS["batches with a late drop"](), 3)) as other:
                other.load_state_dict(state)
                assert_same([begun + list(other), list(other)], expected)

    def test_a_state_from_before_batches_were_shared(self):
        ds = BatchData(MapData(numbers(30), functions.not_of_three), 4)
        with closing(strict(ds, 2)) as flow:
            expected = list(flow)
            begun = list(itertools.islice(flow, 2))
            state = flow.state_dict()
            assert state.pop("blocks") is False
        with closing(strict(ds, 3)) as other:
            other.load_state_dict(state)
            assert_same(begun + list(other), expected)

    def test_interleaved_passes_have_processes_of_their_own(self):
        with closing(strict(numbers(30), 2, 2)) as flow:
            pairs = list(zip(flow, flow))
            assert pairs == [([i], [i]) for i in range(30)]
            assert len(multiprocessing.active_children()) == 4
            assert list(flow) == [[i] for i in range(30)]
            assert len(multiprocessing.active_children()) == 4

    def test_the_state_continues_with_other_processes(self):
        make = FLOWS["drops"]
        fix_rng_seed(3)
        expected = passes(strict(make(), 2), 3)
        fix_rng_seed(3)
        with closing(strict(make(), 2)) as flow:
            flow.reset_state()
            first = list(flow)
            going = iter(flow)
            begun = list(itertools.islice(going, 4))
            state = flow.state_dict()
        with closing(strict(make(), 3)) as other:
            other.load_state_dict(state)
            assert_same([first, begun + list(other), list(other)], expected)

    def test_the_state_survives_a_fork_and_a_pickle(self):
        with closing(strict(numbers(9), 2)) as flow:
            going = iter(flow)
            next(going)
            state = flow.state_dict()
        flow = strict(numbers(9), 2)
        flow.load_state_dict(state)
        with closing(pickle.loads(pickle.dumps(flow))) as twin:
            assert list(twin) == [[i] for i in range(1, 9)]

    def test_a_state_that_does_not_fit_the_flow(self):
        with closing(strict(numbers(9), 2)) as flow:
            list(flow)
            state = flow.state_dict()
        with closing(strict(numbers(8), 2)) as other:
            other.load_state_dict(state)
            assert list(other) == []
            with pytest.raises(ValueError, match="its list had 9 datapoints"):
                list(other)

    @pytest.mark.slow
    @settings(max_examples=25)
    @given(
        size=st.integers(0, 30),
        num_proc=st.integers(1, 3),
        num_prefetch=st.integers(1, 8),
        func=st.sampled_from([functions.tenfold, functions.not_of_three, AT_17]),
        batch=st.integers(0, 4),
        remainder=st.booleans(),
    )
    def test_what_comes_out_is_what_went_in(
        self, size, num_proc, num_prefetch, func, batch, remainder
    ):
        ds = MapData(Unsized(numbers(size)), func)
        ds = BatchData(ds, batch, remainder) if batch else ds
        expected = list(ds)
        assert_same(passes(strict(ds, num_proc, num_prefetch)), [expected, expected])


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_the_start_method_does_not_matter(method):
    make = FLOWS["drops"]
    expected = seeded_passes(lambda: strict(make(), 2))
    found = seeded_passes(lambda: strict(make(), 2, start_method=method))
    assert_same(found, expected)


class TestMixtures:
    def test_every_process_goes_through_the_flow_again_and_again(self):
        with closing(mixture(MapData(numbers(6), functions.in_process), 2)) as flow:
            found = list(itertools.chain(*itertools.repeat(flow, 20)))
        assert len(found) == 120
        for worker in {pid for _, pid in found}:
            sent = [i for i, pid in found if pid == worker]
            assert sent == [n % 6 for n in range(len(sent))]

    def test_passes_continue_one_another(self):
        with closing(mixture(Plain(5), 1)) as flow:
            assert next(iter(flow))[0] == 0
            assert [i for i, _ in flow] == [1, 2, 3, 4, 0]

    def test_processes_draw_different_numbers(self):
        ds = MapData(Noisy(numbers(40)), functions.drawn)
        with closing(mixture(ds, 3)) as flow:
            found = list(flow)
        assert len({dp[2] for dp in found}) == len({dp[3] for dp in found}) == 40
        assert len({dp[1] for dp in found}) > 10

    def test_one_process_gives_the_same_again(self):
        make = lambda: mixture(MapData(Noisy(numbers(9, True)), functions.drawn), 1)  # noqa: E731
        assert_same(seeded_passes(make), seeded_passes(make))

    def test_reset_state_gives_new_random_streams(self):
        with closing(mixture(MapData(numbers(5), functions.drawn), 1)) as flow:
            flow.reset_state()
            first = list(flow)
            flow.reset_state()
            second = list(flow)
        assert [dp[0] for dp in first] == [dp[0] for dp in second] == list(range(5))
        assert {dp[1] for dp in first}.isdisjoint(dp[1] for dp in second)

    def test_one_that_drops_everything_is_an_error(self):
        with closing(mixture(MapData(numbers(3), functions.nothing), 1)) as flow:
            with pytest.raises(RuntimeError, match="MapData yielded nothing in pass 1"):
                list(flow)

    def test_threads_share_a_mixture(self):
        with closing(mixture(numbers(1000), 1)) as flow:
            found = [[], []]
            threads = [in_thread(each.extend, iter(flow)) for each in found]
            for thread, errors in threads:
                thread.join(LONG)
                assert errors == []
        assert sorted(sum(found, [])) == sorted([[i] for i in range(1000)] * 2)


@pytest.mark.parametrize(
    "kind, options, error, message",
    [
        (MultiProcessRunner, {"num_prefetch": 0}, ValueError, "num_prefetch must be at least 1"),
        (MultiProcessRunner, {"num_prefetch": 3.0}, TypeError, "num_prefetch must be an integer"),
        (MultiProcessRunnerZMQ, {"num_proc": 0}, ValueError, "RunnerZMQ: num_proc must be at"),
        (MultiProcessRunnerZMQ, {"buffer_bytes": 0}, ValueError, "buffer_bytes must be a"),
        (MultiProcessRunnerZMQ, {"buffer_bytes": None}, TypeError, "buffer_bytes must be a number"),
        (MultiProcessRunnerZMQ, {"start_method": "x"}, ValueError, "start_method is one of"),
        (MultiProcessRunnerZMQ, {"num_proc": "2"}, TypeError, "num_proc must be an integer, but"),
        (MultiProcessRunnerZMQ, {"hwm": 2.5}, TypeError, "hwm must be an integer, but got 2.5"),
        (PrefetchOnGPUs, {"gpus": []}, ValueError, "at least one GPU"),
        (PrefetchOnGPUs, {"gpus": [0], "pipedir": "/tmp"}, ValueError, "leave pipedir='/tmp' out"),
    ],
)
def test_wrong_arguments(kind, options, error, message):
    with pytest.raises(error, match=message):
        kind(numbers(3), **options)


def test_numbers_of_numpy_and_a_size_that_is_a_float():
    one = np.int64(1)
    with closing(MultiProcessRunner(numbers(3), one, one, buffer_bytes=1e6)) as flow:
        assert len(list(flow)) == 3
    ds = MapData(numbers(50), functions.whole_array)
    with closing(strict(ds, 1, 200, buffer_bytes=1e6)) as flow:
        assert len(list(flow)) == 50


def test_old_names():
    assert PrefetchData is MultiProcessPrefetchData is MultiProcessRunner
    assert PrefetchDataZMQ is MultiProcessRunnerZMQ
    with closing(PrefetchData(numbers(3), nr_prefetch=4, nr_proc=2)) as flow:
        assert (flow.num_proc, len(flow)) == (2, 3)
    with closing(PrefetchDataZMQ(numbers(3), nr_proc=3)) as flow:
        assert flow.num_proc == 3


def test_seeded_is_what_comes_again():
    fix_rng_seed(1)
    assert strict(numbers(3), 2).seeded
    assert mixture(numbers(3), 1).seeded
    assert not mixture(numbers(3), 2).seeded
    vars(_streams)["seeded"] = False
    assert not strict(numbers(3), 2).seeded


def test_a_new_pass_interrupts_a_slow_one():
    """At the next datapoint, not when there is no more room for another one."""
    with closing(strict(Slow(), 1, 1000)) as flow:
        for _ in range(3):
            assert list(itertools.islice(flow, 2)) == [[0], [1]]


def test_threads_do_not_see_the_pass_of_others():
    with closing(strict(numbers(200), 1, 4)) as flow:
        found = [[], [], []]
        threads = [in_thread(each.extend, iter(flow)) for each in found]
        for thread, errors in threads:
            thread.join(LONG)
            assert errors == []
        assert found == [[[i] for i in range(200)]] * 3
