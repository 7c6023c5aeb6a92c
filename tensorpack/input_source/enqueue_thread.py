"""Moves datapoints from a dataflow into a TensorFlow queue, on a thread."""

import math
import threading
from collections import deque
from contextlib import closing
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow, DataFlowTerminated
from tensorpack.tfutils.prepared import prepare
from tensorpack.tfutils.queues import control_of
from tensorpack.utils.concurrency import ShareSessionThread
from tensorpack.utils.packing.packed_arrays import aligned_empty, is_immutable
from tensorpack.utils.stopping import StopRequested

from .check import DatapointChecker
from .cursor import END_OF_PASS, FlowCursor, check_is_dataflow

_POLL_SECONDS = 0.02
_SMALL = 4096  # bytes; up to here aligning costs more than a second copy
# What running an op on a closed queue, or in a closed session, raises.
_CLOSED = (tf.errors.CancelledError, RuntimeError)


def private(array: np.ndarray) -> np.ndarray:
    """Returns an array that keeps the values `array` has now, whatever its producer does to it.

    TensorFlow does not copy an array that is fed if its memory begins at a multiple of 64 bytes: an
    element of a queue would then be the producer's own memory, which the producer may fill again.
    So what is enqueued is copied here, into aligned memory that TensorFlow takes over: there is one
    copy either way, and this one releases the interpreter's lock.

    This is `array` itself if it holds strings, which TensorFlow always copies, or `is_immutable`:
    allocate a large one aligned, fill it, and call `array.setflags(write=False)`.
    """
    if array.dtype.hasobject or is_immutable(array):
        return array
    if array.nbytes <= _SMALL:
        return array.copy()
    copy = aligned_empty(array.shape, array.dtype)
    np.copyto(copy, array)
    return copy


class Positions:
    """The latest `room` states of a dataflow by the number of datapoints, written by one thread and
    read by another; with None, all that were not forgotten.
    """

    def __init__(self, room: Optional[int]) -> None:
        self._lock = threading.Lock()
        self._states: Deque[Tuple[int, Optional[Dict[str, Any]]]] = deque(maxlen=room)

    def record(self, count: int, state: Optional[Dict[str, Any]]) -> None:
        """Remembers the state after the datapoint of this number; numbers go up by one."""
        with self._lock:
            self._states.append((count, state))

    def at(self, count: int) -> Optional[Dict[str, Any]]:
        """Returns the state after this datapoint (or KeyError), and forgets earlier ones."""
        self.forget(count)
        with self._lock:
            if not self._states or self._states[0][0] != count:
                raise KeyError(count)
            return self._states[0][1]

    def forget(self, before: float) -> None:
        """Forgets what belongs to datapoints before this number."""
        with self._lock:
            while self._states and self._states[0][0] < before:
                self._states.popleft()


class Enqueuer:
    """Takes datapoints of a dataflow, checks them, and puts them into a queue one by one.

    Made, with the arguments of `EnqueueThread`, while the graph can still be changed. One thread
    resets the dataflow and calls `begin`, any number of `take` and `put`, and `close`. Before that
    its `cursor` may be told where to begin.
    """

    def __init__(
        self, queue: Any, ds: DataFlow, placeholders: Sequence[tf.Tensor], signature: Any, cut: bool
    ) -> None:
        self.ds = check_is_dataflow(ds)
        self.cursor = FlowCursor(ds)
        self.control = control_of(queue)
        fed = self._placeholders = list(placeholders)
        specs = [tf.TensorSpec(tensor.shape, tensor.dtype, tensor.op.name) for tensor in fed]
        self._check = DatapointChecker(signature or specs, cut)
        with tf.device("/cpu:0"):
            self._enqueue_op = queue.enqueue(dict(zip(queue.names, fed)) if queue.names else fed)
        self._source: Any = None  # an iterator, from `begin` on
        self._pass_length: Optional[int] = None  # if passes are read one by one

    def read_by_pass(self, length: int) -> None:
        """Makes each pass have exactly so many datapoints; called before `begin`."""
        self._pass_length = length
        self.cursor = FlowCursor(self.ds, pass_length=length)

    def begin(self, sess: tf.Session) -> None:
        """Goes to where the cursor begins, which may take long. The dataflow has been reset."""
        self.put = prepare(
            sess, [self._enqueue_op], self._placeholders, in_caller=True, waits=True
        ).call_checked
        self._source = self.cursor.begin()

    def restart(self, count: int) -> None:
        """Leaves the pass and begins another; the next datapoint is the one after this number."""
        self.close()
        self._source = self.cursor.restart(count)

    def take(self) -> List[np.ndarray]:
        """Returns the arrays of the next datapoint, to be given to `put`, which enqueues them."""
        datapoint = next(self._source)
        if datapoint is END_OF_PASS:
            count = self.cursor.num_in_pass
            if count != self._pass_length:
                raise ValueError(
                    f"{type(self.ds).__name__} gave {count} datapoints in a pass, but should give "
                    f"{self._pass_length} by its length. Correct its __len__(), or read it without "
                    "a queue (FeedInput)."
                )
            datapoint = next(self._source)
        return [private(array) for array in self._check(datapoint)]

    def close(self) -> None:
        """Leaves the running pass over the dataflow."""
        if self._source is not None:
            self._source.close()


