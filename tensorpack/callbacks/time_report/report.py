"""The callback that measures a run and logs where its time goes."""

import json
import os
import time
from contextlib import suppress
from typing import Any, Callable, Dict, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.workers.processes import usable_cores

from ..base import Callback
from ._diagnosis import Figures, advice, describe, diagnose
from ._measure import (
    CallbackSampler,
    Meters,
    SampleSchedule,
    StepProbe,
    Window,
    cpu_seconds,
    machine_seconds,
)

FILENAME = "time_reports.jsonl"
_PRECISION = 4  # digits behind the point
_WARMUP_STEPS = 20  # slower than the others; the first measured one is prepared in them
_SAMPLE_SECONDS = 0.1  # between two measured steps, and between two looks at what is due
_NAMED_SHARE = 0.05  # of the time, above which the slowest callback is searched for
_REQUEST_SECONDS = 2.0  # between two looks for the file that asks for a report
_FEW_STEPS = 10  # too few for a report, even if it was asked for


class TimeReport(Callback):
    """Logs a paragraph on where the time within epochs goes: data, steps, callbacks.

    Once, after the warm-up: in the middle of the first epoch if that is long enough, otherwise at
    the end of an epoch. Later, at the end of an epoch, a line if the diagnosis has changed. An
    empty file in the log directory, `touch LOGDIR/report`, asks for a report: it is removed and
    answered within seconds, before the next step. `trigger()` reports as well, on the time since
    the last such report, so a `PeriodicTrigger` can ask, too.

    Waiting is measured in the graph, after the dequeue of a `QueueInput`, in about ten steps
    a second; with a `FeedInput`, it is the time from the begin of the step to that of the graph.
    Callbacks have the time between two runs of the session; the one that is named was most often
    seen at work. The rest is stepping. Of the hooks around a run, `before_run` of callbacks in
    front of this one in the list and `after_run` of those after it are time of callbacks, the
    others stepping. In a deterministic run, where data and training take turns, nothing is measured
    or reported.

    The measurements are not part of the state of a run, and change nothing in it. Each paragraph is
    also a line of JSON, with its figures, in `time_reports.jsonl` in the log directory.

    Args:
      source: an object that knows more about the data; by default the dataflow of the
        `TrainConfig`. Two optional attributes of it are used: `env_steps`, a number that grows, and
        `bottleneck_hint(limit)`, which returns a phrase on what to do, or None. The limit is
        "data", "draining" (the queue runs empty), "callbacks", "processor" or "step".
      after_seconds: how long to measure before the first report.
      after_steps: how many steps, as well.
      request_file: name of the file that asks for a report, in the log directory, or a full path.
      clock: returns seconds; only differences count.
    """

    def __init__(
        self,
        source: Any = None,
        after_seconds: float = 30.0,
        after_steps: int = 200,
        request_file: str = "report",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._after_seconds = after_seconds
        self._after_steps = after_steps
        self._request_file = request_file
        self._clock = clock
        self._running = False  # between `before_run` and `after_run`, which is not callbacks' time
        self._sampler = CallbackSampler(lambda: not self._running)
        self._schedule = SampleSchedule(_SAMPLE_SECONDS)
        self._inside = 0.0  # seconds in runs of the session; less the time when the last one began
        self._inside_before = self._weight = 0.0  # of the step that is measured
        self._next_look = self._next_request = 0.0  # on the clock
        self._limit = ""  # the last diagnosis that was logged
        self._warm = self._in_epoch = self._in_first_epoch = False

    def _setup_graph(self) -> None:
        if self._source is None and self.trainer.config is not None:
            self._source = self.trainer.config.dataflow
        self._step_op = self.trainer.step_op
        self._probe = StepProbe(self.trainer)

    def _before_train(self) -> None:
        self._directory = directory = logger.get_logger_dir()
        asks = directory is not None or os.path.isabs(self._request_file)
        self._path = os.path.join(directory or "", self._request_file) if asks else None
        self._warm_from = self.global_step + _WARMUP_STEPS
        kinds = {device.device_type for device in self.trainer.sess.list_devices()}
        self._on_gpu = "GPU" in kinds
        self._restart(self.global_step)

    def _after_train(self) -> None:
        self._sampler.stop()

    def _before_epoch(self) -> None:
        self._in_first_epoch = self.epoch_num == self.trainer.starting_epoch
        self._in_epoch = not self.trainer.deterministic  # or it measures nothing
        self._schedule.resume(self._clock())
        self._window.enter(self._meters(self.global_step))

    # These two are overridden without an underscore and keep one sum, for they are in every step.
    def before_run(self, ctx: tf.train.SessionRunContext) -> Optional[tf.train.SessionRunArgs]:
        """Counts, and asks for the times of some of the steps."""
        request = None
        if self._in_epoch:
            now = self._clock()
            if now >= self._next_look or not self._warm:
                self._next_look = now + _SAMPLE_SECONDS
                self._look(Meters(now, self.global_step - 1, self._inside))
            weight = self._schedule.weight(now)
            if weight:
                request = self._ask(ctx, weight)
        self._running = True
        self._inside -= self._clock()
        return request

    def after_run(
        self, ctx: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        """Counts, and takes the times that were asked for."""
        self._inside += self._clock()
        self._running = False
        if run_values.results is not None:
            took = self._inside - self._inside_before
            reading = self._probe.read(run_values.results, took)
            self._window.take(reading, took, self._weight)

    def _ask(self, ctx: Any, weight: float) -> Optional[tf.train.SessionRunArgs]:
        # Only along with the step: fetched alone, the probe would take a datapoint and drop it.
        is_step = self._step_op is not None and ctx.original_args.fetches is self._step_op
        # The last step has other fetches already: this would be one more combination to prepare.
        is_last = self.local_step == self.trainer.steps_per_epoch - 1
        if not is_step or is_last:
            return None
        self._inside_before, self._weight = self._inside, weight
        return self._probe.ask()

    def _look(self, done: Meters) -> None:
        """Does what is due; called several times a second, before a step."""
        if not self._warm:
            if done.steps < self._warm_from:
                return
            self._warm = True
            self._restart(done.steps)
        total = self._window.total(done)
        if total.seconds - total.inside > _NAMED_SHARE * total.seconds:
            self._sampler.start()
        if self._in_first_epoch and not self._limit and self._is_due(total):
            self._report(done.steps)
        elif self._path and done.seconds >= self._next_request and total.steps >= _FEW_STEPS:
            self._next_request = done.seconds + _REQUEST_SECONDS
            if _was_asked(self._path):
                self._report(done.steps)

    def _restart(self, steps: int) -> None:
        """Starts a new window."""
        now = self._meters(steps)
        self._sampler.reset()
        self._window = Window(now)
        if not self._in_epoch:
            self._window.leave(now)

    def _is_due(self, total: Meters) -> bool:
        return total.seconds >= self._after_seconds and total.steps >= self._after_steps

    def _after_epoch(self) -> None:
        if self._in_epoch:
            self._window.leave(self._meters(self.global_step))
            self._in_epoch = False

    def _trigger_epoch(self) -> None:
        steps = self.global_step
        total = self._window.total(Meters(self._clock(), steps))
        if not self._warm or not self._is_due(total):
            return
        before, figures = self._limit, self._figures(steps)
        if not before:
            self._report(steps)
        elif diagnose(figures, before) != before:
            logger.info(f"Where the time goes has changed: {self._advice(figures)}.")
        self._restart(steps)

    def _trigger(self) -> None:
        steps = self.global_step
        total = self._window.total(Meters(self._clock(), steps))
        if self._warm and total.steps >= _FEW_STEPS:
            self._report(steps)
            self._restart(steps)

    def _report(self, steps: int) -> None:
        figures = self._figures(steps)
        text = f"Where the time goes: {describe(figures)}. {self._advice(figures)}."
        logger.info(text)
        if self._directory is not None:
            where = {"epoch": self.epoch_num, "step": steps, "limit": self._limit, "text": text}
            try:
                append_report(self._directory, figures, where)
            except OSError as error:
                logger.warning(f"The time report is in the log alone: {error}")

    def _advice(self, figures: Figures) -> str:
        self._limit = diagnose(figures, self._limit)
        hint = getattr(self._source, "bottleneck_hint", None)
        return advice(self._limit, figures, hint(self._limit) if hint is not None else None)

    def _figures(self, steps: int) -> Figures:
        now = self._meters(steps)
        total = self._window.total(now)
        has_env = getattr(self._source, "env_steps", None) is not None
        return self._window.figures(
            now,
            env_steps=total.env_steps / max(total.seconds, 1e-9) if has_env else None,
            cores=usable_cores(),
            on_gpu=self._on_gpu,
            slowest=self._sampler.slowest(),
        )

    def _meters(self, steps: int) -> Meters:
        env_steps = getattr(self._source, "env_steps", None) or 0
        machine = machine_seconds() or 0.0
        return Meters(self._clock(), steps, self._inside, cpu_seconds(), machine, env_steps)


def _was_asked(path: str) -> bool:
    """Whether an empty file asks for a report; removes it, and leaves any other file alone."""
    with suppress(OSError):  # it may not be removed
        if os.path.isfile(path) and os.path.getsize(path) == 0:
            os.unlink(path)
            return True
    return False


def append_report(directory: str, figures: Figures, where: Dict[str, Any]) -> None:
    """Adds a line to the file: an object with the figures, `stepping`, and what is in `where`."""
    fields = {**where, **figures._asdict(), "stepping": figures.stepping}
    rounded = {k: round(v, _PRECISION) if isinstance(v, float) else v for k, v in fields.items()}
    with open(os.path.join(directory, FILENAME), "ab") as file:
        file.write(json.dumps(rounded).encode("ascii") + b"\n")
