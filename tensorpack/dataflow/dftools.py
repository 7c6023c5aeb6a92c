"""The tools of 2017 that write a flow somewhere: to a file, as images, or into a queue.

Those for files are written beside the flows that read them again; here is their old address.
"""

import functools
import multiprocessing
import os
import pickle
import queue as queues
import struct
import threading
import time
from contextlib import suppress
from multiprocessing import util
from multiprocessing.connection import Connection
from typing import Any, Optional, Tuple

from tensorpack.utils import DIE
from tensorpack.utils.checks import as_count
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

_END, _FAILED = -1, -2  # in place of the number of a datapoint
_NUMBER = struct.Struct("<q")
_SHORT_SECONDS = 0.5  # see _fill
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

    The process ends with this one at the latest, or by `tensorpack.utils.ensure_proc_terminate`. It
    is daemonic, so the flow cannot start processes of its own, unless you set
    `process.daemon = False` before it is started; then you have to end it.

    Args:
      df: the flow. It is reset in the process, and seeded from here.
      size: how many datapoints may wait in the queue; they are pickled.
      nr_consumer: how many consumers there are.
      start_method: as in `MultiProcessRunner`. It is chosen now: start the process before there are
        threads and a TensorFlow session, or give it.

    Returns:
      The queue, with the methods of a `multiprocessing.Queue` for consumers, and the process.
    """
    size = as_count("dump_dataflow_to_process_queue", "size", size)
    nr_consumer = as_count("dump_dataflow_to_process_queue", "nr_consumer", nr_consumer)
    method = choose_start_method(start_method)
    name = f"dump_dataflow_to_process_queue of {type(df).__name__}"
    queue = _FilledQueue(size, name)
    # What a process is to be given is forgotten here when it starts, so the writer is closed then.
    arguments = (queue, queue.take_writer(), df, nr_consumer, draw_seed(get_rng(df)))
    queue.worker = make_worker(_fill, arguments, name=name, method=method)
    return queue, queue.worker


class _FilledQueue:
    """A queue that one worker fills with frames; its consumers learn how the worker ended."""

    def __init__(self, size: int, name: str) -> None:
        # Locks made by "spawn" can be sent to processes of every start method.
        context = multiprocessing.get_context("spawn")
        self._rlock, self.room = context.Lock(), context.Semaphore(size)
        self._reader, self._writer = context.Pipe(duplex=False)
        self._size, self._name, self._maker = size, name, os.getpid()
        self.worker: Optional[Worker] = None
        self._failure: Optional[Exception] = None

    def __getstate__(self) -> Any:
        return {**vars(self), "worker": None, "_failure": None}

    def take_writer(self) -> Connection:
        """Returns the end that only the worker may have, so that the others see when it is gone."""
        writer = self.__dict__.pop("_writer")
        util.register_after_fork(writer, self._close_in_others)
        return writer

    def _close_in_others(self, writer: Connection) -> None:
        if multiprocessing.current_process() is not self.worker:
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
                item = self._read()
            except (EOFError, OSError):  # the worker ended, perhaps within a datapoint
                if self._reader.closed:
                    raise
                self._failure = self._end_of_worker()
                continue
            if item is None:
                if end is not None and time.monotonic() >= end:
                    raise queues.Empty
                time.sleep(_RETRY_SECONDS)
                continue
            (number,), content = _NUMBER.unpack_from(item), pickle.loads(item[_NUMBER.size :])
            if number != _FAILED:
                return (DIE, None) if number == _END else (number, content)
            error = failure_from_bytes(content[0], self._name, content[1])
            self._failure = error or RuntimeError(f"{self._name} failed.")
        raise self._failure  # at each later call as well

    get_nowait = functools.partialmethod(get, False)

    def qsize(self) -> int:
        return self._size - self.room.get_value()

    def empty(self) -> bool:
        return not self._reader.poll()

    def full(self) -> bool:
        return self.qsize() == self._size

    def close(self) -> None:
        """Closes the queue in this process. It does not end the worker; terminate that yourself."""
        self._reader.close()

    def _read(self) -> Optional[memoryview]:
        """Returns what comes next; None if another consumer reads it."""
        if not self._rlock.acquire(False):
            return None
        try:
            item = memoryview(self._reader.recv_bytes()) if self._reader.poll() else None
        finally:
            self._rlock.release()
        if item is not None:
            self.room.release()
        return item

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
    """What the worker does. A thread writes, so that up to `size` datapoints are made meanwhile."""
    waiting: queues.SimpleQueue[Optional[bytes]] = queues.SimpleQueue()
    thread = threading.Thread(target=_write, args=(waiting, writer), daemon=True)
    failure: Optional[Exception] = None
    last = _END, pickle.dumps(None)

    def put(number: int, frame: bytes) -> None:
        # A signal that comes just before a wait does not interrupt it, so waits are short.
        while not queue.room.acquire(timeout=_SHORT_SECONDS):
            pass
        waiting.put(_NUMBER.pack(number) + frame)
        if thread.ident is None:  # the flow has started its own processes by now
            thread.start()

    try:
        seed_process(seed)
        ds.reset_state()
        for number, datapoint in enumerate(ds):
            put(number, _pickled(datapoint, f"Datapoint {number} of {type(ds).__name__}"))
    except Exception as error:
        failure, last = error, (_FAILED, pickle.dumps([failure_to_bytes(error), os.getpid()]))
    finally:
        call_optional(ds, "close")
    for _ in range(nr_consumer):
        put(*last)
    waiting.put(None)
    queue.close()
    thread.join()
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


def _write(waiting: "queues.SimpleQueue[Optional[bytes]]", writer: Connection) -> None:
    with suppress(BrokenPipeError):  # no consumer is left
        for item in iter(waiting.get, None):
            writer.send_bytes(item)
