"""Predictors that serve many callers: in batches, by threads; and in processes of their own."""

import threading
import time
from collections import deque
from concurrent.futures import Future
from multiprocessing.context import ForkProcess
from typing import Any, Callable, Deque, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.compat import is_closed
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import PerGraph
from tensorpack.tfutils.fed_input import to_strings
from tensorpack.utils.argtools import call_only_once
from tensorpack.utils.checks import as_count, as_list, check_kind
from tensorpack.utils.concurrency import DIE, ShareSessionThread

from .base import AsyncPredictorBase, OfflinePredictor, OnlinePredictor, check_count
from .config import PredictConfig

_WAITING_PER_PREDICTOR = 100  # requests; put_task then waits


_Request = Tuple[Sequence[Any], Future]  # a datapoint, and what will be its outputs


class MultiThreadAsyncPredictor(AsyncPredictorBase):
    """Answers single requests in batches, with a thread for each predictor.

    A free thread takes the requests that wait, at most `batch_size` and at least one, stacks them
    along a new first dimension, and gives each request its row of the outputs. If a batch fails,
    its requests are computed one by one, so that only those that are wrong get the error. When the
    session of a predictor closes, its requests are cancelled.

    If the predictors are those of a training, its end is theirs: `put_task` ends each thread that
    still calls it, other than the main one, as `sys.exit` does, so that such a thread no longer
    waits for requests. Those taken before are answered, and `train()` joins the threads.

    Where there is a default session at `start`, the threads and the callbacks of requests run under
    it.

    Args:
      predictors: `OnlinePredictor`s of the same inputs and outputs, all of which have a first
        dimension for the batch.
      batch_size: the number of requests in a batch, at most.
    """

    def __init__(self, predictors: Sequence[OnlinePredictor], batch_size: int = 5) -> None:
        self._predictors = as_list(self, "predictors", predictors)
        as_count(self, "the number of predictors", len(self._predictors))
        for predictor in self._predictors:
            check_kind("Each of the predictors", predictor, OnlinePredictor)
        self._batch_size = as_count(self, "batch_size", batch_size)
        self._room = _WAITING_PER_PREDICTOR * len(self._predictors)
        self._threads: List[threading.Thread] = []
        self._waiting: Deque[_Request] = deque()
        self._closed = False
        self._ended = False  # the training whose predictors these are
        self._changed = threading.Condition()  # guards the three above

    @call_only_once
    def start(self) -> None:
        """Starts the threads."""
        started.get(self._predictors[0].output_tensors[0].graph).append(self)
        has_session = tf.get_default_session() is not None
        for number, predictor in enumerate(self._predictors):
            name = f"{type(self).__name__}-{number}"
            thread = threading.Thread(target=self._work, args=(predictor,), name=name, daemon=True)
            thread = ShareSessionThread(thread) if has_session else thread
            thread.start()
            self._threads.append(thread)

    def put_task(
        self, dp: Sequence[Any], callback: Optional[Callable[[Future], Any]] = None
    ) -> Future:
        """Takes a request, whose arrays and outputs lack the dimension of the batch, see the base
        class; waits while too many others do, unless a callback makes it.

        Requests that come before `start` wait for it.

        Raises:
          RuntimeError: the predictor is closed.
        """
        check_count(dp, self._predictors[0].input_tensors)
        future: Future = Future()
        if callback is not None:
            future.add_done_callback(callback)
        thread = threading.current_thread()
        with self._changed:
            is_worker = thread in self._threads
            self._changed.wait_for(
                lambda: is_worker or self._closed or self._ended or len(self._waiting) < self._room
            )
            if self._ended and not is_worker and thread is not threading.main_thread():
                raise SystemExit
            if self._closed and not self._ended:
                raise RuntimeError(
                    f"This {type(self).__name__} is closed: put tasks before close()."
                )
            if not self._closed:
                self._waiting.append((dp, future))
                self._changed.notify_all()
                return future
        _cancel(future)
        return future

    def close(self) -> None:
        """Cancels the requests that wait, and joins the threads when they have finished theirs.

        May be called again, and on any thread.
        """
        self._close()

    def _end_training(self) -> None:
        """Ends the threads that go on putting tasks; called when the training is over."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _close(self, seconds: Optional[float] = None) -> None:
        """See `close`; waits for so long at most."""
        with self._changed:
            self._closed = True
            left, self._waiting = self._waiting, deque()
            self._changed.notify_all()
        for _, future in left:
            _cancel(future)
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def _work(self, predictor: OnlinePredictor) -> None:
        for requests in iter(self._take, []):
            # The state of a future is asked for once: it may change.
            _answer(predictor, [r for r in requests if not r[1].cancelled() or _cancel(r[1])])

    def _take(self) -> List[_Request]:
        """Waits for requests; returns none if the predictor is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            count = min(len(self._waiting), self._batch_size)
            self._changed.notify_all()
            return [self._waiting.popleft() for _ in range(count)]


