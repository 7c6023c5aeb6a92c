"""The tools of 2017, above all the queue that a process fills: all of it, in order, or an error."""

import itertools
import multiprocessing
import os
import queue as queues
import signal
import threading
import time

import numpy as np
import pytest

from tensorpack.dataflow import (
    DataFlow,
    DataFlowTerminated,
    DataFromGenerator,
    DataFromList,
    dftools,
)
from tensorpack.dataflow.dftools import dump_dataflow_to_process_queue
from tensorpack.dataflow.files.images import dump_dataflow_images
from tensorpack.dataflow.files.lmdb_file import dump_dataflow_to_lmdb
from tensorpack.dataflow.files.tfrecord import dump_dataflow_to_tfrecord
from tensorpack.utils import DIE, fix_rng_seed
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker_errors import WorkerDied, WorkerTraceback
from tests.contracts.dataflow import assert_same
from tests.dataflow.flows import numbers
from tests.processes import in_thread, wait_until
from tests.tiers import first_fast

LONG = 60  # seconds; waited for in full only if the code is wrong
KINDS = [
    [1, np.arange(6, dtype=np.float32).reshape(2, 3)],
    {"name": "text", "pair": (1, None), "empty": np.zeros((0, 2))},
    (b"bytes", np.full((300, 300), 7, np.uint8), 2.5, True),
]


def failing():
    yield [0]
    yield [1]
    raise ZeroDivisionError("of the flow")


class Endless(DataFlow):
    """Counts how many datapoints it has made, in memory that processes share."""

    def __init__(self, size=1):
        self.made = multiprocessing.RawValue("q", 0)
        self._size = size

    def __iter__(self):
        for number in itertools.count():
            self.made.value = number + 1
            yield [np.zeros(self._size, np.uint8)]


class Closing(DataFromList):
    """Writes into the file that it has as its datapoint when it is closed."""

    def close(self):
        with open(self.lst[0], "a") as file:
            file.write("closed")


@pytest.fixture
def make():
    """Makes queues and processes, and ends all of them."""
    made = []

    def make_one(flow, size=10, nr_consumer=1, start=True, **options):
        queue, process = dump_dataflow_to_process_queue(flow, size, nr_consumer, **options)
        made.append((queue, process))
        if start:
            process.start()
        return queue, process

    yield make_one
    for queue, process in made:
        ProcessGroup([process]).close()
        queue.close()


def take(queue):
    """All datapoints until the end."""
    return list(iter(lambda: queue.get(timeout=LONG), (DIE, None)))


def take_until_error(queue, connection):
    """What a consumer in another process does; it sends what it got, and how that ended."""
    taken = []
    try:
        while True:
            number, _ = queue.get(timeout=LONG)
            if number is DIE:
                connection.send((taken, "DIE"))
                return
            taken.append(number)
    except Exception as error:
        try:
            queue.get(timeout=LONG)
        except type(error):  # as often as it is asked
            connection.send((taken, type(error).__name__))


class Consumer:
    """A process that takes from a queue."""

    def __init__(self, method, queue):
        context = multiprocessing.get_context(method)
        self._received, sent = context.Pipe(duplex=False)
        self._process = context.Process(target=take_until_error, args=(queue, sent))
        self._process.start()
        sent.close()

    def end(self):
        """Returns what it got."""
        with ProcessGroup([self._process]):
            assert self._received.poll(LONG), "the consumer still waits"
            result = self._received.recv()
            self._process.join(LONG)
        self._received.close()
        return result


def test_the_tools_are_those_that_are_written_elsewhere():
    assert dftools.dump_dataflow_to_lmdb is dump_dataflow_to_lmdb
    assert dftools.dump_dataflow_to_tfrecord is dump_dataflow_to_tfrecord
    assert dftools.dump_dataflow_images is dump_dataflow_images


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_all_datapoints_come_numbered_and_then_the_end(make, method):
    queue, process = make(DataFromList(KINDS, shuffle=False), start_method=method, nr_consumer=2)
    taken = take(queue)
    assert_same(taken, list(enumerate(KINDS)))
    taken[0][1][1][:] = 0  # arrays may be written to
    assert queue.get(timeout=LONG) == (DIE, None)
    process.join(LONG)
    assert process.exitcode == 0
    with pytest.raises(DataFlowTerminated, match="more consumers than nr_consumer"):
        queue.get()


def test_nothing_happens_before_the_process_is_started(make):
    flow = Endless()
    queue, process = make(flow, start=False)
    assert process.pid is None
    for get in queue.get_nowait, lambda: queue.get(False), lambda: queue.get(timeout=0.05):
        with pytest.raises(queues.Empty):
            get()
    assert queue.empty() and queue.qsize() == 0 and not queue.full()
    assert flow.made.value == 0
    process.start()
    assert queue.get(timeout=LONG)[0] == 0


@pytest.mark.parametrize("nbytes", [1, 10**6])  # the pipe itself has room for some 64 kB
def test_as_many_as_size_are_made_ahead_however_large_they_are(make, nbytes):
    flow = Endless(nbytes)
    queue, _ = make(flow, size=3)
    assert wait_until(queue.full, LONG)
    assert queue.qsize() == 3
    assert 3 <= flow.made.value <= 4  # one more is at hand
    for number in range(10):
        assert queue.get(timeout=LONG)[0] == number
    assert flow.made.value <= 14


