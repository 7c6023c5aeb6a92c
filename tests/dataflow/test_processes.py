"""Whole flows in processes: what comes out is what the flow has, in whatever order it may come."""

import collections
import datetime
import fractions
import functools
import itertools
import operator
import pathlib

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchData,
    DataFromList,
    MapData,
    MultiProcessMapData,
    StateNotKept,
)
from tensorpack.dataflow.processes import (
    MultiProcessPrefetchData,
    MultiProcessRunner,
    MultiProcessRunnerZMQ,
    PrefetchData,
    PrefetchDataZMQ,
)
from tensorpack.utils.rng import fix_rng_seed
from tests.contracts.dataflow import assert_same
from tests.dataflow import process_functions as functions
from tests.dataflow.process_flows import (
    ContractOfProcesses,
    closing,
    mixture,
    passes,
    seeded_passes,
)
from tests.dataflow.process_functions import Noisy, Plain, Ragged, Slow, numbers
from tests.processes import LONG, in_thread

pytestmark = pytest.mark.usefixtures("own_streams")


class TestMixture(ContractOfProcesses):
    length = 6
    deterministic = False
    independent = False
    keeps_state = False

    def make_flow(self):
        return mixture(numbers(6, shuffle=True))


OBJECTS = [
    functions.Pair(1, (2, functions.Pair([3], 4))),
    functions.Sample(pathlib.PurePosixPath("a/b.png"), np.ones((2, 3), np.uint8)),
    functions.Label.CAT,
    {"a"},  # a set of one: the order of more is not that of another process
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(list, a=[1]),
    datetime.datetime(2018, 3, 1, tzinfo=datetime.timezone.utc),
    1 + 2j,
    bytearray(b"ab"),
    fractions.Fraction(1, 3),
    np.array([None, "a", [1]], object),
    np.ma.masked_array([1, 2], [False, True]),
    {frozenset([functions.Pair(1, 2)]): None},
    functools.reduce(lambda inner, _: (inner,), range(60), ()),
]


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_objects_of_a_script_come_as_what_they_were(method):
    source = DataFromList([[obj, np.ones(1000)] for obj in OBJECTS], shuffle=False)
    mapped = MultiProcessMapData(source, 1, functions.same, strict=True, start_method=method)
    for flow in mixture(source, 1, start_method=method), mapped:
        with closing(flow):
            for (obj, image), expected in zip(flow, OBJECTS):
                assert type(obj) is type(expected) and repr(obj) == repr(expected)
                assert image.sum() == 1000
    with closing(mixture(MapData(source, operator.itemgetter(0)), 1, start_method=method)) as flow:
        assert [repr(obj) for obj in flow] == [*map(repr, OBJECTS)]


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_the_start_method_does_not_matter(method):
    ds = MapData(numbers(20, shuffle=True), functions.drawn)
    expected = seeded_passes(mixture, ds, 1)
    datapoints = seeded_passes(mixture, ds, 1, start_method=method)
    assert_same(datapoints, expected)


class TestMixtures:
    def test_every_process_goes_through_the_flow_again_and_again(self):
        with closing(mixture(MapData(numbers(6), functions.in_process), 2)) as flow:
            datapoints = list(itertools.chain(*itertools.repeat(flow, 20)))
        assert len(datapoints) == 120
        for worker in {pid for _, pid in datapoints}:
            sent = [i for i, pid in datapoints if pid == worker]
            assert sent == [n % 6 for n in range(len(sent))]

    @pytest.mark.parametrize("num_prefetch", [1, 8])
    def test_one_process_keeps_the_order(self, num_prefetch):
        batches = BatchData(MapData(numbers(13), functions.arrays_of), 5, remainder=True)
        for ds in Ragged(9), batches:
            assert_same(passes(mixture(ds, 1, num_prefetch)), [list(ds)] * 2)

    def test_it_has_no_state(self):
        with closing(mixture(numbers(5), 1)) as flow:
            with pytest.raises(StateNotKept, match="or use MultiProcessMapData with strict=True"):
                flow.state_dict()

    def test_passes_continue_one_another(self):
        with closing(mixture(Plain(5), 1)) as flow:
            assert next(iter(flow))[0] == 0
            assert [i for i, _ in flow] == [1, 2, 3, 4, 0]

    def test_processes_draw_different_numbers(self):
        with closing(mixture(MapData(Noisy(numbers(40)), functions.drawn), 3)) as flow:
            drawn = list(zip(*flow))
        assert len(set(drawn[2])) == len(set(drawn[3])) == 40 and len(set(drawn[1])) > 10

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
            datapoints = [[], []]
            threads = [in_thread(part.extend, iter(flow)) for part in datapoints]
            for thread, errors in threads:
                thread.join(LONG)
                assert errors == []
        assert sorted(sum(datapoints, [])) == sorted([[i] for i in range(1000)] * 2)


@pytest.mark.parametrize(
    "kind, options, error, message",
    [
        (
            MultiProcessRunner,
            {"num_prefetch": 0},
            ValueError,
            "num_prefetch must be a whole number of at least 1",
        ),
        (MultiProcessRunnerZMQ, {"start_method": "x"}, ValueError, "cannot find context for 'x'"),
    ],
)
def test_wrong_arguments(kind, options, error, message):
    with pytest.raises(error, match=message):
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
    assert mixture(numbers(3), 1).seeded
    assert not mixture(numbers(3), 2).seeded
    mapped = functools.partial(MultiProcessMapData, map_func=functions.same)
    assert mapped(numbers(3), 2, strict=True).seeded and mapped(numbers(3), 1).seeded
    assert not mapped(numbers(3), 2).seeded


def test_a_reset_interrupts_a_slow_pass():
    """At the next datapoint, not when there is no more room for another one."""
    with closing(mixture(Slow(), 1, 1000)) as flow:
        for _ in range(3):
            flow.reset_state()
            assert list(itertools.islice(flow, 2)) == [[0], [1]]