started: PerGraph[List[MultiThreadAsyncPredictor]] = PerGraph(list)  # by their predictors' graph


def _answer(predictor: OnlinePredictor, requests: List[_Request]) -> None:
    if not requests:
        return
    try:
        rows = _compute(predictor, [dp for dp, _ in requests])
    except BaseException as error:  # a thread must not end while requests wait
        if isinstance(error, tf.errors.CancelledError) or is_closed(predictor.sess):
            for _, future in requests:
                _cancel(future)
        elif len(requests) > 1:
            for request in requests:
                _answer(predictor, [request])
        elif requests[0][1].set_running_or_notify_cancel():
            requests[0][1].set_exception(error)
        return
    for (_, future), row in zip(requests, rows):
        if future.set_running_or_notify_cancel():
            future.set_result(row)


def _cancel(future: Future) -> bool:
    future.cancel()
    return future.set_running_or_notify_cancel()  # False; for those who wait for several


def _compute(predictor: OnlinePredictor, datapoints: List[Sequence[Any]]) -> List[List[np.ndarray]]:
    columns = list(zip(*datapoints))
    for i, tensor in enumerate(predictor.input_tensors):
        if tensor.dtype == tf.string:
            columns[i] = tuple(map(to_strings, columns[i]))
    outputs = predictor._do_call([np.stack(column) for column in columns])
    for output, tensor in zip(outputs, predictor.output_tensors):
        if np.shape(output)[:1] != (len(datapoints),):
            raise ValueError(
                f"The output {tensor.name!r} has the shape {np.shape(output)} for a batch of "
                f"{len(datapoints)}: its first dimension must be that of the batch."
            )
    return [[output[i] for output in outputs] for i in range(len(datapoints))]


class MultiProcessPredictWorker(ForkProcess):
    """A process with the `OfflinePredictor` of a config as `predictor`, in the spelling of 2017.

    Override `run`, and call `_init_runtime` in it first. Start it before this process has a
    TensorFlow session or other threads: it is forked. What starts it joins it, as a `ProcessGroup`
    and `StartProcOrThread` do.
    """

    def __init__(self, idx: int, config: PredictConfig) -> None:
        super().__init__(name=f"{type(self).__name__}-{idx}")
        self.idx = idx
        self.config = config

    def _init_runtime(self) -> None:
        """Builds the predictor; called in the process."""
        self.predictor = OfflinePredictor(self.config)


class MultiProcessQueuePredictWorker(MultiProcessPredictWorker):
    """Predicts what comes in one queue of `multiprocessing` and puts the outputs into another.

    It takes pairs of an id and a datapoint, and puts pairs of the id and the outputs. The id `DIE`
    ends it; it puts `(DIE, None)` then. An exception ends it with the exit code 1.
    """

    def __init__(self, idx: int, inqueue: Any, outqueue: Any, config: PredictConfig) -> None:
        super().__init__(idx, config)
        self.inqueue = inqueue
        self.outqueue = outqueue

    def run(self) -> None:
        """What happens in the process; called by `start`."""
        self._init_runtime()
        with self.predictor:
            number, datapoint = self.inqueue.get()
            while number is not DIE:
                self.outqueue.put((number, self.predictor(*datapoint)))
                number, datapoint = self.inqueue.get()
        self.outqueue.put((DIE, None))
