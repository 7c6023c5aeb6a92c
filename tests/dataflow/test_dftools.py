"""The tools of 2017, above all the queue that a process fills: all of it, in order, or an error."""

import multiprocessing
import os
import signal
import threading

import numpy as np
import pytest

from tensorpack.dataflow import DataFlowTerminated, DataFromGenerator, DataFromList, dftools
from tensorpack.dataflow.dftools import dump_dataflow_to_process_queue
from tensorpack.dataflow.files.images import dump_dataflow_images
from tensorpack.dataflow.files.lmdb_file import dump_dataflow_to_lmdb
from tensorpack.dataflow.files.tfrecord import dump_dataflow_to_tfrecord
from tensorpack.utils import DIE, fix_rng_seed
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker_errors import WorkerDied, WorkerTraceback
from tests.contracts.dataflow import assert_same
from tests.dataflow.flows import numbers
from tests.processes import wait_until

LONG = 60  # seconds; waited for in full only if the code is wrong


def failing():
    yield [0]
    yield [1]
    raise ZeroDivisionError("of the flow")


class Closing(DataFromList):
    """Writes into the file that it has as its datapoint when it is closed."""

    def close(self):
        with open(self.lst[0], "a") as file:
            file.write("closed")


@pytest.fixture
def make():
    """Makes queues and processes that are started, and ends all of them."""
    made = []

    def make_one(flow, size=10, nr_consumer=1, **options):
        queue, process = dump_dataflow_to_process_queue(flow, size, nr_consumer, **options)
        made.append((queue, process))
        process.start()
        return queue, process

    yield make_one
    for queue, process in made:
        ProcessGroup([process]).close()
        queue.close()


def take(queue):
    """All datapoints until the end."""
    return list(iter(lambda: queue.get(timeout=LONG), (DIE, None)))


def take_and_send(queue, connection):
    """What a consumer in another process does; it sends what it got, or the kind of its error."""
    try:
        connection.send([number for number, _ in take(queue)])
    except Exception as error:
        connection.send(type(error).__name__)


def consume(method, queue):
    """Starts a process that takes from a queue, and returns a function that waits for the end."""
    context = multiprocessing.get_context(method)
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=take_and_send, args=(queue, sent))
    process.start()
    sent.close()

    def end():
        with ProcessGroup([process]), received:
            assert received.poll(LONG), "the consumer still waits"
            result = received.recv()
            process.join(LONG)
        return result

    return end


def test_the_tools_are_those_that_are_written_elsewhere():
    assert dftools.dump_dataflow_to_lmdb is dump_dataflow_to_lmdb
    assert dftools.dump_dataflow_to_tfrecord is dump_dataflow_to_tfrecord
    assert dftools.dump_dataflow_images is dump_dataflow_images


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_all_datapoints_come_numbered_and_then_an_end_for_each_consumer(make, method):
    datapoints = [[1, np.arange(6, dtype=np.float32).reshape(2, 3)], {"pair": (1, None)}]
    flow = DataFromList(datapoints, shuffle=False)
    queue, process = make(flow, start_method=method, nr_consumer=2)
    assert_same(take(queue), list(enumerate(datapoints)))
    assert queue.get(timeout=LONG) == (DIE, None)
    process.join(LONG)
    assert process.exitcode == 0
    with pytest.raises(DataFlowTerminated, match="more consumers than nr_consumer"):
        queue.get()


def test_as_many_as_size_are_made_ahead_however_large_they_are(make):
    made = multiprocessing.RawValue("q", 0)  # in memory that processes share

    def large():
        for made.value in range(1, 100):
            yield [np.zeros(10**6, np.uint8)]  # the pipe itself has room for some 64 kB

    queue, process = make(DataFromGenerator(large), size=3, start_method="fork")
    assert wait_until(queue.full, LONG)
    assert queue.qsize() == 3
    assert 3 <= made.value <= 4  # one more is at hand
    for number in range(10):
        assert queue.get(timeout=LONG)[0] == number
    assert made.value <= 14
    process.terminate()  # it does not wait for a consumer
    process.join(LONG)
    assert process.exitcode == 128 + signal.SIGTERM


def test_processes_that_consume(make):
    queue, _ = make(numbers(40), size=4, nr_consumer=2)
    first, second = [end() for end in [consume("spawn", queue), consume("fork", queue)]]
    assert sorted(first + second) == list(range(40))
    assert first == sorted(first) and second == sorted(second)


def test_an_error_of_the_flow_reaches_every_consumer(make):
    queue, process = make(DataFromGenerator(failing), nr_consumer=2, start_method="fork")
    with pytest.raises(ZeroDivisionError, match="of the flow") as caught:
        take(queue)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "in failing" in str(caught.value.__cause__)
    assert consume("fork", queue)() == "ZeroDivisionError"
    process.join(LONG)
    assert process.exitcode == 1
    with pytest.raises(ZeroDivisionError, match="of the flow"):  # as often as it is asked
        queue.get()


def test_a_datapoint_that_cannot_be_sent(make):
    flow = DataFromList([[1], [2, threading.Lock()]], shuffle=False)
    queue, _ = make(flow, start_method="fork")
    assert queue.get(timeout=LONG) == (0, [1])
    with pytest.raises(TypeError, match=r"Datapoint 1 of DataFromList\[1\] cannot be sent: .*lock"):
        queue.get(timeout=LONG)


def test_a_process_that_is_killed(make):
    queue, process = make(numbers(10**4), size=2)
    assert wait_until(queue.full, LONG)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        while True:
            queue.get()


def test_the_flow_is_closed(make, tmp_path):
    queue, process = make(Closing([str(tmp_path / "log")]))
    assert take(queue) == [(0, str(tmp_path / "log"))]
    process.join(LONG)
    assert (tmp_path / "log").read_text() == "closed"


def test_the_data_comes_again_from_a_seed(make):
    def shuffled():
        queue, _ = make(DataFromList([[i] for i in range(20)]))
        return [datapoint for _, (datapoint,) in take(queue)]

    fix_rng_seed(3)
    first, other = shuffled(), shuffled()
    fix_rng_seed(3)
    assert shuffled() == first
    assert sorted(first) == list(range(20))
    assert other != first
