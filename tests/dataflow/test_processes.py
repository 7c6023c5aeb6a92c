"""Whole flows in processes: what comes out is what the flow has, and whose memory it is in."""

import contextlib
import gc
import itertools
import multiprocessing
import os
import pickle
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow import (
    BatchData,
    DataFlow,
    DataFlowTerminated,
    DataFromList,
    FakeData,
    MapData,
    RepeatedData,
)
from tensorpack.dataflow._processes import receiver
from tensorpack.dataflow._processes.worker_seeds import DatapointSeeds
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
from tests.dataflow.helpers import LONG, in_thread, stays_as_it_is, wait_until
from tests.dataflow.process_functions import (
    Endless,
    Noisy,
    Plain,
    Ragged,
    Same,
    Slow,
    Unsized,
    numbers,
)

FORKED = {"start_method": "fork"}
not_in_a_copy_of_3_7 = pytest.mark.skipif(
    sys.version_info < (3, 8), reason="its semaphore tracker fails in a forked copy"
)


def strict(ds, num_proc=2, num_prefetch=8, **options):
    return MultiProcessRunner(ds, num_prefetch, num_proc, strict=True, **{**FORKED, **options})


def mixture(ds, num_proc=2, num_prefetch=8, **options):
    return MultiProcessRunner(ds, num_prefetch, num_proc, **{**FORKED, **options})


@contextlib.contextmanager
def closing(flow):
    try:
        yield flow
    finally:
        flow.close()


@pytest.fixture(autouse=True)
def own_streams():
    """Leaves the random streams of other tests alone."""
    before = dict(vars(_streams))
    yield
    vars(_streams).update(before)


class ContractOfProcesses(DataFlowContract):
    """The contract with fewer cases, for each of them starts processes."""

    sample = 6

    def _counts(self):
        return [1, self.expected_length + 1] if self.keeps_state else []


class TestStrictWithOneProcess(ContractOfProcesses):
    length = 7

    def make_flow(self):
        return strict(numbers(7), 1)


class TestStrictShuffled(DataFlowContract):
    length = 7
    deterministic = False

    def make_flow(self):
        return strict(numbers(7, shuffle=True), 2)


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


class TestMixtureOfOne(TestMixture):
    def make_flow(self):
        return MultiProcessRunnerZMQ(numbers(6), **FORKED)


@pytest.mark.slow
class TestMixtureWithoutAnEnd(TestMixture):
    length = None
    has_len = False

    def make_flow(self):
        return mixture(Endless(), 2)


@pytest.mark.slow
class TestStrictZMQ(ContractOfProcesses):
    length = 5

    def make_flow(self):
        return MultiProcessRunnerZMQ(numbers(5), 2, 4, strict=True, **FORKED)


def passes(flow, count=2):
    """Resets a flow and goes through it; closes it."""
    with closing(flow):
        flow.reset_state()
        return [list(flow) for _ in range(count)]


def seeded_passes(make, *args, **options):
    fix_rng_seed(7)
    return passes(make(*args, **options))


