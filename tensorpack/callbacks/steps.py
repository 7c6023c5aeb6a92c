"""What happens in each step: it is counted, shown on a bar, printed, or limited in time."""

import time
from typing import Any, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_global_step_var, get_op_tensor_name
from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.checks import as_count, as_names
from tensorpack.utils.naming import GLOBAL_STEP_INCR_OP_NAME

from .base import Callback
from .graph import ProcessTensors

_BAR_SECONDS = 0.2  # between two updates of the bar, which are not free


class MaintainStepCounter(Callback):
    """Counts the steps in the graph: the first hooked run of each step adds one.

    Every trainer has one. A run outside of a step is not counted.
    """

    _chief_only = False
    _counted = 0

    def _setup_graph(self) -> None:
        step = get_global_step_var()
        # Whatever reads the counter within a step reads the number of steps before it.
        step_op = self.trainer.step_op
        behind = [] if step_op is None else [step_op]
        with tf.device(step.device), tf.control_dependencies(behind):
            add = tf.assign_add(step, 1).op
            with tf.name_scope(None):
                increment = tf.group(add, name=GLOBAL_STEP_INCR_OP_NAME)
        self._request = tf.train.SessionRunArgs(increment)

    def _before_train(self) -> None:
        self._counted = self.global_step
        if self._counted:
            logger.info(f"Start training with global_step={self._counted}")

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        step = self.trainer.global_step
        if step == self._counted:
            return None
        self._counted = step
        return self._request


class ProgressBar(Callback):
    """A bar for each epoch, of `steps_per_epoch` steps, with scalar tensors called `names` behind
    it, which are computed only for the steps at which the bar is drawn.
    """

    _chief_only = False

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = as_names(self, "names", names)
        self._tags = [get_op_tensor_name(name)[0].split("/")[-1] for name in self._names]
        self._bar: Any = None
        self._done = 0  # steps of the epoch
        self._next_update = 0.0
        self.sees_runs = bool(self._names)

    def _setup_graph(self) -> None:
        names = [get_op_tensor_name(name)[1] for name in self._names]
        self._request = tf.train.SessionRunArgs(self.get_tensors_maybe_in_tower(names))

    def _before_epoch(self) -> None:
        self._done = self.trainer.local_step + 1  # more than 0 where an epoch is continued
        steps, name = self.trainer.steps_per_epoch, f"Epoch {self.trainer.epoch_num}"
        self._bar = get_tqdm(total=steps, initial=self._done, desc=name)
        self._next_update = 0.0

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        drawn = self._bar is not None and time.monotonic() >= self._next_update
        return self._request if drawn and self._names else None

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        if run_values.results is not None and self._bar is not None:
            values = {tag: f"{value:.4g}" for tag, value in zip(self._tags, run_values.results)}
            self._bar.set_postfix(values, refresh=False)

    def _trigger_step(self) -> None:
        self._done = self.trainer.local_step + 1
        now = time.monotonic()
        # There is no bar if it was switched on in the middle of an epoch, see EnableCallbackIf.
        if now >= self._next_update and self._bar is not None:
            self._next_update = now + _BAR_SECONDS
            self._bar.update(self._done - self._bar.n)

    def _after_epoch(self) -> None:
        self._done = self.trainer.local_step + 1
        self._close()

    def _after_train(self) -> None:
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.update(self._done - self._bar.n)
            self._bar.close()
            self._bar = None


class TensorPrinter(ProcessTensors):
    """Logs the values of the tensors called `names` in each step, which is slow."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, self._print)

    def _print(self, *values: Any) -> None:
        for name, value in zip(self._names, values):
            logger.info(f"{name}: {value}")


StepTensorPrinter = TensorPrinter  # the name of 2017


class SessionRunTimeout(Callback):
    """Makes a hooked run that takes longer than `timeout_in_ms`, whole milliseconds, fail with
    `tf.errors.DeadlineExceededError`.
    """

    _chief_only = False

    def __init__(self, timeout_in_ms: int) -> None:
        options = tf.RunOptions(timeout_in_ms=as_count(self, "timeout_in_ms", timeout_in_ms))
        self._request = tf.train.SessionRunArgs(fetches=[], options=options)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self._request
