"""The tools of 2017 that write a flow somewhere: to a file, as images, or into a queue.

Those for files are written beside the flows that read them again; here is their old address.
"""

import multiprocessing
import os
import pickle
import queue as queues
from multiprocessing.queues import Queue
from typing import Any, Optional, Tuple

from tensorpack.utils import DIE
from tensorpack.utils.rng import get_rng
from tensorpack.utils.workers.worker import Worker, make_worker
from tensorpack.utils.workers.worker_errors import failure_from_bytes, failure_to_bytes

from ._flow import call_optional
from ._processes.start_method import choose_start_method, find_unpicklable
from ._processes.worker_loop import draw_seed, seed_process
from .base import DataFlow, DataFlowTerminated
from .files.images import dump_dataflow_images
from .files.lmdb_file import dump_dataflow_to_lmdb
from .files.tfrecord import dump_dataflow_to_tfrecord

__all__ = [
    "dump_dataflow_images",
    "dump_dataflow_to_lmdb",
    "dump_dataflow_to_process_queue",
    "dump_dataflow_to_tfrecord",
]

_LOOK_SECONDS = 0.5  # how often `get` looks whether the worker lives


def dump_dataflow_to_process_queue(
    df: DataFlow, size: int, nr_consumer: int, *, start_method: Optional[str] = None
) -> Tuple[Any, Worker]:
    """Makes a queue, and a process that puts one pass of a flow into it when you start it.

    Consumers, threads or processes that get the queue as an argument, call `queue.get()`::

        queue, process = dump_dataflow_to_process_queue(df, size=100, nr_consumer=1)
        process.start()
        while True:
            number, datapoint = queue.get()
            if number is DIE:
                break

    Datapoints are numbered from 0. Behind the last one, `(DIE, None)` comes as often as there are
    consumers. If the flow fails, each of them gets its exception from `get` instead. In this
    process, `get` also fails if the other was killed, unless that was in the midst of a datapoint;
    other processes wait on. A consumer must not be killed in `get`, or the others wait as well.

    The process ends with this one at the latest, or by `terminate`. It is daemonic, so the flow
    cannot start processes of its own, unless you set `process.daemon = False` before the start.

    Args:
      df: the flow. It is reset in the process, and seeded from here.
      size: how many datapoints may wait in the queue; they are pickled.
      nr_consumer: how many consumers there are.
      start_method: as in `MultiProcessRunner`.

    Returns:
      A `multiprocessing.Queue` and the process.
    """
    method = choose_start_method(start_method)
    queue = _FilledQueue(size)
    arguments = (queue, df, nr_consumer, draw_seed(get_rng(df)))
    name = f"dump_dataflow_to_process_queue of {type(df).__name__}"
    queue.worker = make_worker(_fill, arguments, name=name, method=method)
    return queue, queue.worker


class _FilledQueue(Queue):
    """A queue of pickled datapoints, and of failures, whose number is None."""

    worker: Optional[Worker] = None  # known where it was made

    def __init__(self, size: int) -> None:
        # Locks made by "spawn" can be sent to processes of every start method.
        super().__init__(size, ctx=multiprocessing.get_context("spawn"))
        self._maker = os.getpid()

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Tuple[Any, Any]:
        limited = not block or timeout is not None
        while True:
            worker = self.worker if self.worker and self._maker == os.getpid() else None
            ended = worker is not None and worker.exitcode is not None
            try:
                number, content = super().get(block, timeout if limited else _LOOK_SECONDS)
                break
            except queues.Empty:
                if worker is not None and ended and self.empty():
                    raise worker.error() or DataFlowTerminated(
                        f"{worker.name} has ended, and nothing is left in its queue: there are "
                        "more consumers than nr_consumer."
                    ) from None
                if limited:
                    raise
        if number is None:
            raise failure_from_bytes(*content)
        return number, pickle.loads(content)


def _fill(queue: _FilledQueue, ds: DataFlow, nr_consumer: int, seed: int) -> None:
    """What the worker does; it is left when a thread of the queue has written all."""
    failure: Optional[Exception] = None
    last: Tuple[Any, Any] = (DIE, pickle.dumps(None))
    try:
        try:
            seed_process(seed)
            ds.reset_state()
            for number, datapoint in enumerate(ds):
                name = f"Datapoint {number} of {type(ds).__name__}"
                queue.put((number, _pickled(datapoint, name)))
        except Exception as error:
            worker = multiprocessing.current_process()
            failure, last = error, (None, (failure_to_bytes(error), worker.name, worker.pid))
        finally:
            call_optional(ds, "close")
        for _ in range(nr_consumer):
            queue.put(last)
    except SystemExit:  # told to leave, so it does not wait for consumers
        queue.cancel_join_thread()
        raise
    if failure is not None:
        raise failure


def _pickled(datapoint: Any, name: str) -> bytes:
    try:
        return pickle.dumps(datapoint, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        found = find_unpicklable(datapoint, name)
        if found is None:
            raise
        raise TypeError(f"{found.path} cannot be sent: {found.reason}.") from error
