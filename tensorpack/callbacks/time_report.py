"""Says where the time of a training goes, and what would help."""

import os
import time
from typing import Any, Callable, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from ._bottleneck import Figures, advice, describe, diagnose
from ._pace import Pace
from ._processor import cores, cpu_seconds, machine_seconds
from ._step_probe import StepProbe
from ._time_window import Meters, TimeWindow
from ._whereabouts import Whereabouts
from .base import Callback

__all__ = ["TimeReport"]

_WARMUP_STEPS = 20  # slower than the others; the first one that is looked into is prepared in them
_SAMPLE_SECONDS = 0.1  # between two steps that are looked into
_LATE_SECONDS = 0.5  # after which the next one was put too far away, for the steps became slower
_NAMED_SHARE = 0.05  # of the time, from which on somebody looks which callbacks take it
_ASKED_SECONDS = 2.0  # between two looks for the file that asks for a report
_FEW_STEPS = 10  # below which figures mean nothing, whoever asks


class TimeReport(Callback):
    """Logs a paragraph on where the time within epochs goes: data, steps, callbacks.

    Once, after the warm-up: in the middle of the first epoch if that is long enough, otherwise at
    the end of an epoch. After that a line at the end of an epoch if the diagnosis is another one.
    And whenever somebody asks by an empty file in the log directory, `touch LOGDIR/report`: it is
    removed, and answered within seconds, before the next step. `trigger()` reports as well, on the
    time since the last such report, so a `PeriodicTrigger` may ask, too.

    Waiting is measured in the graph, behind the dequeue of a `QueueInput`, in about ten steps
    a second; with a `FeedInput`, it is the time from the begin of the step to that of the graph.
    Callbacks have the time between two runs of the session; the one that is named was most often
    seen at work. The rest is stepping. Of the hooks around a run, `before_run` of callbacks in
    front of this one in the list and `after_run` of those behind it are time of callbacks, the
    others stepping. In a deterministic run, where data and training take turns, nothing is measured
    or said.

    What is measured is no part of the state of a run, and changes nothing in it.

    Args:
      source: who knows more about the data; by default the dataflow of the `TrainConfig`. Two
        attributes of it are used if there are any: `env_steps`, a number that grows, and
        `bottleneck_hint(limit)`, which returns a phrase on what to do, or None. The limit is
        "data", "draining" (the queue runs empty), "callbacks", "processor" or "step".
      after_seconds: how long to measure before something is said.
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
        self._running = False  # between `before_run` and `after_run`, which is no time of callbacks
        self._whereabouts = Whereabouts(lambda: not self._running)
        self._window = TimeWindow()
        self._inside = 0.0  # seconds in runs of the session; less the time when the last one began
        self._inside_before = 0.0  # the run that is looked into
        self._pace = Pace(_SAMPLE_SECONDS)
        self._until_look = 0  # steps
        self._late_at = 0.0  # on the clock: when to look at the latest
        self._limit = ""  # what was told last
        self._warm = self._in_epoch = self._in_first_epoch = False

    def _setup_graph(self) -> None:
        self._silent = bool(self.trainer.deterministic)
        if self._source is None:
            config = self.trainer.config
            self._source = None if config is None else config.dataflow
        self._step_op = None if self._silent else self.trainer.step_op
        self._probe = StepProbe(self.trainer)

    def _before_train(self) -> None:
        directory = logger.get_logger_dir()
        asks = directory is not None or os.path.isabs(self._request_file)
        self._path = os.path.join(directory or "", self._request_file) if asks else None
        self._next_asked = self._clock()
        self._warm_from = self.global_step + _WARMUP_STEPS
        kinds = {device.device_type for device in self.trainer.sess.list_devices()}
        self._on_gpu = "GPU" in kinds

    def _after_train(self) -> None:
        self._whereabouts.stop()

    def _before_epoch(self) -> None:
        self._late_at = self._clock() + _LATE_SECONDS
        self._in_first_epoch = self.epoch_num == self.trainer.starting_epoch
        self._in_epoch = not self._silent
        self._window.enter(self._meters(self.global_step))

    # These two are overridden without an underscore and keep one sum, for they are in every step.
    def before_run(self, ctx: tf.train.SessionRunContext) -> Optional[tf.train.SessionRunArgs]:
        """Counts; now and then it asks for the times of the step."""
        self._until_look -= 1
        now = self._clock()
        request = None
        if self._until_look <= 0 or now >= self._late_at:
            request = self._look(ctx, now)
            now = self._clock()
        self._running = True
        self._inside -= now
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
            self._window.take(reading, Meters(self._clock(), self.global_step, self._inside))

    def _look(self, ctx: Any, now: float) -> Optional[tf.train.SessionRunArgs]:
        """Does what is not for every step; returns what to ask of this one."""
        if not self._in_epoch:
            return None
        self._inside_before = self._inside
        done = Meters(now, self.global_step - 1, self._inside)
        if not self._warm and done.steps >= self._warm_from:
            self._warm = True
            self._renew(done.steps)
        late = self._until_look > 0
        self._until_look = 1
        self._late_at = now + _LATE_SECONDS
        if self._warm:
            self._look_around(done, late)
        # A step that is looked into because the clock said so would follow a slow one each time.
        return None if late else self._ask(ctx)

    def _look_around(self, done: Meters, late: bool) -> None:
        total = self._window.total(done)
        self._until_look = self._pace.distance(total.steps, total.seconds, late)
        if late:
            self._window.put_off(done)
        if total.seconds - total.inside > _NAMED_SHARE * total.seconds:
            self._whereabouts.start()
        self._speak(done)

    def _ask(self, ctx: Any) -> Optional[tf.train.SessionRunArgs]:
        # Only along with the step: fetched alone, the probe would take data that nobody has seen.
        is_step = self._step_op is not None and ctx.original_args.fetches is self._step_op
        # What else is asked for in the last step would be one more combination to be prepared.
        is_last = self.local_step == self.trainer.steps_per_epoch - 1
        return self._probe.ask() if is_step and not is_last else None

    def _renew(self, steps: int) -> None:
        """Begins to measure anew."""
        self._whereabouts.forget()
        self._window = TimeWindow(self._meters(steps) if self._in_epoch else None)
        self._pace.restart()

    def _speak(self, done: Meters) -> None:
        if self._in_first_epoch and not self._limit and self._is_due(done):
            self._report(done.steps)
        elif self._path is not None and self._can_answer(done):
            self._next_asked = done.seconds + _ASKED_SECONDS
            if _was_asked(self._path):
                self._report(done.steps)

    def _can_answer(self, done: Meters) -> bool:
        return done.seconds >= self._next_asked and self._window.total(done).steps >= _FEW_STEPS

    def _is_due(self, done: Meters) -> bool:
        total = self._window.total(done)
        return total.seconds >= self._after_seconds and total.steps >= self._after_steps

    def _after_epoch(self) -> None:
        if self._in_epoch:
            self._window.leave(self._meters(self.global_step))
            self._in_epoch = False

    def _trigger_epoch(self) -> None:
        steps = self.global_step
        if self._silent or not self._warm or not self._is_due(Meters(self._clock(), steps)):
            return
        told, figures = self._limit, self._figures(steps)
        if not told:
            self._report(steps)
        elif diagnose(figures, told) != told:
            logger.info(f"Where the time goes has changed: {self._advice(figures)}.")
        self._renew(steps)

    def _trigger(self) -> None:
        done = Meters(self._clock(), self.global_step)
        if self._warm and self._window.total(done).steps >= _FEW_STEPS:
            self._report(done.steps)
            self._renew(done.steps)

    def _report(self, steps: int) -> None:
        figures = self._figures(steps)
        logger.info(f"Where the time goes: {describe(figures)}. {self._advice(figures)}.")

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
            cores=cores(),
            on_gpu=self._on_gpu,
            slowest=self._whereabouts.slowest(),
        )

    def _meters(self, steps: int) -> Meters:
        env_steps = getattr(self._source, "env_steps", None) or 0
        machine = machine_seconds() or 0.0
        return Meters(self._clock(), steps, self._inside, cpu_seconds(), machine, env_steps)


def _was_asked(path: str) -> bool:
    """Whether there is an empty file that asks; it is removed. Others are left alone."""
    try:
        if os.path.getsize(path) > 0 or not os.path.isfile(path):
            return False
        os.unlink(path)
    except OSError:  # there is none, as always, or it is not ours to remove
        return False
    return True