FLOWS = {
    "list": lambda: numbers(11, shuffle=True),
    "map": lambda: MapData(numbers(11, shuffle=True), functions.drawn),
    "drops": lambda: MapData(
        MapData(numbers(20, shuffle=True), functions.not_of_three), functions.drawn
    ),
    "batches": lambda: BatchData(MapData(numbers(11, shuffle=True), functions.drawn), 3),
    "a map of batches": lambda: MapData(
        BatchData(MapData(numbers(12, shuffle=True), functions.drawn), 2), functions.drawn
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

    @pytest.mark.parametrize("name", ["list", "batches", "ragged", "empty"])
    def test_a_pass_is_one_of_the_flow(self, name):
        for found in passes(strict(FLOWS[name](), 2)):
            expected = list(FLOWS[name]())
            assert len(found) == len(expected)
        if name == "ragged":
            assert_same(found, expected)
        if name == "list":
            assert sorted(found) == sorted(expected)

    def test_the_first_pass_is_not_the_second(self):
        first, second = seeded_passes(strict, MapData(Plain(5), functions.drawn))
        assert len({dp[2] for dp in first + second}) == 10
        first, second = seeded_passes(strict, numbers(20, shuffle=True))
        assert first != second and sorted(first) == sorted(second)

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

    @pytest.mark.parametrize("taken", [0, 1, 4])
    def test_a_pass_that_was_left_leaves_nothing_in_the_next(self, taken):
        with closing(strict(numbers(50), 2)) as flow:
            for _ in range(3):
                assert list(itertools.islice(flow, taken)) == [[i] for i in range(taken)]
            assert list(flow) == [[i] for i in range(50)]

    def test_a_pass_that_was_opened_and_left(self):
        with closing(strict(numbers(5), 2)) as flow:
            iter(flow)
            assert list(flow) == [[i] for i in range(5)]

    def test_interleaved_passes_have_processes_of_their_own(self):
        with closing(strict(numbers(30), 2, 2)) as flow:
            pairs = list(zip(flow, flow))
            assert pairs == [([i], [i]) for i in range(30)]
            assert len(multiprocessing.active_children()) == 4
            assert list(flow) == [[i] for i in range(30)]
            assert len(multiprocessing.active_children()) == 4

    def test_a_flow_without_a_length_ends(self):
        with closing(strict(Unsized(numbers(5)))) as flow:
            assert len(list(flow)) == 5

    def test_datapoints_may_be_dropped_at_the_end(self):
        flow = strict(MapData(numbers(30), functions.At(-1, None)), 3)
        assert len(passes(flow)[0]) == 30
        flow = strict(MapData(numbers(31), functions.odd), 3, 3)
        assert passes(flow)[1] == [[i] for i in range(1, 31, 2)]

    def test_the_state_goes_on_with_other_processes(self):
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
            with pytest.raises(ValueError, match="state of a list of 9 datapoints"):
                list(other)

    @settings(max_examples=25)
    @given(
        size=st.integers(0, 30),
        num_proc=st.integers(1, 3),
        num_prefetch=st.integers(1, 8),
        dropped=st.booleans(),
    )
    def test_what_comes_out_is_what_went_in(self, size, num_proc, num_prefetch, dropped):
        func = functions.not_of_three if dropped else functions.tenfold
        ds = MapData(numbers(size), func)
        expected = list(ds)
        assert passes(strict(ds, num_proc, num_prefetch)) == [expected, expected]


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

    def test_without_a_length_a_pass_has_no_end(self):
        with closing(mixture(Unsized(numbers(3)), 1)) as flow:
            assert len(list(itertools.islice(flow, 50))) == 50

    def test_an_empty_flow(self):
        with closing(mixture(numbers(0))) as flow:
            assert list(flow) == []

    def test_one_that_drops_everything_is_an_error(self):
        with closing(mixture(MapData(numbers(3), functions.nothing), 1)) as flow:
            with pytest.raises(RuntimeError, match="MapData yielded nothing in a whole pass"):
                list(flow)

    def test_threads_share_a_mixture(self):
        with closing(mixture(numbers(1000), 1)) as flow:
            found = [[], []]
            threads = [in_thread(each.extend, iter(flow)) for each in found]
            for thread, errors in threads:
                thread.join(LONG)
                assert errors == []
        assert sorted(sum(found, [])) == sorted([[i] for i in range(1000)] * 2)


class TestMemory:
    """Nothing that was yielded changes, whoever keeps it."""

    @pytest.mark.parametrize("make", [strict, mixture])
    @pytest.mark.parametrize("num_prefetch", [1, 8])
    @pytest.mark.parametrize("buffer_bytes", [1, 40000, 2**30])
    def test_a_consumer_may_keep_everything(self, make, num_prefetch, buffer_bytes):
        ds = MapData(numbers(200), functions.whole_array)
        with closing(make(ds, 1, num_prefetch, buffer_bytes=buffer_bytes)) as flow:
            found = list(itertools.islice(flow, 200 if num_prefetch > 1 else 30))
        for number, (array,) in enumerate(found):
            assert array.min() == array.max() == number % 256

    def test_arrays_go_to_tensorflow_without_a_copy(self):
        ds = MapData(numbers(60), functions.arrays_of)
        with closing(strict(ds, 2, 8)) as flow:
            for number, large, small, other in flow:
                for array in large, small, other:
                    assert stays_as_it_is(array)
                    assert array.nbytes <= 512 or array.ctypes.data % 64 == 0
                assert (large == number).all() and other[-1] == 299

    def test_batches_do_too(self):
        ds = BatchData(MapData(numbers(60), functions.whole_array), 6)
        with closing(strict(ds)) as flow:
            for number, (batch,) in enumerate(flow):
                assert stays_as_it_is(batch) and batch.ctypes.data % 64 == 0
                assert batch[:, 0].tolist() == list(range(number * 6, number * 6 + 6))

    def test_descriptors_and_processes_are_gone_after_close(self):
        before = sorted(os.listdir("/proc/self/fd")), os.listdir("/dev/shm")
        flow = strict(MapData(numbers(30), functions.whole_array), 2)
        going = iter(flow)
        kept = [next(going) for _ in range(9)]
        list(zip(flow, flow))
        flow.close()
        assert multiprocessing.active_children() == []
        with pytest.raises(DataFlowTerminated):
            list(going)
        assert [array[0] for (array,) in kept] == list(range(9))
        kept.clear()
        gc.collect()
        assert (sorted(os.listdir("/proc/self/fd")), os.listdir("/dev/shm")) == before

    @pytest.mark.parametrize("make", [strict, mixture])
    def test_a_flow_that_is_dropped_ends_its_processes(self, make):
        flow = make(numbers(30), 2)
        assert next(iter(flow)) == [0]
        assert len(multiprocessing.active_children()) == 2
        del flow
        assert multiprocessing.active_children() == []

    def test_a_pass_outlives_the_name_of_its_flow(self):
        going = iter(strict(numbers(30), 2))
        assert list(going) == [[i] for i in range(30)]
        del going
        assert multiprocessing.active_children() == []

    @pytest.fixture
    def copies(self, monkeypatch):
        """Grows with each array that is copied."""
        copies = []
        monkeypatch.setattr(receiver, "_private", lambda array: copies.append(1) or array.copy())
        return copies

    def test_no_copies_for_a_consumer_that_keeps_one(self, copies):
        ds = MapData(numbers(300), functions.whole_array)
        for make in strict, mixture:
            with closing(make(ds, 2, 8)) as flow:
                assert sum(1 for _ in flow) == 300
        assert copies == []

    @pytest.mark.parametrize("num_prefetch", [2, 8])
    def test_no_copies_for_a_consumer_that_lets_go(self, copies, num_prefetch):
        ds = MapData(numbers(100), functions.whole_array)
        for make in strict, mixture:
            with closing(make(ds, 1, num_prefetch)) as flow:
                going = iter(flow)
                for _ in range(100):
                    next(going)
        assert copies == []


class TestProcesses:
    def test_they_are_started_once(self):
        with closing(strict(numbers(5), 2)) as flow:
            assert multiprocessing.active_children() == []
            flow.start_processes()
            workers = set(multiprocessing.active_children())
            assert len(workers) == 2
            flow.reset_state()
            flow.start_processes()
            list(flow)
            list(flow)
            assert set(multiprocessing.active_children()) == workers

    def test_reset_state_starts_them(self):
        with closing(mixture(numbers(5), 2)) as flow:
            flow.reset_state()
            assert len(multiprocessing.active_children()) == 2

    @pytest.mark.parametrize("make", [strict, mixture])
    def test_a_closed_flow_can_be_used_again(self, make):
        flow = make(numbers(5), 1)
        for _ in range(2):
            assert list(flow) == [[i] for i in range(5)]
            flow.close()
            flow.close()
            assert multiprocessing.active_children() == []
        flow.reset_state()
        assert list(flow) == [[i] for i in range(5)]
        flow.close()

    @pytest.mark.parametrize("make", [strict, mixture])
    def test_close_ends_a_pass_that_waits(self, make):
        flow = make(MapData(numbers(5), functions.At(0, functions.sleep)), 2)
        thread, errors = in_thread(next, iter(flow))
        assert wait_until(lambda: len(multiprocessing.active_children()) == 2)
        flow.close()
        thread.join(LONG)
        assert [type(error) for error in errors] == [DataFlowTerminated]
        assert multiprocessing.active_children() == []

    def test_a_pass_that_is_under_way_ends_after_close(self):
        with closing(mixture(Endless())) as flow:
            going = iter(flow)
            next(going)
            flow.close()
            with pytest.raises(DataFlowTerminated):
                for _ in going:
                    pass

    @not_in_a_copy_of_3_7
    def test_a_forked_copy_has_processes_of_its_own(self):
        with closing(strict(numbers(9), 2)) as flow:
            going = iter(flow)
            assert next(going) == [0]
            pid = os.fork()
            if not pid:
                try:
                    flow.close()  # not those of the original
                    if list(flow) == [[i] for i in range(9)]:
                        flow.close()
                        os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(pid, 0)[1] == 0
            assert list(going) == [[i] for i in range(1, 9)]

    @not_in_a_copy_of_3_7
    @pytest.mark.parametrize("make", [strict, mixture])
    def test_a_copy_in_a_process_of_multiprocessing(self, make):
        with closing(make(numbers(9), 1)) as flow:
            going = iter(flow)
            assert next(going) == [0]
            process = multiprocessing.get_context("fork").Process(target=_use, args=(flow,))
            process.start()
            process.join(LONG)
            assert process.exitcode == 0
            assert [next(going) for _ in range(8)] == [[i] for i in range(1, 9)]

    def test_a_flow_with_processes_cannot_be_inside_of_another(self):
        with closing(strict(mixture(numbers(3), 1), 1)) as flow:
            with pytest.raises(RuntimeError, match="cannot have processes of its own"):
                list(flow)

    def test_lambdas_can_be_forked(self):
        with closing(strict(MapData(numbers(3), lambda dp: [dp[0] + 1]))) as flow:
            assert list(flow) == [[1], [2], [3]]

    def test_otherwise_they_are_named(self):
        ds = MapData(MapData(numbers(3), lambda dp: dp), functions.same)
        with closing(strict(ds, start_method="forkserver")) as flow:
            with pytest.raises(TypeError, match=r"^ds\.ds\.func cannot be sent"):
                list(flow)
            with pytest.raises(TypeError, match=r"^ds\.ds\.func cannot be sent"):
                flow.reset_state()
        assert multiprocessing.active_children() == []

    def test_what_holds_the_flow_does_not_keep_it(self):
        class Dataset:
            def __init__(self):
                self.flow = mixture(MapData(numbers(9), self.func), 1)

            def func(self, datapoint):
                return datapoint

        dataset = Dataset()
        assert next(iter(dataset.flow)) == [0]
        del dataset
        gc.collect()
        assert multiprocessing.active_children() == []

    def test_a_process_for_each_gpu(self, monkeypatch):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        with closing(PrefetchOnGPUs(MapData(numbers(40), functions.gpus), [2, 5])) as flow:
            found = {gpu for _, gpu in itertools.chain(flow, flow, flow, flow)}
        assert found <= {"2", "5"} and found
        assert "CUDA_VISIBLE_DEVICES" not in os.environ


def _use(flow):
    if list(flow) != [[i] for i in range(9)]:
        raise SystemExit(1)
    flow.close()


class TestShares:
    """What `iterate_share` of each flow leaves to others, and what it says before."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda: numbers(10, shuffle=True),
            lambda: MapData(numbers(10, shuffle=True), functions.not_of_three),
            lambda: Unsized(MapData(numbers(10), functions.drawn)),
            lambda: BatchData(numbers(10), 3),
            lambda: Plain(4),
            lambda: MapData(MapData(Plain(7), functions.drawn), functions.odd),
        ],
    )
    @pytest.mark.parametrize("first, step", [(0, 1), (1, 2), (2, 5), (30, 1)])
    def test_it_is_a_part_of_the_whole(self, make, first, step):
        whole, part = (list(self.share(make(), *each)) for each in ((0, 1), (first, step)))
        assert_same(
            [(at, dp) for at, dp in part if dp is not None],
            [
                (at, dp)
                for at, dp in whole
                if dp is not None and at >= first and (at - first) % step == 0
            ],
        )

    @staticmethod
    def share(flow, first, step):
        fix_rng_seed(1)
        flow.reset_state()
        return flow.iterate_share(first, step, DatapointSeeds(5))

    def test_a_list_makes_only_its_part(self):
        told = []
        assert list(numbers(10).iterate_share(1, 4, told.append)) == [(1, [1]), (5, [5]), (9, [9])]
        assert told == [1, 5, 9]

    def test_the_others_make_all(self):
        told = []
        flow = BatchData(numbers(6), 1)
        assert [at for at, _ in flow.iterate_share(1, 4, told.append)] == [1, 5]
        assert told == list(range(7))

    def test_a_class_that_defines_iter_alone_gets_that_of_all_flows(self):
        class Backwards(MapData):
            def __iter__(self):
                return iter(list(super().__iter__())[::-1])

        flow = Backwards(numbers(4), functions.tenfold)
        assert list(flow.iterate_share(0, 3, lambda at: None)) == [(0, [30]), (3, [0])]
        assert Backwards.iterate_share is DataFlow.iterate_share

    def test_a_list_is_over_behind_its_share(self):
        flow = numbers(9, shuffle=True)
        flow.reset_state()
        list(flow.iterate_share(3, 4, lambda at: None))
        twin = numbers(9, shuffle=True)
        twin.load_state_dict(flow.state_dict())
        assert list(twin) == []
        assert list(twin) == list(flow)


@pytest.mark.parametrize(
    "kind, options, message",
    [
        (MultiProcessRunner, {"num_prefetch": 0}, "num_prefetch must be at least 1, got 0"),
        (MultiProcessRunner, {"num_prefetch": 1, "num_proc": 0}, "num_proc must be at least 1"),
        (MultiProcessRunner, {"num_prefetch": 1, "buffer_bytes": 0}, "buffer_bytes is a size"),
        (MultiProcessRunner, {"num_prefetch": 1, "start_method": "x"}, "start_method is one of"),
        (MultiProcessRunnerZMQ, {"num_proc": -1}, "MultiProcessRunnerZMQ: num_proc must be"),
        (PrefetchOnGPUs, {"gpus": []}, "at least one GPU"),
        (PrefetchOnGPUs, {"gpus": [0], "pipedir": "/tmp"}, "leave pipedir='/tmp' out"),
    ],
)
def test_wrong_arguments(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(numbers(3), **options)


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


def test_without_a_seed_nothing_comes_again():
    vars(_streams)["seeded"] = False
    assert not strict(numbers(3), 2).seeded


def test_all_kinds_of_datapoints():
    with closing(strict(Ragged(60), 3, 4)) as flow:
        assert_same(list(flow), list(Ragged(60)))


def test_datapoints_that_grow():
    ds = DataFromList([[np.full(2**n, n)] for n in range(18)], shuffle=False)
    with closing(strict(ds, 2, 4, buffer_bytes=100000)) as flow:
        assert_same(list(flow), list(ds))


def test_a_slow_consumer_lets_no_more_wait_than_asked_for():
    made = multiprocessing.get_context("fork").Value("i", 0)

    def count(datapoint):
        made.value += 1
        return datapoint

    with closing(strict(MapData(Endless(), count), 1, 5)) as flow:
        going = iter(flow)
        next(going)
        assert wait_until(lambda: made.value >= 6)
        time.sleep(0.05)
        assert made.value <= 1 + 5 + 1  # one is at hand when there is no room


def test_a_new_pass_interrupts_a_slow_one():
    """At the next datapoint, not when there is no more room for another one."""
    with closing(strict(Slow(), 1, 1000)) as flow:
        for _ in range(3):
            assert list(itertools.islice(flow, 2)) == [[0], [1]]


def test_datapoint_that_cannot_be_sent_is_named():
    for make in strict, mixture:
        with closing(make(MapData(numbers(5), functions.unfit), 1)) as flow:
            with pytest.raises(TypeError, match=r"^\[1\]\['it'\]\[0\]: a object cannot be sent"):
                list(flow)


def test_one_datapoint_yielded_again_and_again():
    datapoint = [np.arange(1000.0)]
    with closing(mixture(Same(datapoint, 500), 2)) as flow:
        for found in flow:
            assert_same(found, datapoint)


def test_threads_do_not_see_the_pass_of_others():
    with closing(strict(numbers(200), 1, 4)) as flow:
        found = [[], [], []]
        threads = [in_thread(each.extend, iter(flow)) for each in found]
        for thread, errors in threads:
            thread.join(LONG)
            assert errors == []
        assert found == [[[i] for i in range(200)]] * 3
