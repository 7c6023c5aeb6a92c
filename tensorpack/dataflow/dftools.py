"""The tools of 2017 that write a flow somewhere: to a file, as images, or into a queue.

Those for files are written beside the flows that read them again; here is their old address.
"""

import multiprocessing
import os
import queue as queues
import time
import weakref
from multiprocessing import util
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from typing import Any, Optional, Tuple

from tensorpack.utils import DIE
from tensorpack.utils.checks import check_counts
from tensorpack.utils.optional import require
from tensorpack.utils.rng import get_rng
from tensorpack.utils.serialize import dumps, load_frame
from tensorpack.utils.workers.worker import Worker, make_worker
from tensorpack.utils.workers.worker_errors import failure_from_bytes, failure_to_bytes

from ._flow import call_optional
from ._processes.start_method import choose_start_method
from ._processes.worker_loop import draw_seed, seed_process
from .base import DataFlow, DataFlowTerminated
from .files.images import dump_dataflow_images
from .files.lmdb_file import dump_dataflow_to_lmdb
from .files.records import encode_datapoint
from .files.tfrecord import dump_dataflow_to_tfrecord

__all__ = [
    "dump_dataflow_images",
    "dump_dataflow_to_lmdb",
    "dump_dataflow_to_process_queue",
    "dump_dataflow_to_tfrecord",
]

_END, _FAILED = -1, -2  # in place of the number of a datapoint
_SHORT_SECONDS = 0.5  # see _put
_RETRY_SECONDS = 0.001  # while another consumer reads
_JOIN_SECONDS = 2.0


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
    for data that will not come. A consumer may be killed while it waits; the others continue. One
    that reads must not be killed or interrupted, or the others may wait for ever.

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
      The queue, a `multiprocessing.Queue`, and the process, not started.
    """
    check_counts("dump_dataflow_to_process_queue", size=size, nr_consumer=nr_consumer)
    require("msgpack")
    method = choose_start_method(start_method)
    name = f"dump_dataflow_to_process_queue of {type(df).__name__}"
    queue = _FilledQueue(size, name)
    # What a process is to be given is forgotten here when it starts, so the writer is closed then.
    arguments = (queue, queue.give_writer(), df, nr_consumer, draw_seed(get_rng(df)))
    queue.worker = make_worker(_fill, arguments, name=name, method=method)
    return queue, queue.worker


class _FilledQueue(Queue):  # type: ignore[type-arg]
    """A queue that one worker fills, with frames; its consumers learn how the worker ended."""

    _reader: Any
    _writer: Any
    _thread: Any
    _close: Any

    def __init__(self, size: int, name: str) -> None:
        # Locks made by "spawn" can be sent to processes of every start method.
        super().__init__(size, ctx=multiprocessing.get_context("spawn"))
        self._set(name)
        util.register_after_fork(self, _FilledQueue._close_writer)

    def _set(self, name: str) -> None:
        self._name, self._maker = name, os.getpid()
        self.worker: Optional[Worker] = None
        self._failure: Optional[Exception] = None

    def __getstate__(self) -> Any:
        return super().__getstate__(), self._name

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state[0])
        self._set(state[1])

    def give_writer(self) -> Connection:
        """Returns the end that only the worker may have, so that the others see when it is gone."""
        writer = self._writer
        self._given = weakref.ref(writer)
        self.use_writer(Connection(os.open(os.devnull, os.O_WRONLY), readable=False))
        return writer

    def use_writer(self, writer: Connection) -> None:
        """Puts items into this end from now on."""
        self._writer, self._send_bytes = writer, writer.send_bytes

    def _close_writer(self) -> None:
        """Closes what a process that was forked before the worker was started has of it."""
        writer = self._given()
        if writer is not None and multiprocessing.current_process() is not self.worker:
            writer.close()

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Tuple[Any, Any]:
        """Returns the number of a datapoint and the datapoint; `(DIE, None)` at the end.

        Raises what ended the worker; `DataFlowTerminated` if that is not known here, or everything
        was taken; `queue.Empty` if nothing came in time.
        """
        seconds = 0.0 if not block else timeout
        end = None if seconds is None else time.monotonic() + seconds
        while self._failure is None:
            # This wait takes no lock, so a consumer may be killed meanwhile.
            if not self._reader.poll(None if end is None else max(0.0, end - time.monotonic())):
                raise queues.Empty
            try:
                number, frame = super().get(False)
            except queues.Empty:  # another consumer reads
                if end is not None and time.monotonic() >= end:
                    raise
                time.sleep(_RETRY_SECONDS)
            except (EOFError, OSError):  # the worker ended, perhaps within a datapoint
                if self._reader.closed:
                    raise
                self._failure = self._end_of_worker()
            else:
                content = load_frame(frame)
                if number != _FAILED:
                    return (DIE, None) if number == _END else (number, content)
                error = failure_from_bytes(content[0], self._name, content[1])
                self._failure = error or RuntimeError(f"{self._name} failed.")
        raise self._failure  # at each later call as well

    def close(self) -> None:
        """Closes the queue in this process. It does not end the worker; terminate that yourself."""
        super().close()
        if self._thread is None:  # else the worker is still to write what is in its buffer
            self._reader.close()
            self._writer.close()

    def _end_of_worker(self) -> Exception:
        worker = self.worker if os.getpid() == self._maker else None
        if worker is not None and worker.pid is not None:
            worker.join(_JOIN_SECONDS)
        return (worker and worker.error()) or DataFlowTerminated(
            f"{self._name} has ended, and nothing is left in its queue. If this consumer did not "
            "get its DIE, there are more consumers than nr_consumer, or the worker was killed; its "
            "exit code is known to the process that started it."
        )


def _fill(
    queue: _FilledQueue, writer: Connection, ds: DataFlow, nr_consumer: int, seed: int
) -> None:
    """What the worker does."""
    queue.use_writer(writer)
    failure: Optional[Exception] = None
    last = _END, dumps(None)
    problem = f" of {type(ds).__name__} cannot be sent"
    try:
        try:
            seed_process(seed)
            ds.reset_state()
            for number, datapoint in enumerate(ds):
                _put(queue, (number, encode_datapoint(datapoint, number, problem)))
        except Exception as error:
            failure, last = error, (_FAILED, dumps([failure_to_bytes(error), os.getpid()]))
        finally:
            call_optional(ds, "close")
        for _ in range(nr_consumer):
            _put(queue, last)
        queue.close()
        queue.join_thread()
    except BaseException:
        queue.cancel_join_thread()  # consumers that have left would keep the process
        # A signal that came while put() took its lock has left that locked, for ever; the end of
        # the queue, which the end of this process would bring about, waits for it.
        if queue._close is not None:
            queue._close.cancel()
        raise
    if failure is not None:
        raise failure


def _put(queue: _FilledQueue, item: Tuple[int, bytes]) -> None:
    """Puts an item as soon as there is room.

    A signal that comes just before the wait does not interrupt it, so waits are short.
    """
    while True:
        try:
            return queue.put(item, timeout=_SHORT_SECONDS)
        except queues.Full:
            continue
