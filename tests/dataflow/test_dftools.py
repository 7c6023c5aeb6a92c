"""The tools of 2017, above all the queue that a process fills: all of it, in order, or an error."""

import multiprocessing
import signal

import numpy as np
import pytest

from tensorpack.dataflow import DataFromGenerator, DataFromList, dftools
from tensorpack.dataflow.files.lmdb_file import dump_dataflow_to_lmdb
from tensorpack.dataflow.files.tfrecord import dump_dataflow_to_tfrecord
from tensorpack.utils import DIE, fix_rng_seed
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker_errors import WorkerTraceback
from tests.contracts.dataflow import assert_same
from tests.dataflow.flows import numbers
from tests.processes import wait_until

LONG = 60  # seconds; waited for in full only if the code is wrong


def failing():
    yield [0]
    raise ZeroDivisionError("of the flow")


@pytest.fixture
def make():
    """Makes queues and processes that are started, and ends all of them."""
    started = []

    def make_one(flow, size=10, nr_consumer=1):
        queue, process = dftools.dump_dataflow_to_process_queue(flow, size, nr_consumer)
        started.append((queue, process))
        process.start()
        return queue, process

    yield make_one
    for queue, process in started:
        ProcessGroup([process]).close()
        queue.close()


def take(queue):
    """All datapoints until the end."""
    return list(iter(lambda: queue.get(timeout=LONG), (DIE, None)))


def take_and_send(queue, connection):
    connection.send([number for number, _ in take(queue)])


def test_tools_for_files_and_images(tmp_path):
    assert dftools.dump_dataflow_to_lmdb is dump_dataflow_to_lmdb
    assert dftools.dump_dataflow_to_tfrecord is dump_dataflow_to_tfrecord
    pytest.importorskip("cv2")
    images = DataFromList([[i, np.full((4, 6, 3), i, np.uint8)] for i in range(4)], shuffle=False)
    assert dftools.dump_dataflow_images(images, str(tmp_path), 2, 1) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000.jpg", "001.jpg"]
    assert dftools.dump_dataflow_images(images, str(tmp_path), index=1) == 4


def test_all_datapoints_come_numbered_and_then_an_end_for_each_consumer(make):
    datapoints = [[1, np.arange(6, dtype=np.float32).reshape(2, 3)], {"pair": (1, None)}]
    queue, process = make(DataFromList(datapoints, shuffle=False), nr_consumer=2)
    assert_same(take(queue), list(enumerate(datapoints)))
    assert queue.get(timeout=LONG) == (DIE, None)
    process.join(LONG)
    assert process.exitcode == 0


def test_processes_that_consume(make):
    queue, _ = make(numbers(40), size=4, nr_consumer=2)
    context = multiprocessing.get_context("spawn")
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=take_and_send, args=(queue, sent))
    process.start()
    with ProcessGroup([process]), received, sent:
        here = [number for number, _ in take(queue)]
        assert received.poll(LONG), "the consumer still waits"
        there = received.recv()
        process.join(LONG)
    assert sorted(here + there) == list(range(40))
    assert here == sorted(here) and there == sorted(there)


def test_an_error_of_the_flow_reaches_every_consumer(make):
    queue, process = make(DataFromGenerator(failing), nr_consumer=2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="of the flow") as caught:
            take(queue)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "in failing" in str(caught.value.__cause__)
    process.join(LONG)
    assert process.exitcode == 1


def test_a_process_whose_queue_is_full_is_ended(make):
    queue, process = make(numbers(10**4), size=2)
    assert wait_until(queue.full, LONG)
    process.terminate()
    process.join(LONG)
    assert process.exitcode == 128 + signal.SIGTERM


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