class EnqueueThread(ShareSessionThread):
    """Puts the datapoints of a dataflow into a queue, pass after pass, until it is asked to stop.

    Its owner starts it where the session is the default one, stops and joins it, and listens to its
    error with `guard_thread`. When it is asked to stop it enqueues nothing more and closes the
    queue, so that consumers do not wait for ever. If it waits for room in a full queue it sees the
    stop only when it gets some, so enter a `QueueDrain` before joining it.

    Args:
      queue: the `tf.QueueBase` to fill.
      ds: the dataflow; the thread calls its `reset_state`.
      placeholders: one for each component.
      signature, cut: see `DatapointChecker`; the former defaults to what the placeholders say.

    Attributes:
      enqueuer: does the work; may be used alone if the thread is not started.
      positions: the states of the dataflow for the datapoints that may be in the queue; None
        unless it is set before the thread starts.
      is_reset: an event, set when `reset_state` of the dataflow has returned, or will not.
    """

    def __init__(
        self,
        queue: Any,
        ds: DataFlow,
        placeholders: Sequence[tf.Tensor],
        signature: Optional[Sequence[tf.TensorSpec]] = None,
        cut: bool = False,
    ) -> None:
        super().__init__()
        self.name = "EnqueueThread"
        self.enqueuer = Enqueuer(queue, ds, placeholders, signature, cut)
        self.positions: Optional[Positions] = None
        self.is_reset = threading.Event()
        self._enqueue_lock = threading.Lock()  # held while the enqueue op runs
        self._restart_at: Optional[int] = None  # while `refill` runs: the count of what was used
        self._paused, self._resumed = threading.Event(), threading.Event()

    def run(self) -> None:
        """Fills the queue; called by `start`."""
        try:
            if not self.stopped():
                self._fill(self._sess)
        except StopRequested:
            pass  # the dataflow looked at the stop token of this run
        except DataFlowTerminated:
            if not self.stopped():
                raise
        finally:
            self.is_reset.set()
        self.close_queue()

    def stop(self) -> None:
        """Asks the thread to stop; closes the queue unless the thread is about to do so."""
        super().stop()
        # While it holds the lock it will come out, see the stop and close the queue. While it does
        # not, it is in the dataflow, perhaps for long, and a consumer may be waiting.
        if self._enqueue_lock.acquire(blocking=False):
            try:
                self.close_queue()
            finally:
                self._enqueue_lock.release()

    def refill(self, count: int, check_stop: Callable[[], None]) -> None:
        """Drops what waits in the queue, and fills it from another pass over the dataflow.

        To be called by the only consumer, which has consumed `count` datapoints. Waits until the
        dataflow has given one, and calls `check_stop`, which may raise, now and then.
        """
        self._paused.clear()
        self._resumed.clear()
        self._restart_at = count
        try:
            while self.is_alive() and not self._paused.wait(_POLL_SECONDS):
                check_stop()
                self.enqueuer.control.empty(self._sess)  # it may wait for room
            self.enqueuer.control.empty(self._sess)
        finally:
            self._restart_at = None
            self._resumed.set()

    def close_queue(self) -> None:
        """Closes the queue; after an error, once the stop token has the reason."""
        if self._sess is not None:
            self.enqueuer.control.close(self._sess)

    def _fill(self, sess: tf.Session) -> None:
        enqueuer = self.enqueuer
        enqueuer.ds.reset_state()
        start = enqueuer.cursor.start()
        from_scratch = start["count"] == 0 and start["flow"] is None
        if from_scratch:
            self._record()  # from here on the training continues, and may be saved
        self.is_reset.set()
        with closing(enqueuer):
            enqueuer.begin(sess)
            if not from_scratch:
                self._record()
            while True:
                arrays = enqueuer.take()
                if self.stopped():
                    return
                if self._restart_at is not None:
                    self._restart(self._restart_at)
                    continue
                # Before the enqueue: right after it a step may take the datapoint and be saved.
                self._record()
                if not self._put(arrays):
                    return

    def _restart(self, count: int) -> None:
        self.enqueuer.restart(count)
        if self.positions is not None:
            self.positions.forget(math.inf)
            self.positions.record(count, self.enqueuer.cursor.flow_state())
        self._paused.set()
        while not (self._resumed.wait(_POLL_SECONDS) or self.stopped()):
            pass

    def _record(self) -> None:
        if self.positions is not None:
            cursor = self.enqueuer.cursor
            self.positions.record(cursor.count, cursor.flow_state())

    def _put(self, arrays: List[np.ndarray]) -> bool:
        """Waits for room and enqueues; returns whether to continue."""
        with self._enqueue_lock:
            if self.stopped():
                return False
            try:
                self.enqueuer.put(*arrays)
            except _CLOSED as error:
                if self.stopped():
                    return False
                raise self.enqueuer.control.closed_for(self.name) from error
        return not self.stopped()
