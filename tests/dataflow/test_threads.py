"""Several flows, each in a thread: a mixture of whole streams."""

import collections
import itertools
import threading
import traceback
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.dataflow import (
    DataFlow,
    DataFlowTerminated,
    DataFromList,
    ProxyDataFlow,
    RepeatedData,
)
from tensorpack.dataflow.threads import MultiThreadPrefetchData, MultiThreadRunner
from tests.contracts.dataflow import DataFlowContract
from tests.dataflow.flows import Of2017, ResetsCounted, numbers
from tests.dataflow.thread_functions import Connection, Watched, threads_of
from tests.processes import LONG


def seven():
    return numbers(7)


class TestRunner(DataFlowContract):
    length = 7
    deterministic = False
    independent = False
    keeps_state = False

    def make_flow(self):
        return MultiThreadRunner(seven, 5, 3)


class TestOneThread(TestRunner):
    deterministic = True

    def make_flow(self):
        return MultiThreadPrefetchData(seven, 2, 1)


class Recorder:
    """Makes flows that yield `[number of the flow, number of the datapoint]`, and keeps them."""

    def __init__(self, length=10):
        self._length = length
        self.made = []

    def __call__(self):
        datapoints = [[len(self.made), i] for i in range(self._length)]
        self.made.append(ResetsCounted(datapoints, shuffle=False))
        return self.made[-1]


def threads():
    return threads_of("MultiThreadRunner")


@pytest.fixture
def runner():
    """Makes runners and closes them in the end."""
    made = []

    def make(*args, **options):
        made.append(MultiThreadRunner(*args, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 8), st.integers(0, 40))
def test_the_mixture_has_a_whole_stream_of_each_flow(length, num_thread, num_prefetch, count):
    flow = MultiThreadRunner(Recorder(length), num_prefetch, num_thread)
    passes = itertools.chain.from_iterable(itertools.repeat(flow))
    streams = collections.defaultdict(list)
    for number, value in itertools.islice(passes, count):
        streams[number].append(value)
    flow.close()
    assert threads() == []
    assert set(streams) <= set(range(num_thread))
    for values in streams.values():
        assert values == [i % length for i in range(len(values))]


def test_what_comes_first_is_yielded_first_and_every_flow_has_its_share(runner):
    gate = threading.Event()

    class Late(ProxyDataFlow):
        def __iter__(self):
            assert gate.wait(LONG)
            yield from self.ds

    flows = iter([Late(RepeatedData(DataFromList(["late"]), -1)), DataFromList(["early"] * 100)])
    datapoints = iter(runner(lambda: next(flows), 2, 2))
    assert [next(datapoints) for _ in range(20)] == ["early"] * 20
    gate.set()
    assert "late" in datapoints
    assert "early" in datapoints


def test_passes_continue_one_another(runner):
    flow = runner(lambda: numbers(5), 3, 1)
    first = iter(flow)
    assert [next(first), next(first)] == [[0], [1]]
    second = iter(flow)
    assert [next(second), next(first)] == [[2], [3]]
    assert list(second) == [[4], [0], [1], [2]]
    assert list(first) == [[3], [4]]


@pytest.mark.parametrize("num_prefetch", [1, 4])
def test_the_buffer_is_filled_and_no_more_than_that(runner, num_prefetch):
    ds = Watched(num_prefetch)
    ds.consume(runner(lambda: ds, num_prefetch, 1), 10)


# Threads
def test_threads_and_flows_live_from_reset_to_close(runner):
    recorder = Recorder()
    flow = runner(recorder, 5, 3)
    assert recorder.made == [] and threads() == []
    assert len(flow) == 10
    flow.reset_state()
    first = threads()
    assert len(list(flow)) == 10 and threads() == first and len(first) == 3
    assert [made.resets for made in recorder.made] == [1, 1, 1]
    flow.reset_state()
    assert len(threads()) == 3 and not set(threads()) & set(first)
    assert [made.resets for made in recorder.made] == [1, 1, 1, 1, 1, 1]
    assert [made.closes for made in recorder.made] == [1, 1, 1, 0, 0, 0]
    flow.close()
    assert threads() == []
    flow.close()
    assert len(list(flow)) == 10 and len(threads()) == 3


def test_threads_end_with_their_flow():
    flow = MultiThreadRunner(seven, 2, 3)
    going = iter(flow)
    next(going)
    assert len(threads()) == 3
    reference = weakref.ref(flow)
    del flow, going
    assert reference() is None
    assert threads() == []


def test_closing_ends_a_pass_that_waits(runner):
    ds = Connection()
    ds.check_closing(runner(lambda: ds, 3, 1))


@pytest.mark.parametrize("end", ["close", "reset_state"])
def test_a_pass_from_before_is_over(runner, end):
    flow = runner(seven, 3, 2)
    going = iter(flow)
    next(going)
    getattr(flow, end)()
    with pytest.raises(DataFlowTerminated, match="closed or reset"):
        next(going)
    assert len(list(flow)) == 7


# Errors
@pytest.mark.parametrize("num_thread", [1, 3])
@pytest.mark.parametrize("error", [ZeroDivisionError("z"), SystemExit(3), GeneratorExit("g")])
def test_an_error_is_raised_and_all_threads_end(runner, num_thread, error):
    class Breaks(DataFlow):
        def __iter__(self):
            yield [0]
            self.this_breaks()

        def this_breaks(self):
            raise error

    flows = itertools.chain([Breaks()], (numbers(5) for _ in range(9)))
    flow = runner(lambda: next(flows), 4, num_thread)
    with pytest.raises(type(error)) as raised:
        list(itertools.chain.from_iterable(itertools.repeat(flow)))
    assert raised.value is error
    assert traceback.extract_tb(error.__traceback__)[-1].name == "this_breaks"
    assert threads() == []
    assert len(list(flow)) == 5  # the flows that were made again do not break


def test_an_error_of_reset_state_starts_nothing(runner):
    class Breaks(ProxyDataFlow):
        def reset_state(self):
            raise ZeroDivisionError("reset")

    flow = runner(lambda: Breaks(seven()), 2, 2)
    with pytest.raises(ZeroDivisionError, match="reset"):
        flow.reset_state()
    assert threads() == []


def test_wrong_flows():
    shared = numbers(3)
    with pytest.raises(ValueError, match="the same flow twice"):
        iter(MultiThreadRunner(lambda: shared, 2, 2))
    with pytest.raises(TypeError, match="DataFlow, but got list"):
        iter(MultiThreadRunner(lambda: [[1]], 2, 2))
    with pytest.raises(TypeError, match="DataFlow, but got the class DataFromList"):
        iter(MultiThreadRunner(lambda: DataFromList, 2, 2))


def test_seeded_only_with_one_flow():
    assert MultiThreadRunner(Of2017, 2, 1).seeded
    assert not MultiThreadRunner(Of2017, 2, 2).seeded

    class Unseeded(ProxyDataFlow):
        seeded = False

    assert not MultiThreadRunner(lambda: Unseeded(Of2017()), 2, 1).seeded
