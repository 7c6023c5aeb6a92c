"""Worker pools take orders and inputs, and report at once that a worker is gone."""

import fcntl
import gc
import multiprocessing
import os
import signal

import pytest

from tensorpack.dataflow import DataFlowTerminated
from tensorpack.dataflow._processes.channel import _NO_SLOT, _RECORD, Limits
from tensorpack.dataflow._processes.flows import WorkerPools
from tensorpack.dataflow._processes.pickled import pack
from tensorpack.dataflow._processes.pool import SEEDS, WorkerPool
from tensorpack.utils.workers.worker import state_of
from tensorpack.utils.workers.worker_errors import WorkerDied, WorkerFailed
from tests.dataflow import process_functions as functions
from tests.processes import LONG, gone, in_fork, in_thread, wait_until

LIMITS = Limits(4, 8, 1 << 24)
F_SETPIPE_SZ = 1031  # which `fcntl` has since Python 3.10
SMALLEST_PIPE = 4096  # bytes, of a kernel that has no more memory for pipes too; 102 records


@pytest.fixture
def make():
    """Makes pools; closes them at the end."""
    pools = []

    def make(target, *args, count=2, inputs=SEEDS, limits=LIMITS):
        each = [(index, *args) for index in range(count)]
        pool = WorkerPool(target, each, ("function", args), limits, "fork", "Pool", inputs)
        pools.append(pool)
        return pool

    yield make
    for pool in pools:
        pool.close()


def answering(make, function, **options):
    return make(functions.answer_with, function, inputs=LIMITS, **options)


def counting(make, numbers=100, **options):
    return make(functions.count_up, numbers, **options)


def order(pool, text):
    pool.begin([text] * len(pool._members))


def pids(pool):
    return [each.worker.pid for each in pool._members]


class TestOrders:
    @pytest.mark.parametrize("taken", [0, 1, 7, 100])
    def test_what_was_made_for_an_older_order_is_forgotten(self, make, taken):
        pool = counting(make)
        for text in "abc":
            order(pool, text)
            for _ in range(taken):
                assert pool.take()[1][0] == text
        order(pool, "last")
        assert sorted(pool.take()[1] for _ in range(200)) == [
            ["last", index, i] for index in range(2) for i in range(100)
        ]

    def test_orders_whose_results_are_not_taken_leave_none_behind(self, make):
        """A worker that cannot write takes no order."""
        pool = counting(make)
        for member in pool._members:
            fcntl.fcntl(member.results.records.fd, F_SETPIPE_SZ, SMALLEST_PIPE)

        def give_orders():
            for number in range(400):
                order(pool, str(number))
                assert pool.take()[1][0] == str(number)

        thread, errors = in_thread(give_orders)
        thread.join(LONG)
        assert not thread.is_alive()
        assert errors == []
        for member in pool._members:
            assert waiting_records(member.results) <= LIMITS.items
        assert pool.take()[1][0] == "399"


class TestAnswers:
    def test_work_goes_to_workers_with_room(self, make):
        pool = answering(make, functions.At(0, functions.stop))
        pool.begin()
        assert pool.send(pack([0]), 0)
        assert wait_until_stopped(pool, 0)
        sent = 1
        while sent < 100:  # far more than there is room for at the one that is stopped
            if pool.send(pack([1]), sent):
                sent += 1
            else:
                assert pool.take(room=True) in (None, *((tag, [1]) for tag in range(200)))
        assert pool._members[0].in_flight <= 1 + LIMITS.items

    def test_room_is_heard_of_without_a_result(self, make):
        """An input's memory comes back a little after its result."""
        pool = make(functions.answer_with, functions.nothing, count=1, inputs=Limits(1, 1, 1 << 20))
        pool.begin()
        for number in range(200):
            while not pool.send(pack(functions.whole_array([number])), number):
                assert pool.take(room=True) is None
            assert pool.take() == (number, None)


def wait_until_stopped(pool, index):
    return wait_until(lambda: state_of(pids(pool)[index]).startswith("stopped"), LONG)


def waiting_records(receiver):
    """How many records were received and not taken."""
    count, at = 0, receiver._begin
    while at < len(receiver._data):
        slot, _, _, nbytes, _ = _RECORD.unpack_from(receiver._data, at)
        at += _RECORD.size + nbytes * (slot == _NO_SLOT)
        count += 1
    return count


def wait_for_records(pool, index, count):
    """Waits until so many are there to be taken."""

    def there():
        pool._wait(pool._poll, False)
        return waiting_records(pool._members[index].results) >= count

    assert wait_until(there)