@pytest.mark.parametrize("method", first_fast(["fork", "spawn"]))
def test_processes_that_consume(make, method):
    queue, process = make(numbers(40), size=4, nr_consumer=2, start=False, start_method=method)
    consumers = [Consumer("spawn", queue), Consumer("fork", queue)]
    process.start()
    (first, end), (second, other_end) = [consumer.end() for consumer in consumers]
    assert sorted(first + second) == list(range(40))
    assert first == sorted(first) and second == sorted(second)
    assert end == other_end == "DIE"


def test_an_error_of_the_flow_reaches_every_consumer(make):
    queue, process = make(DataFromGenerator(failing), nr_consumer=2, size=1)
    other = Consumer("fork", queue)
    taken = []
    with pytest.raises(ZeroDivisionError, match="of the flow") as caught:
        while True:
            taken.append(queue.get(timeout=LONG)[0])
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "in failing" in str(caught.value.__cause__)
    of_other, its_end = other.end()
    assert sorted(taken + of_other) == [0, 1]
    assert its_end == "ZeroDivisionError"
    with pytest.raises(ZeroDivisionError, match="of the flow"):  # as often as it is asked
        queue.get()
    process.join(LONG)
    assert process.exitcode == 1


def test_a_datapoint_that_cannot_be_sent(make):
    queue, _ = make(DataFromList([[1], [2, threading.Lock()]], shuffle=False))
    assert queue.get(timeout=LONG) == (0, [1])
    with pytest.raises(TypeError, match=r"Datapoint 1 of DataFromList\[1\] cannot be sent: .*lock"):
        queue.get(timeout=LONG)


def test_a_process_that_is_killed(make):
    queue, process = make(Endless(10**6), size=2)
    other = Consumer("fork", queue)
    queue.get(timeout=LONG)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        while True:
            queue.get(timeout=LONG)
    with queue._rlock:  # told also while another consumer reads
        with pytest.raises(WorkerDied, match="SIGKILL"):
            queue.get_nowait()
    assert other.end()[1] == "DataFlowTerminated"


def test_a_timeout_holds_while_another_consumer_reads(make):
    queue, _ = make(Endless(), size=2)
    assert queue._reader.poll(LONG)
    with queue._rlock:
        for get in queue.get_nowait, lambda: queue.get(timeout=0.05):
            with pytest.raises(queues.Empty):
                get()
    assert queue.get(timeout=LONG)[0] == 0


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("nbytes", [10, 10**7])  # the latter is killed in the midst of a datapoint
def test_a_killed_process_is_noticed_without_a_local_consumer(make, nbytes, first):
    flow = Endless(nbytes)
    queue, process = make(flow, size=2, start=not first)
    consumer = Consumer("fork", queue)
    if first:
        process.start()
    assert wait_until(lambda: flow.made.value > 3, LONG)
    os.kill(process.pid, signal.SIGKILL)
    assert consumer.end()[1] == "DataFlowTerminated"


def test_a_consumer_that_is_killed_while_it_waits_blocks_no_other(make):
    queue, process = make(numbers(3), start=False)
    consumer = multiprocessing.get_context("fork").Process(target=queue.get)
    consumer.start()
    time.sleep(0.2)  # it waits by now; anywhere before will do
    consumer.kill()
    consumer.join(LONG)
    process.start()
    assert [number for number, _ in take(queue)] == [0, 1, 2]


def test_threads_and_processes_that_consume_get_everything_once(make):
    queue, _ = make(numbers(600), size=20, nr_consumer=4)
    others = [Consumer("fork", queue) for _ in range(2)]
    found = []
    for thread, errors in [in_thread(lambda: found.extend(take(queue))) for _ in range(2)]:
        thread.join(LONG)
        assert errors == []
    taken = [number for number, _ in found]
    for other in others:
        of_other, end = other.end()
        taken += of_other
        assert end == "DIE"
    assert sorted(taken) == list(range(600))


def test_it_is_terminated_without_a_consumer(make):
    queue, process = make(Endless(10**6), size=2)
    assert wait_until(queue.full, LONG)
    process.terminate()
    process.join(LONG)
    assert process.exitcode == 128 + signal.SIGTERM


def test_a_closed_queue_gives_nothing(make):
    queue, _ = make(Endless(10**6), size=2)
    queue.get(timeout=LONG)
    queue.close()
    with pytest.raises(OSError, match="closed"):
        queue.get()


def test_the_flow_is_closed(make, tmp_path):
    queue, process = make(Closing([str(tmp_path / "log")]))
    assert take(queue) == [(0, str(tmp_path / "log"))]
    process.join(LONG)
    assert (tmp_path / "log").read_text() == "closed"


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_the_data_comes_again_from_a_seed(make, method):
    def shuffled():
        queue, _ = make(DataFromList([[i] for i in range(20)]), start_method=method)
        return [datapoint for _, (datapoint,) in take(queue)]

    fix_rng_seed(3)
    first, other = shuffled(), shuffled()
    fix_rng_seed(3)
    assert shuffled() == first
    assert sorted(first) == list(range(20))
    assert other != first


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"size": 0}, ValueError, "size must be a whole number of at least 1, but got 0"),
        ({"start_method": "thread"}, ValueError, "'thread'"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        dump_dataflow_to_process_queue(numbers(1), **{"size": 1, "nr_consumer": 1, **arguments})
