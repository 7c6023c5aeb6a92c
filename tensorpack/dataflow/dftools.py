"""The tools of 2017 that write a flow somewhere: to a file, as images, or into a queue."""

import multiprocessing
import sys
from multiprocessing.queues import Queue
from typing import Any, Optional, Tuple

from tensorpack.utils import DIE
from tensorpack.utils import viz as _viz
from tensorpack.utils.rng import get_rng
from tensorpack.utils.workers.worker import Worker
from tensorpack.utils.workers.worker_errors import failure_from_bytes, failure_to_bytes

from ._processes.start_method import choose_start_method
from ._processes.worker_loop import draw_seed, seed_process
from .base import DataFlow
from .files.lmdb_file import dump_dataflow_to_lmdb
from .files.tfrecord import dump_dataflow_to_tfrecord

__all__ = [
    "dump_dataflow_images",
    "dump_dataflow_to_lmdb",
    "dump_dataflow_to_process_queue",
    "dump_dataflow_to_tfrecord",
]


def dump_dataflow_images(
    df: DataFlow, dirname: str, max_count: Optional[int] = None, index: int = 0
) -> int:
    """Writes up to `max_count` images as `000.jpg`, ... to a folder; returns their number.

    Component `index` is `[h, w]`, `[h, w, 1]` or `[h, w, 3]` in BGR.
    """
    number = sys.maxsize if max_count is None else max_count
    return _viz.dump_dataflow_images(df, index, batched=False, number=number, output_dir=dirname)


def dump_dataflow_to_process_queue(df: DataFlow, size: int, nr_consumer: int) -> Tuple[Any, Worker]:
    """Returns a queue, and a process that puts one pass of a flow into it when you start it.

    `queue.get()` returns a number, from 0, and a datapoint, in threads or processes that get the
    queue as an argument. Behind the last one, `(DIE, None)` comes as often as there are consumers.
    If the flow fails, `get` raises its exception as often instead.

    Args:
      df: the flow. It is reset in the process, and seeded from here.
      size: how many datapoints may wait in the queue; they are pickled.
      nr_consumer: how many consumers there are.
    """
    queue = _FilledQueue(size)
    arguments = (queue, df, nr_consumer, draw_seed(get_rng(df)))
    name = "dump_dataflow_to_process_queue"
    return queue, Worker(_fill, arguments, name=name, method=choose_start_method())


class _FilledQueue(Queue):
    """A queue of numbers and datapoints; a failure has no number."""

    def __init__(self, size: int) -> None:
        # Locks made by "spawn" can be sent to processes of every start method.
        super().__init__(size, ctx=multiprocessing.get_context("spawn"))

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Tuple[Any, Any]:
        number, datapoint = super().get(block, timeout)
        if number is None:
            raise failure_from_bytes(*datapoint)
        return number, datapoint


def _fill(queue: _FilledQueue, df: DataFlow, nr_consumer: int, seed: int) -> None:
    """Runs in the process, which ends when a thread of the queue has written all."""
    try:
        seed_process(seed)
        df.reset_state()
        for item in enumerate(df):
            queue.put(item)
        for _ in range(nr_consumer):
            queue.put((DIE, None))
    except SystemExit:  # by `terminate`: it does not wait for consumers
        queue.cancel_join_thread()
        raise
    except Exception as error:
        worker = multiprocessing.current_process()
        for _ in range(nr_consumer):
            queue.put((None, (failure_to_bytes(error), worker.name, worker.pid)))
        raise