class TestEnds:
    def test_what_it_had_sent_comes_first(self, make):
        pool = counting(make, 5)
        order(pool, "a")
        for index in range(2):
            wait_for_records(pool, index, 5)
        for pid in pids(pool):
            os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda: all(gone(pid) for pid in pids(pool)))
        found = [pool.take()[1] for _ in range(10)]
        assert sorted(found) == [["a", index, i] for index in range(2) for i in range(5)]
        with pytest.raises(WorkerDied, match="SIGKILL"):
            pool.take()

    def test_an_order_for_a_worker_that_is_gone(self, make):
        pool = counting(make, 5)
        os.kill(pids(pool)[1], signal.SIGKILL)
        assert wait_until(lambda: gone(pids(pool)[1]))
        with pytest.raises(WorkerDied, match="'Pool 1'.*SIGKILL"):
            order(pool, "a")
            while True:
                pool.take()
        assert pool.closed

    def test_an_input_for_a_worker_that_left_does_not_hide_where(self, make):
        pool = answering(make, functions.At(0, functions.leave), count=1)
        assert pool.send(pack([0]), 0)
        assert wait_until(lambda: gone(pids(pool)[0]))
        with pytest.raises(WorkerFailed, match="SystemExit: 3") as caught:
            pool.send(pack([1]), 1)
        assert "in leave" in str(caught.value.__cause__)

    def test_an_input_for_a_worker_that_is_gone(self, make):
        pool = answering(make, functions.same, count=1)
        os.kill(pids(pool)[0], signal.SIGKILL)
        assert wait_until(lambda: gone(pids(pool)[0]))
        with pytest.raises(WorkerDied, match="SIGKILL"):
            while True:
                pool.send(pack([1]), 0)


class TestClose:
    def test_while_there_is_no_room_for_an_order(self, make):
        pool = counting(make)
        os.kill(pids(pool)[0], signal.SIGSTOP)

        def give_orders():
            while True:
                order(pool, "a" * 3000)  # which nothing reads

        thread, errors = in_thread(give_orders)
        assert wait_until(lambda: pool._members[0].inputs._waiting > 10)
        pool.close()
        thread.join(LONG)
        assert [type(error) for error in errors] == [DataFlowTerminated]

    def test_by_a_signal_handler_while_it_waits(self, make):
        pool = answering(make, functions.same)
        usual = signal.signal(signal.SIGALRM, lambda *_: pool.close())
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(DataFlowTerminated, match="closed while its data was waited for"):
                pool.take()
        finally:
            signal.signal(signal.SIGALRM, usual)

    def test_only_the_first_call_closes(self, make):
        pool = counting(make)
        assert not pool.closed
        assert pool.close() is True
        assert pool.close() is False
        for call in (
            lambda: order(pool, "a"),
            lambda: pool.send(pack(1), 0),
            pool.take,
        ):
            with pytest.raises(DataFlowTerminated):
                call()

    def test_two_threads_close_it(self, make):
        pool = make(functions.hang_at_input)
        threads = [in_thread(pool.close) for _ in range(4)]
        for thread, errors in threads:
            thread.join(LONG)
            assert errors == []
        assert all(gone(pid) for pid in pids(pool))

    def test_a_forked_copy_leaves_the_workers_alone(self, make):
        pool = counting(make)
        order(pool, "a")

        def use():
            for take in pool.take, lambda: order(pool, "b"):
                with pytest.raises(DataFlowTerminated, match="to the process that began it"):
                    take()
            pool.close()

        assert in_fork(use)
        assert sorted(pool.take()[1] for _ in range(200))[-1] == ["a", 1, 99]


def test_workers_do_not_hold_what_leads_to_others(make):
    """Or the memory and the pipes of one would stay as long as all others."""
    counting(make, count=1).close()  # starts the helper process of multiprocessing
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    pools = [counting(make, count=count) for count in (1, 3)]
    order(pools[1], "a")
    for index in range(3):
        wait_for_records(pools[1], index, 1)  # it has begun
    opened = [len(os.listdir(f"/proc/{pid}/fd")) - before for pid in pids(pools[1])]
    # A worker has memory for each slot, mapped or not, two ends of pipes for each channel, three of
    # its worker class, and a sentinel or two of each worker that was started before.
    own = 2 * LIMITS.slots + 2 + 2 + 3
    assert opened[-1] <= own + 2 * 4


def test_closing_a_flow_ends_a_pool_that_is_being_made(make):
    flow = functions.numbers(1)
    pools = WorkerPools(flow)

    def make_and_close():
        pool = counting(make)
        pools.close()
        return pool

    with pytest.raises(DataFlowTerminated, match="closed while its processes were"):
        pools.take(make_and_close)
    assert multiprocessing.active_children() == []
