"""No thread outlives its pass, however that ends, and a pass that has ended says so."""

import contextlib
import gc
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading

import pytest

from tensorpack.dataflow import (
    DataFlow,
    DataFlowTerminated,
    DataFromGenerator,
    ProxyDataFlow,
    RepeatedData,
)
from tensorpack.dataflow.threads import MultiThreadMapData
from tests.checks import ROOT
from tests.dataflow.helpers import LONG, consumer_of, numbers
from tests.dataflow.thread_functions import both_orders, same, threads_of


@both_orders
@pytest.mark.parametrize("end", ["close", "drop", "drop a cycle", "reset", "close the flow"])
def test_a_pass_that_is_left_leaves_no_thread(strict, end):
    flow = MultiThreadMapData(RepeatedData(numbers(5), -1), 3, same, buffer_size=4, strict=strict)
    datapoints = iter(flow)
    assert threads_of("MultiThreadMapData") == []
    next(datapoints)
    threads = threads_of("MultiThreadMapData")
    assert len(threads) == 3
    if end == "close":
        datapoints.close()
    elif end == "drop":
        del datapoints
    elif end == "drop a cycle":
        cycle = [datapoints]
        cycle.append(cycle)
        del datapoints, cycle
        gc.collect()
        for thread in threads:  # the collection may have been in one of them
            thread.join(LONG)
    else:
        {"reset": flow.reset_state, "close the flow": flow.close}[end]()
        assert not any(thread.is_alive() for thread in threads)
        with pytest.raises(DataFlowTerminated, match="closed or reset"):
            next(datapoints)
    assert not any(thread.is_alive() for thread in threads)
    assert len(next(iter(flow))) == 1


def test_a_pass_that_is_never_begun_has_no_threads():
    flow = MultiThreadMapData(numbers(5), 3, same)
    opened = iter(flow)
    assert threads_of("MultiThreadMapData") == []
    flow.close()
    with pytest.raises(DataFlowTerminated, match="closed or reset"):
        next(opened)
    assert threads_of("MultiThreadMapData") == []
    assert sorted(flow) == list(numbers(5))


@both_orders
@pytest.mark.parametrize("taken", [2, 100])
def test_the_pass_over_the_flow_is_closed_too(strict, taken):
    closed = []

    class Closable(ProxyDataFlow):
        def __iter__(self):
            return Closable.Pass(self.ds)

        class Pass:
            def __init__(self, ds):
                self._datapoints = iter(ds)

            def __iter__(self):
                return self

            def __next__(self):
                return next(self._datapoints)

            def close(self):
                closed.append(threads_of("MultiThreadMapData"))

    flow = MultiThreadMapData(Closable(numbers(9)), 2, same, buffer_size=2, strict=strict)
    datapoints = iter(flow)
    for _ in itertools.islice(datapoints, taken):
        assert closed == []
    datapoints.close()
    assert closed == [[]]  # once, when no thread was there any more


class Connection(DataFlow):
    """Gives one datapoint; the next one never comes, until it is closed."""

    def __init__(self):
        self.waiting = threading.Event()
        self._closed = threading.Event()

    def __iter__(self):
        yield [0]
        self.waiting.set()
        assert self._closed.wait(LONG)
        raise DataFlowTerminated("The connection is gone.")

    def close(self):
        self._closed.set()


@both_orders
def test_closing_wakes_a_consumer_that_waits(strict):
    ds = Connection()
    flow = MultiThreadMapData(ds, 2, same, strict=strict)
    consumer, outcome, received = consumer_of(flow)
    assert ds.waiting.wait(LONG) and received.wait(LONG)
    flow.close()
    assert threads_of("MultiThreadMapData") == []
    consumer.join(LONG)
    assert len(outcome) == 2 and outcome[0] == [0]
    assert "MultiThreadMapData was closed or reset" in outcome[1]


@both_orders
def test_the_end_of_the_wrapped_flow_is_raised(strict):
    ds = Connection()
    datapoints = iter(MultiThreadMapData(ds, 2, same, strict=strict))
    assert next(datapoints) == [0]
    ds.close()
    with pytest.raises(DataFlowTerminated, match="The connection is gone"):
        next(datapoints)


@contextlib.contextmanager
def function_that_hangs():
    """Gives a function that returns when the block is over, and joins the thread left in it."""
    gate, entered = threading.Event(), threading.Event()

    def hangs(datapoint):
        entered.set()
        assert gate.wait(LONG)
        return datapoint

    hangs.entered = entered
    try:
        yield hangs
    finally:
        left = threads_of("MultiThreadMapData")
        gate.set()
        for thread in left:
            thread.join(LONG)


def test_a_function_that_hangs_is_left_behind(capsys):
    with function_that_hangs() as hangs:
        flow = MultiThreadMapData(numbers(9), 2, lambda dp: hangs(dp) if dp == [1] else dp)
        datapoints = iter(flow)
        assert next(datapoints) == [0]
        assert hangs.entered.wait(LONG)
        datapoints.close()
        out = capsys.readouterr().out
        assert out.count("did not stop within 2 seconds") == 1
        assert "MultiThreadMapData-" in out and "in hangs" in out and "gate.wait" in out
        (left,) = threads_of("MultiThreadMapData")
        assert left.daemon
    assert list(MultiThreadMapData(numbers(3), 1, same)) == list(numbers(3))


def test_a_flow_that_hangs_does_not_stop_the_next_pass(capsys):
    gate, hangs = threading.Event(), threading.Event()

    def source():
        yield [0]
        if not hangs.is_set():
            hangs.set()
            assert gate.wait(LONG)
        yield [1]

    flow = MultiThreadMapData(DataFromGenerator(source), 2, same, strict=True)
    datapoints = iter(flow)
    next(datapoints)
    assert hangs.wait(LONG)
    datapoints.close()
    out = capsys.readouterr().out
    assert out.count("did not stop within 2 seconds") == 1 and "in source" in out
    (left,) = threads_of("MultiThreadMapData")
    assert list(flow) == [[0], [1]]
    assert left.is_alive()  # and was not waited for
    gate.set()
    left.join(LONG)


@pytest.mark.parametrize("strict", ["False", "True"])
def test_a_program_may_end_within_a_pass(strict):
    program = (
        "from tensorpack.dataflow import DataFromList, RepeatedData\n"
        "from tensorpack.dataflow.threads import MultiThreadMapData, MultiThreadRunner\n"
        "ds = RepeatedData(DataFromList([[1], [2]]), -1)\n"
        f"datapoints = iter(MultiThreadMapData(ds, 3, lambda dp: dp, strict={strict}))\n"
        "next(datapoints)\n"
        "others = iter(MultiThreadRunner(lambda: DataFromList([[1]]), 5, 2))\n"
        "next(others)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=str(ROOT),
        timeout=LONG,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_begins_its_own_passes():
    parent, reading, gate = os.getpid(), threading.Event(), threading.Event()

    def source():
        yield [0]
        if os.getpid() == parent:
            reading.set()
            assert gate.wait(LONG)
        yield [1]

    flow = MultiThreadMapData(DataFromGenerator(source), 3, same, strict=True)
    going = iter(flow)
    next(going)
    assert reading.wait(LONG)  # while a thread has the right to use the source

    def child():
        flow.reset_state()
        os._exit(0 if list(flow) == [[0], [1]] else 1)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(LONG)
    process.kill()
    gate.set()
    assert process.exitcode == 0
    assert list(going) == [[1]]
