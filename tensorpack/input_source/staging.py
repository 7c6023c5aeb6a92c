"""Copies the next batches to the device while the current one is being trained on."""

from contextlib import ExitStack
from typing import Any, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.dependency import dependency_of_fetches
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count, as_names, is_integer

from .base import FeedfreeInput
from .enqueue import QueueInput


class StagingInput(FeedfreeInput):
    """Copies the batches of another input to the device of the tower ahead of their step.

    A step takes a batch that is there already, while the next one is copied. It pays on a GPU. Each
    tower has a buffer of its own; which of them gets which of the batches of a step is not fixed.

    The tensors have values in runs of the trainer's hooked session only, which keep the buffers
    full, whether the caller or a callback asks for a tensor of the tower. A run of the plain
    session (`trainer.sess`) takes a batch that is not replaced, and may wait for ever; a warning
    comes before it. A step for
    which the input has no further batch trains on nothing: when the data ends, `nr_stage` batches
    are left over. The position of a `QueueInput`, from which a resumed run continues, is after the
    last batch that a step has taken; those in the buffers are made again.

    Args:
      input: where the batches come from, such as a `QueueInput`.
      nr_stage: batches in each buffer between two steps.
      device: of the buffers, such as "/gpu:0"; by default that of the tower.
      towers: not used.
    """

    def __init__(
        self,
        input: FeedfreeInput,
        nr_stage: int = 1,
        device: Optional[str] = None,
        towers: Any = None,
    ) -> None:
        super().__init__()
        if not isinstance(input, FeedfreeInput) or isinstance(input, StagingInput):
            raise TypeError(
                "StagingInput takes a FeedfreeInput such as a QueueInput, but not a StagingInput; "
                f"got {type(input).__name__}."
            )
        self._input = input
        self._nr_stage, self._device = as_count(self, "nr_stage", nr_stage), device
        self._buffers: List[_Buffer] = []

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        logger.info("Setting up StagingArea for GPU prefetching ...")
        self._specs = list(input_signature)
        self._input.cut_datapoints = self.cut_datapoints
        self._input.setup(input_signature)
        if isinstance(self._input, QueueInput):
            self._input.consumed.deferred = True

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        consumed = self._input.consumed if isinstance(self._input, QueueInput) else None
        before = consumed.per_run if consumed else 0
        arriving = self._input.get_input_tensors()
        with ExitStack() if self._device is None else tf.device(self._device):
            buffer = _Buffer(arriving, self._specs)
        self._buffers.append(buffer)
        if consumed:
            number = consumed.per_run - before
            consumed.ahead += number * self._nr_stage
            buffer.refill = tf.group(buffer.refill, consumed.count(buffer.tensors, number))
        return buffer.tensors

    def _get_callbacks(self) -> List[Callback]:
        return self._input.get_callbacks() + [_Stager(self._buffers, self._nr_stage)]

    def _unblock(self) -> None:
        self._input.unblock()

    def _release(self) -> None:
        self._input.release()

    def _size(self) -> int:
        return self._input.size()


class StagingInputWrapper(StagingInput):
    """`StagingInput` in the spelling of 2017.

    With one of `devices` all buffers are on that; with several, or with the ids of the towers, each
    buffer is on the device of its tower.
    """

    @accepts_old_keywords(towers="devices")
    def __init__(self, input: FeedfreeInput, devices: Sequence[Any], nr_stage: int = 5) -> None:
        if isinstance(devices, (list, tuple)) and all(is_integer(device) for device in devices):
            devices = [str(device) for device in devices] * 2  # of towers: each has its own
        devices = as_names(self, "devices", devices)
        super().__init__(input, nr_stage, devices[0] if len(devices) == 1 else None)


class _Buffer:
    """Batches that wait for their step, in the order in which they came; made in a tower's scopes.

    Attributes:
      tensors: the next batch. It waits for the arrival of another one, though not for its copy, so
        that a step whose refill fails does not happen at all, rather than by half.
      put: the op that puts the arriving batch in.
      refill: what has to run in each run that takes `tensors`; takes them itself, so that in no
        run the buffer grows. `tensors` cannot depend on it: they would wait for the copy.
    """

    def __init__(self, arriving: Sequence[tf.Tensor], specs: Sequence[tf.TensorSpec]) -> None:
        # One that is shared by name would be shared by the towers too.
        name = tf.get_default_graph().unique_name("staging_area")
        self.put = tf.raw_ops.Stage(values=arriving, shared_name=name, name="stage")
        dtypes = [tensor.dtype.base_dtype for tensor in arriving]
        with tf.colocate_with(self.put), tf.control_dependencies(arriving):
            self.tensors = tf.raw_ops.Unstage(dtypes=dtypes, shared_name=name, name="unstage")
        for tensor, source, spec in zip(self.tensors, arriving, specs):
            tensor.set_shape(source.shape.merge_with(spec.shape))
        self.refill = tf.group(self.put, self.tensors[0].op)


class _Stager(Callback):
    """Fills the buffers before the first run that needs them, and refills them in each."""

    def __init__(self, buffers: List[_Buffer], nr_stage: int) -> None:
        self._buffers, self._nr_stage = buffers, nr_stage
        self._filled: List[_Buffer] = []

    def _setup_graph(self) -> None:
        if self.trainer.deterministic:
            raise ValueError(
                "A deterministic run makes the data of a step when that step begins, and a "
                "StagingInput ahead of it: use the input without StagingInput."
            )

    def run_along(self, sess: tf.Session, fetches: Any) -> List[tf.Operation]:
        """Returns the refills of the buffers that these fetches take from, and fills new ones."""
        needed = [b for b in self._buffers if dependency_of_fetches(fetches, b.tensors[0])]
        unfilled = [buffer for buffer in needed if buffer not in self._filled]
        if unfilled:
            self._fill(unfilled, sess)
        return [buffer.refill for buffer in needed]

    def _fill(self, buffers: List[_Buffer], sess: tf.Session) -> None:
        if not self._filled:
            logger.info("Pre-filling StagingArea ...")
        # In turn: the position of a resumed run is after the first datapoints, those of a step.
        for _ in range(self._nr_stage):
            for buffer in buffers:
                sess.run(buffer.put)
        self._filled += buffers
        if len(self._filled) == len(self._buffers):
            elements = "1 element" if self._nr_stage == 1 else f"{self._nr_stage} elements"
            logger.info(f"{elements} put into StagingArea on each tower.")
