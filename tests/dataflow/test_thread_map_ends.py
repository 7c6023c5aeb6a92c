"""No thread outlives its pass, however that ends, and a pass that has ended says so."""

import gc
import itertools
import multiprocessing
import os
import threading

import pytest

from tensorpack.dataflow import (
    DataFlowTerminated,
    DataFromGenerator,
    ProxyDataFlow,
    RepeatedData,
)
from tensorpack.dataflow.threads import MultiThreadMapData
from tests.dataflow.flows import numbers
from tests.dataflow.process_functions import same
from tests.dataflow.thread_functions import Connection, both_orders, threads_of
from tests.processes import LONG, run_python

SHORT = 0.15  # for seeing that something does not happen


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


@both_orders
@pytest.mark.parametrize("taken", [2, 100])
def test_the_pass_over_the_flow_is_closed_too(strict, taken):
    closed = []

    class Closable(ProxyDataFlow):
        def __iter__(self):
            self._datapoints = iter(self.ds)
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


@both_orders
def test_closing_wakes_a_consumer_that_waits(strict):
    ds = Connection()
    ds.check_closing(MultiThreadMapData(ds, 2, same, strict=strict))


def test_a_function_that_hangs_is_left_behind(capsys):
    gate, entered = threading.Event(), threading.Event()

    def hangs(datapoint):
        if datapoint == [1]:
            entered.set()
            assert gate.wait(LONG)
        return datapoint

    datapoints = iter(MultiThreadMapData(numbers(9), 2, hangs))
    assert next(datapoints) == [0]
    assert entered.wait(LONG)
    datapoints.close()
    out = capsys.readouterr().out
    assert out.count("did not stop within 2 seconds") == 1
    assert "MultiThreadMapData-" in out
    (left,) = threads_of("MultiThreadMapData")
    assert left.daemon
    assert list(MultiThreadMapData(numbers(3), 1, same)) == list(numbers(3))
    gate.set()
    left.join(LONG)


def test_the_next_pass_waits_for_a_thread_that_is_still_in_the_flow(capsys):
    gate, hangs = threading.Event(), threading.Event()

    def source():
        yield [0]
        hangs.set()
        assert gate.wait(LONG)
        yield [1]

    flow = MultiThreadMapData(DataFromGenerator(source), 2, same, strict=True)
    datapoints = iter(flow)
    next(datapoints)
    assert hangs.wait(LONG)
    datapoints.close()
    out = capsys.readouterr().out
    assert out.count("did not stop within 2 seconds") == 2  # the other one waits for the flow
    left = threads_of("MultiThreadMapData")
    datapoints = []
    following = threading.Thread(target=lambda: datapoints.extend(flow))
    following.start()
    following.join(SHORT)
    assert datapoints == [] and left[0].is_alive()  # two threads are never in the flow at a time
    gate.set()
    following.join(LONG)
    assert datapoints == [[0], [1]]
    for thread in left:
        thread.join(LONG)


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
    done = run_python("-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


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
