"""Worker pools are closed by any thread, and say at once that a worker is gone."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from tensorpack.dataflow import DataFlowTerminated
from tensorpack.dataflow._processes.channel import _RECORD, Limits
from tensorpack.dataflow._processes.flows import WorkerPools
from tensorpack.dataflow._processes.pickled import Packed
from tensorpack.dataflow._processes.pool import WorkerPool
from tensorpack.dataflow._processes.worker_loop import map_inputs
from tensorpack.utils.workers.worker_errors import WorkerDied, WorkerFailed
from tests.dataflow import process_functions as functions
from tests.processes import LONG, gone, in_thread, wait_until

LIMITS = Limits(4, 8, 1 << 24)


@pytest.fixture
def make():
    """Makes pools; closes them at the end."""
    pools = []

    def make(function=functions.same, count=2):
        args = [({}, "", function, index) for index in range(count)]
        pool = WorkerPool(map_inputs, args, ("function", args), LIMITS, "fork", "Pool", LIMITS)
        pools.append(pool)
        return pool

    yield make
    for pool in pools:
        pool.close()


def pids(pool):
    return [worker.process.pid for worker in pool._workers]


def test_what_a_worker_had_sent_comes_before_its_end(make):
    pool = make(count=1)
    (worker,) = pool._workers
    for number in range(5):
        assert worker.inputs.offer(Packed([number]), number)

    def all_received():
        pool._wait(pool._poll, False)
        return len(worker.results._data) >= 5 * (_RECORD.size + len(Packed([0]).pickle))

    assert wait_until(all_received)
    os.kill(worker.process.pid, signal.SIGKILL)
    assert wait_until(lambda: gone(worker.process.pid))
    for number in range(5):
        assert pool.exchange() == (False, (number, [number]))
    with pytest.raises(WorkerDied, match="SIGKILL"):
        pool.exchange()
    assert pool.closed


def test_an_input_for_a_worker_that_left_does_not_hide_where(make):
    pool = make(functions.At(0, functions.leave), count=1)
    assert pool._workers[0].inputs.offer(Packed([0]))
    assert wait_until(lambda: gone(pids(pool)[0]))
    with pytest.raises(WorkerFailed, match="SystemExit: 3") as caught:
        pool.exchange(Packed([1]), 1)
    assert "in leave" in str(caught.value.__cause__)


@pytest.mark.parametrize("is_killed", [True, False])
def test_the_end_of_a_worker_whose_pipes_another_process_holds(make, is_killed):
    held, holding = os.pipe()

    def leave_another(item):
        if os.fork() == 0:
            os.close(holding)
            os.read(held, 1)  # until the end of the test
            os._exit(0)
        (functions.be_killed if is_killed else functions.sleep)()

    pool = make(leave_another, count=1)
    assert pool._workers[0].inputs.offer(Packed([0]))
    thread, errors = in_thread(pool.exchange)
    if not is_killed:
        time.sleep(0.1)
        threading.Thread(target=pool.close).start()
    thread.join(LONG)
    is_waiting = thread.is_alive()
    os.close(holding)
    os.close(held)
    assert not is_waiting
    assert [type(error) for error in errors] == [WorkerDied if is_killed else DataFlowTerminated]


def test_a_signal_handler_closes_it_while_it_waits(make):
    pool = make()
    usual = signal.signal(signal.SIGALRM, lambda *_: pool.close())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(DataFlowTerminated, match="closed while its data was waited for"):
            pool.exchange()
    finally:
        signal.signal(signal.SIGALRM, usual)


@pytest.mark.parametrize("by_handler", [True, False])
def test_closing_a_flow_ends_a_pool_that_is_being_made(make, by_handler):
    flow, threads = functions.numbers(1), []
    pools = WorkerPools(flow)

    def make_meanwhile():
        if by_handler:
            pools.close()
        else:
            threads.append(in_thread(pools.close)[0])
        return make()

    pool = pools.take(make_meanwhile)
    for thread in threads:
        thread.join(LONG)
    assert pool.closed and multiprocessing.active_children() == []
    assert not pools.take(make).closed  # a flow can be used again
