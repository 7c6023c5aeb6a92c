"""Several flows, each in a thread: a mixture of whole streams; and the parts that threads share."""

import collections
import itertools
import threading
import traceback
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.dataflow import (
    DataFlow,
    DataFlowTerminated,
    DataFromList,
    ProxyDataFlow,
    RepeatedData,
    UnknownLength,
)
from tensorpack.dataflow._threads.buffer import Buffer
from tensorpack.dataflow._threads.pool import ThreadPool
from tensorpack.dataflow._threads.size import nbytes_of
from tensorpack.dataflow._threads.turns import Turns
from tensorpack.dataflow.threads import MultiThreadPrefetchData, MultiThreadRunner
from tests.contracts.dataflow import DataFlowContract

LONG = 30  # seconds; waited for in full only if the code is wrong
SHORT = 0.15  # for seeing that something does not happen


def numbers(count):
    return DataFromList([[i] for i in range(count)], shuffle=False)


def seven():
    return numbers(7)


class Unsized(ProxyDataFlow):
    def __len__(self):
        raise UnknownLength("The length is not known.")


def unsized():
    return Unsized(numbers(7))


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


class TestWithoutALength(TestRunner):
    length = None
    has_len = False

    def make_flow(self):
        return MultiThreadRunner(unsized, 5, 2)


class Recorder:
    """Makes flows that yield `[number of the flow, number of the datapoint]`, and keeps them."""

    def __init__(self, length=10):
        self._length = length
        self.made = []

    def __call__(self):
        flow = Recorder.Flow(len(self.made), self._length)
        self.made.append(flow)
        return flow

    class Flow(DataFlow):
        def __init__(self, number, length):
            self.number = number
            self._length = length
            self.resets = 0
            self.closes = 0

        def __len__(self):
            return self._length

        def __iter__(self):
            for i in range(self._length):
                yield [self.number, i]

        def reset_state(self):
            self.resets += 1

        def close(self):
            self.closes += 1


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("MultiThreadRunner-")]


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


def test_each_flow_is_made_and_reset_once(runner):
    recorder = Recorder()
    flow = runner(recorder, 5, 3)
    assert recorder.made == []
    assert len(flow) == 10
    flow.reset_state()
    assert len(list(flow)) == 10
    assert [each.resets for each in recorder.made] == [1, 1, 1]
    flow.reset_state()
    assert len(list(flow)) == 10
    assert [each.resets for each in recorder.made] == [1, 1, 1, 1, 1, 1]
    assert [each.closes for each in recorder.made] == [1, 1, 1, 0, 0, 0]


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


class Watched(DataFlow):
    """Checks in every `next` how far the thread is ahead of a consumer that counts `asked`."""

    def __init__(self, ahead):
        self._ahead = ahead
        self.asked = 0
        self.is_ahead = threading.Event()

    def __iter__(self):
        for made in itertools.count(1):
            assert made <= self.asked + self._ahead, f"{made} made, {self.asked} asked for"
            if made == self.asked + self._ahead:
                self.is_ahead.set()
            yield [np.zeros(100, np.uint8)]


@pytest.mark.parametrize(
    "num_prefetch, options, ahead",
    [(1, {}, 1), (4, {}, 4), (9, {"buffer_bytes": 1}, 1), (9, {"buffer_bytes": 201}, 3)],
)
def test_the_buffer_is_filled_and_no_more_than_that(runner, num_prefetch, options, ahead):
    ds = Watched(ahead)
    datapoints = iter(runner(lambda: ds, num_prefetch, 1, **options))
    for _ in range(10):
        ds.is_ahead.clear()
        ds.asked += 1
        next(datapoints)
        assert ds.is_ahead.wait(LONG)


# Threads


def test_threads_live_from_reset_to_close(runner):
    flow = runner(seven, 2, 3)
    assert threads() == []
    flow.reset_state()
    first = threads()
    assert len(first) == 3
    list(flow)
    assert threads() == first
    flow.reset_state()
    assert len(threads()) == 3 and not set(threads()) & set(first)
    flow.close()
    assert threads() == []
    flow.close()
    assert len(list(flow)) == 7
    assert len(threads()) == 3


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
    waiting, gate = threading.Event(), threading.Event()

    class Connection(DataFlow):
        def __iter__(self):
            yield [0]
            waiting.set()
            assert gate.wait(LONG)
            raise DataFlowTerminated("The connection is gone.")

        def close(self):
            gate.set()

    flow = runner(Connection, 3, 1)
    outcome, received = [], threading.Event()

    def consume():
        try:
            for datapoint in flow:
                outcome.append(datapoint)
                received.set()
        except DataFlowTerminated as error:
            outcome.append(str(error))

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert waiting.wait(LONG) and received.wait(LONG)
    flow.close()
    assert threads() == []
    consumer.join(LONG)
    assert len(outcome) == 2 and outcome[0] == [0]
    assert "MultiThreadRunner was closed or reset" in outcome[1]


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
    assert len(list(flow)) == 5  # the flows that were made anew do not break


