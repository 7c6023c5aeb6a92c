"""The tools of 2017, above all the queue that a process fills: all of it, in order, or an error."""

import numpy as np
import pytest

from tensorpack.dataflow import DataFromGenerator, DataFromList, dftools
from tensorpack.dataflow.files.lmdb_file import dump_dataflow_to_lmdb
from tensorpack.dataflow.files.tfrecord import dump_dataflow_to_tfrecord
from tensorpack.utils import DIE
from tensorpack.utils.workers.processes import ProcessGroup
from tensorpack.utils.workers.worker_errors import WorkerTraceback
from tests.contracts.dataflow import assert_same

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


def test_an_error_of_the_flow_reaches_every_consumer(make):
    queue, process = make(DataFromGenerator(failing), nr_consumer=2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="of the flow") as caught:
            take(queue)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "in failing" in str(caught.value.__cause__)
    process.join(LONG)
    assert process.exitcode == 1
