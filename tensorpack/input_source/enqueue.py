"""Inputs through a TensorFlow queue, which a thread fills ahead of the training."""

from typing import Any, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow, RemoteDataZMQ
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count, check_kind

from .base import FeedfreeInput
from .cursor import check_is_dataflow
from .dequeue import ConsumedCount
from .enqueue_callback import EnqueueCallback
from .enqueue_thread import EnqueueThread
from .feed import make_placeholders


class QueueInput(FeedfreeInput):
    """Datapoints that are made ahead of the training and wait in a queue.

    An `EnqueueThread` iterates the dataflow again and again and fills the queue; each step takes
    one datapoint. The summary `input_queue_size` is the size of the queue: if that is near zero,
    the data is too slow. Datapoints are checked against the model's inputs, see
    `DatapointChecker`, and copied unless they are read-only.

    A resumed run continues after the last datapoint that a step has taken: datapoints that waited
    in the queue are made again, or lost if the queue does not keep their order. In a deterministic
    run there is no thread: a datapoint is made when a step needs it.

    Args:
      ds: the dataflow. An error in it ends the training.
      queue: a `tf.QueueBase` of the same graph, whose components have the dtypes of the model's
        inputs. Defaults to a `tf.FIFOQueue` named `input_queue`.
      capacity: how many datapoints the default queue has room for, 50 if it is not given.

    Attributes:
      ds: the dataflow.
      queue: the `tf.QueueBase`, at the latest after the setup, as the following ones.
      thread: the `EnqueueThread`.
      input_placehdrs: the placeholders of a datapoint.
      consumed: the `ConsumedCount` of what steps have taken.
    """

    _default_capacity = 50
    _datapoints_per_step = 1

    def __init__(self, ds: DataFlow, queue: Any = None, *, capacity: Optional[int] = None) -> None:
        super().__init__()
        self.ds = check_is_dataflow(ds)
        if queue is not None:
            check_kind("queue", queue, tf.QueueBase, " such as tf.FIFOQueue")
        self.queue = queue
        self._capacity = self._default_capacity
        if capacity is not None:
            self._capacity = as_count(self, "capacity", capacity)
            if queue is not None:
                raise ValueError("Give queue or capacity, not both: a queue has its own capacity.")

    @property
    def _inf_ds(self) -> DataFlow:
        """What subclasses of scripts give to their `EnqueueThread`, which repeats it."""
        return self.ds

    def refill_queue(self) -> None:
        """Drops the datapoints that wait in the queue, and fills it from a new pass on.

        For a callback that has changed what the dataflow gives, between two steps. It returns when
        the dataflow has given a datapoint; before the training it does nothing. RuntimeError if
        datapoints wait where they cannot be dropped: in a `StagingInput`, or in a queue with
        `min_after_dequeue`.
        """
        self._require_setup("refill_queue")
        self._enqueue_callback.refill()

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        logger.info("Setting up the queue for CPU prefetching ...")
        signature = self._datapoint_signature(input_signature)
        with tf.device("/cpu:0"), tf.name_scope(None):
            if self.queue is None:
                self.queue = self._make_queue(signature)
            with tf.name_scope("QueueInput"):
                fed = self.input_placehdrs = make_placeholders(signature)
                self.thread = EnqueueThread(
                    self.queue, self.ds, fed, signature, self.cut_datapoints
                )

    def _datapoint_signature(self, input_signature: List[tf.TensorSpec]) -> List[tf.TensorSpec]:
        """Returns the signature of a datapoint, given that of the model."""
        return input_signature

    def _make_queue(self, signature: Sequence[tf.TensorSpec]) -> Any:
        return tf.FIFOQueue(self._capacity, [spec.dtype for spec in signature], name="input_queue")

    def _dequeue(self) -> Any:
        return self.queue.dequeue(name="input_deque")

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        with tf.device("/cpu:0"):
            values = self._dequeue()
            if isinstance(values, dict):
                values = [values[name] for name in self.queue.names]
            elif not isinstance(values, (list, tuple)):
                values = [values]  # TensorFlow makes no list of a single component
            return self.consumed.counted(values, self._datapoints_per_step)

    def _get_callbacks(self) -> List[Callback]:
        self.ds.start_processes()  # while there is no session yet, see there
        # All that a script's own `_setup` with a queue and a thread lacks.
        with tf.device("/cpu:0"), tf.name_scope(None):
            with tf.name_scope("QueueInput/"):
                self.consumed = ConsumedCount()
            # without a name the op would be called input_queue_Size, and the tag be taken
            size = self.queue.size(name="QueueInput/size")
            add_moving_summary(tf.cast(size, tf.float32, name="input_queue_size"))
        self._enqueue_callback = EnqueueCallback(self.thread, self.consumed)
        return [self._enqueue_callback]

    def _read_by_pass(self) -> Optional[int]:
        try:
            size = self.size()
        except NotImplementedError as error:
            raise ValueError(
                f"The thread of a {type(self).__name__} repeats the data, so where a pass ends is "
                f"known only if {type(self.ds).__name__} has a length. Wrap it in "
                "FixedSizeData(ds, size), or read it without a queue (FeedInput)."
            ) from error
        if not size and len(self.ds):
            raise ValueError(
                f"A pass over {len(self.ds)} datapoints has no batch of "
                f"{self._datapoints_per_step}: take a smaller batch_size."
            )
        self.thread.enqueuer.read_by_pass(size * self._datapoints_per_step)
        return size

    def _begin_pass(self) -> None:
        """Does nothing: the thread is in the next pass already."""

    def _release(self) -> None:
        self.ds.close()

    def _size(self) -> int:
        return len(self.ds)


