"""The tools of 2017 that write a flow somewhere: to a file, as images, or into a queue.

Those for files are written beside the flows that read them again; here is their old address.
"""

from typing import Any, Optional, Tuple

from tensorpack.utils.checks import check_counts
from tensorpack.utils.optional import require
from tensorpack.utils.rng import get_rng
from tensorpack.utils.worker import Worker

from ._processes.queue import ProcessQueue, make_filler
from ._processes.start_method import choose_start_method
from ._processes.worker_loop import draw_seed
from .base import DataFlow
from .files.images import dump_dataflow_images
from .files.lmdb_file import dump_dataflow_to_lmdb
from .files.tfrecord import dump_dataflow_to_tfrecord

__all__ = [
    "dump_dataflow_images",
    "dump_dataflow_to_lmdb",
    "dump_dataflow_to_process_queue",
    "dump_dataflow_to_tfrecord",
]


def dump_dataflow_to_process_queue(
    df: DataFlow, size: int, nr_consumer: int, *, start_method: Optional[str] = None
) -> Tuple[Any, Worker]:
    """Makes a queue, and a process that puts one pass of a flow into it when you start it.

    Consumers call `queue.get()`. They may be threads, and processes that you start with the queue
    as an argument::

        queue, process = dump_dataflow_to_process_queue(df, size=100, nr_consumer=1)
        process.start()
        while True:
            number, datapoint = queue.get()
            if number is DIE:
                break

    Datapoints are numbered from 0. Behind the last one, `(DIE, None)` comes as often as there are
    consumers. If the flow fails, each of them gets its exception from `get` instead, with the
    traceback of the process; and an exception as well if the process is killed. No consumer waits
    for data that will not come. A consumer may be killed while it waits; the others continue. If
    that happens in the midst of reading a datapoint, they get an exception.

    The process ends with this one at the latest. To end it earlier, `process.terminate()` and
    `process.join()`, or `tensorpack.utils.ensure_proc_terminate`. It is daemonic, so the flow
    cannot start processes of its own, unless you set `process.daemon = False` before it is started;
    then you have to end it.

    Args:
      df: the flow. It is reset in the process, and seeded from here.
      size: how many datapoints may wait in the queue, at least one. They can consist of what a
        `MultiProcessRunner` can send.
      nr_consumer: how many consumers there are.
      start_method: "fork", "forkserver" or "spawn", as in `MultiProcessRunner`. It is chosen now:
        start the process before there are threads and a TensorFlow session, or give it. All but
        "fork" need a flow that can be pickled.

    Returns:
      The queue, and the process, not started.
    """
    check_counts("dump_dataflow_to_process_queue", size=size, nr_consumer=nr_consumer)
    require("msgpack")
    method = choose_start_method(start_method)
    seed = draw_seed(get_rng(df))
    queue = ProcessQueue(size, f"dump_dataflow_to_process_queue of {type(df).__name__}")
    return queue, make_filler(df, queue, nr_consumer, seed, method)