def test_an_error_of_reset_state_starts_nothing(runner):
    class Breaks(Recorder.Flow):
        def reset_state(self):
            raise ZeroDivisionError("reset")

    flow = runner(lambda: Breaks(0, 5), 2, 2)
    with pytest.raises(ZeroDivisionError, match="reset"):
        flow.reset_state()
    assert threads() == []


def test_a_flow_without_a_datapoint_is_an_error(runner):
    flow = runner(lambda: Unsized(numbers(0)), 2, 2)
    with pytest.raises(RuntimeError, match="Unsized yielded nothing in pass 1"):
        next(iter(flow))
    assert threads() == []


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((numbers(3), 2, 2), TypeError, "takes a function that returns a flow.*DataFromList"),
        ((seven, 0, 2), ValueError, "num_prefetch must be at least 1, but got 0"),
        ((seven, 2, 0), ValueError, "num_thread must be at least 1, but got 0"),
        ((seven, 2, "2"), TypeError, "num_thread must be at least 1, but got '2'"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        MultiThreadRunner(*arguments)


def test_wrong_flows():
    shared = numbers(3)
    with pytest.raises(ValueError, match="the same flow twice"):
        iter(MultiThreadRunner(lambda: shared, 2, 2))
    with pytest.raises(TypeError, match=r"needs a DataFlow from get_df\(\), but got list"):
        iter(MultiThreadRunner(lambda: [[1]], 2, 2))


def test_seeded_only_with_one_flow():
    recorder = Recorder()
    assert MultiThreadRunner(recorder, 2, 1).seeded
    assert not MultiThreadRunner(recorder, 2, 2).seeded

    class Unseeded(Recorder.Flow):
        seeded = False

    assert not MultiThreadRunner(lambda: Unseeded(0, 5), 2, 1).seeded


def test_processes_are_started_in_every_flow(runner):
    started = []

    class Starts(Recorder.Flow):
        def start_processes(self):
            started.append(self)

    flow = runner(lambda: Starts(0, 5), 2, 3)
    flow.start_processes()
    assert len(set(started)) == 3
    assert next(iter(flow)) == [0, 0]
    assert all(each.resets == 1 for each in started)


# The parts


def in_thread(call):
    """Calls in another thread; returns an event that it is done, and the list of its result."""
    done, result = threading.Event(), []

    def run():
        try:
            result.append(call())
        except DataFlowTerminated as error:
            result.append(error)
        done.set()

    threading.Thread(target=run).start()
    return done, result


def test_buffer_is_bounded_in_items():
    buffer = Buffer("Flow", 2, 1000)
    assert buffer.reserve() and buffer.reserve()
    done, result = in_thread(buffer.reserve)
    assert not done.wait(SHORT)
    buffer.put("first", 1)
    assert not done.wait(SHORT)
    assert buffer.get() == ("first", 1)
    assert not done.wait(SHORT)
    buffer.release(1)
    assert done.wait(LONG) and result == [True]


def test_buffer_is_bounded_in_bytes():
    buffer = Buffer("Flow", 5, 10)
    assert buffer.reserve() and buffer.reserve() and buffer.reserve()
    buffer.put("first", 9)
    buffer.put("second", 100)
    done, result = in_thread(buffer.reserve)
    assert not done.wait(SHORT)
    buffer.release(9)
    assert not done.wait(SHORT)
    buffer.put("third", 9)
    buffer.release(100)
    assert done.wait(LONG) and result == [True]
    buffer.release(9)
    assert buffer.reserve() and buffer.reserve() and buffer.reserve() and buffer.reserve()
    done, result = in_thread(buffer.reserve)
    assert not done.wait(SHORT)
    buffer.close()
    assert done.wait(LONG) and result == [False]


def test_several_wait_for_bytes_and_all_go_on():
    buffer = Buffer("Flow", 3, 10)
    assert buffer.reserve()
    buffer.put("large", 10)
    waiting = [in_thread(buffer.reserve) for _ in range(2)]
    assert not any(done.wait(SHORT) for done, _ in waiting)
    buffer.release(10)
    while not all(done.is_set() for done, _ in waiting):
        buffer.put("small", 1)  # by the one who went on, for he took the room of the other
        buffer.release(1)
    assert [result for _, result in waiting] == [[True], [True]]


def test_closing_a_buffer_ends_all_waits():
    buffer = Buffer("Flow", 1, 10)
    getters = [in_thread(buffer.get) for _ in range(3)]
    assert buffer.reserve()
    reservers = [in_thread(buffer.reserve) for _ in range(3)]
    buffer.close()
    assert all(done.wait(LONG) for done, _ in getters + reservers)
    assert [result for _, result in reservers] == [[False]] * 3
    assert all("Flow was closed" in str(result[0]) for _, result in getters)
    assert not buffer.reserve()
    with pytest.raises(DataFlowTerminated, match="Flow was closed or reset"):
        buffer.get()


def test_a_buffer_that_failed_raises_the_first_error():
    buffer = Buffer("Flow", 3, 10)
    buffer.put("good", 1)
    error = ZeroDivisionError("first")
    buffer.fail(error)
    buffer.fail(ZeroDivisionError("second"))
    assert buffer.failed and not buffer.reserve()
    for call in buffer.get, buffer.check, buffer.get:
        with pytest.raises(ZeroDivisionError) as raised:
            call()
        assert raised.value is error


def test_an_error_after_the_close_is_of_no_interest():
    buffer = Buffer("Flow", 3, 10)
    buffer.close()
    buffer.fail(ZeroDivisionError("late"))
    assert not buffer.failed
    with pytest.raises(DataFlowTerminated):
        buffer.get()


def test_turns_go_round_until_the_end():
    turns = Turns()
    assert turns.wait()
    waiting = [in_thread(turns.wait) for _ in range(3)]
    assert not any(done.wait(SHORT) for done, _ in waiting)
    turns.pass_on()
    while not any(done.wait(0.01) for done, _ in waiting):
        pass
    assert sum(done.is_set() for done, _ in waiting) == 1
    turns.end()
    turns.pass_on()
    assert all(done.wait(LONG) for done, _ in waiting)
    assert sorted(result for _, result in waiting) == [[False], [False], [True]]
    assert not turns.wait()


def test_pool_leaves_behind_what_hangs_and_says_so_once(capsys):
    gate = threading.Event()

    def work(number):
        if number == 1:
            this_hangs()

    def this_hangs():
        assert gate.wait(LONG)

    pool = ThreadPool("Worker", grace_seconds=0.05)
    pool.start(work, 3)
    for thread in threading.enumerate():
        if thread.name in ("Worker-0", "Worker-2"):
            thread.join(LONG)
    assert not pool.join()
    assert not pool.join()
    out = capsys.readouterr().out
    assert out.count("Worker-1 was told to stop but is busy after 0.05 seconds") == 1
    assert "Worker-0" not in out and "in this_hangs" in out
    (left,) = [thread for thread in threading.enumerate() if thread.name == "Worker-1"]
    gate.set()
    left.join(LONG)
    assert pool.join()


def test_pool_is_not_joined_by_its_own_threads(capsys):
    pool = ThreadPool("Worker")
    joined = []
    pool.start(lambda number: joined.append(pool.join()), 2)
    assert pool.join()
    assert joined == [False, False]
    assert capsys.readouterr().out == ""


def test_pool_that_was_joined_starts_nothing():
    called = []
    pool = ThreadPool("Worker")
    assert pool.join()
    pool.start(called.append, 3)
    assert pool.join()
    assert called == []


def test_pool_is_joined_when_all_have_started(monkeypatch):
    start, starting, gate = threading.Thread.start, threading.Event(), threading.Event()
    ended = []

    def slow_start(thread):
        if thread.name == "Worker-1":
            starting.set()
            assert gate.wait(LONG)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", slow_start)
    pool = ThreadPool("Worker")
    starter = threading.Thread(target=pool.start, args=(ended.append, 3))
    starter.start()
    assert starting.wait(LONG)
    done, result = in_thread(lambda: (pool.join(), sorted(ended)))
    assert not done.wait(SHORT)
    gate.set()
    assert done.wait(LONG) and result == [(True, [0, 1, 2])]
    starter.join(LONG)


def test_pool_of_which_some_threads_did_not_start(monkeypatch):
    gate = threading.Event()
    start = threading.Thread.start
    started = []

    def no_more_than_two(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", no_more_than_two)
    pool = ThreadPool("Worker")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        pool.start(lambda number: gate.wait(LONG), 3)
    gate.set()
    assert pool.join()
    assert not any(thread.is_alive() for thread in started)


IMAGE = np.zeros((10, 10, 3), np.uint8)


@pytest.mark.parametrize(
    "datapoint, least, most",
    [
        ([IMAGE], 300, 300),
        (IMAGE, 300, 300),
        ((IMAGE, np.float64(1)), 308, 308),
        ({"a": IMAGE, "b": [IMAGE, IMAGE]}, 900, 900),
        ([[[IMAGE]]], 300, 300),
        ([[IMAGE] * 1000], 300000, 300000),
        ([{"image": IMAGE}] * 100, 30000, 30000),
        ([memoryview(bytes(200))], 200, 200),
        ([b"x" * 1000, 3], 1000, 1200),
        (["x" * 1000], 1000, 1200),
        ([bytearray(1000)], 1000, 1200),
        ([], 0, 200),
        (None, 0, 200),
    ],
)
def test_size_of_a_datapoint(datapoint, least, most):
    assert least <= nbytes_of(datapoint) <= most


def test_size_of_what_contains_itself():
    datapoint = [IMAGE]
    datapoint.append(datapoint)
    assert 300 <= nbytes_of(datapoint) <= 300 * 1000