class BatchQueueInput(QueueInput):
    """As `QueueInput`, for single examples: each step takes `batch_size` of them from the queue.

    Args:
      ds: the dataflow; its datapoints have no batch dimension.
      batch_size: how many make a batch, the first dimension of each of the model's inputs.
      queue: as in `QueueInput`; it must know the shapes of its components. Defaults to a
        `tf.FIFOQueue` with room for 3000 datapoints, for which the model's inputs must be fully
        defined but for the batch; a `tf.PaddingFIFOQueue` pads others.
    """

    _default_capacity = 3000

    def __init__(self, ds: DataFlow, batch_size: int, queue: Any = None) -> None:
        super().__init__(ds, queue)
        self.batch_size = self._datapoints_per_step = as_count(self, "batch_size", batch_size)

    def _datapoint_signature(self, input_signature: List[tf.TensorSpec]) -> List[tf.TensorSpec]:
        return [tf.TensorSpec(spec.shape[1:], spec.dtype, spec.name) for spec in input_signature]

    def _make_queue(self, signature: Sequence[tf.TensorSpec]) -> Any:
        dtypes, shapes = [spec.dtype for spec in signature], [spec.shape for spec in signature]
        return tf.FIFOQueue(self._capacity, dtypes, shapes, name="input_queue")

    def _dequeue(self) -> Any:
        return self.queue.dequeue_many(self.batch_size, name="input_deque")

    def _size(self) -> int:
        return len(self.ds) // self.batch_size


class ZMQInput(QueueInput):
    """The datapoints that one or several `send_dataflow_zmq` send: a `QueueInput` of a
    `RemoteDataZMQ`.

    The data is made elsewhere, so a resumed run takes what comes, with a warning, and
    `resume="must"` refuses. In the spelling of 2017 the first argument is named `endpoint`.

    Args:
      end_point, hwm, bind, options: as in `RemoteDataZMQ`; options are `key`, `timeout`, `senders`
        and `max_bytes`.
    """

    @accepts_old_keywords(endpoint="end_point")
    def __init__(self, end_point: str, hwm: int = 50, bind: bool = True, **options: Any) -> None:
        super().__init__(RemoteDataZMQ(end_point, hwm=hwm, bind=bind, **options))

    def to_dataset(self, input_signature: Sequence[tf.TensorSpec]) -> tf.data.Dataset:
        """Returns a dataset of what comes, with these specs, instead of setting the source up."""
        self.ds.reset_state()
        types, shapes = zip(*((spec.dtype, spec.shape) for spec in input_signature))
        return tf.data.Dataset.from_generator(lambda: map(tuple, self.ds), types, shapes)
