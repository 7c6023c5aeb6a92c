"""Reports where the time of each epoch goes, what limits the training, and what would help."""

import json
import multiprocessing
import os
import time
from contextlib import suppress
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedInput
from tensorpack.input_source.dequeue import wait_clocks
from tensorpack.utils import logger
from tensorpack.utils.workers.processes import usable_cores

from ._disk import survive
from .base import Callback

_WARMUP_STEPS = 20  # slower than the others
_FEW_STEPS = 10  # less is too few for a report
_MUCH = 0.15  # a fraction of the time that is worth a change
_BUSY = 0.85  # a fraction of the cores that leaves nothing to gain
_SHORT_STEP = 1e-3  # seconds, below which the overhead of a step counts


class Figures(NamedTuple):
    """What was measured. Shares are in [0, 1] and of the time within epochs."""

    seconds: float  # measured
    steps: int  # in them
    waiting: Optional[float]  # share of waiting for data; None if unknown
    stepping: float  # share of the steps themselves, with the waiting if that is unknown
    callbacks: float  # share of the time outside of the steps
    in_callbacks: Dict[str, float] = {}  # seconds in `trigger_step`, by name
    env_steps: Optional[float] = None  # environment steps per second
    cores: int = 1
    busy: float = 0.0  # share of the cores that this process and its children keep busy
    on_gpu: bool = False


def bottleneck(f: Figures, hint: Callable[[str], Optional[str]]) -> Tuple[str, str]:
    """Returns what limits the training, and a sentence, without its end, on what would help.

    The source of the data may know more: `hint(limit)` returns a phrase, or None.
    """
    waiting = f.waiting or 0.0
    if waiting >= max(_MUCH, f.callbacks):
        limit, what = "data", f"Waiting for data takes {waiting:.0%}: "
        advice = "the data is the limit; make it with more workers, or do less for a datapoint"
    elif f.callbacks >= _MUCH:
        name, took = max(f.in_callbacks.items(), key=lambda item: item[1], default=("", 0.0))
        slowest = f", {took / f.seconds:.0%} in {name}" if took >= 0.01 * f.seconds else ""
        limit, what = "callbacks", f"Callbacks take {f.callbacks:.0%} between the steps{slowest}; "
        advice = "let them run more rarely (PeriodicTrigger, PeriodicCallback)"
    elif f.busy >= _BUSY and not f.on_gpu:
        limit, what = "processor", "The processor is the limit, its cores are busy; "
        advice = "bfloat16, a GPU, more cores or fewer summaries help"
    else:
        where = "on the GPU" if f.on_gpu else "which leaves some of the cores idle"
        advice = "larger batches, lower precision or XLA may help"
        if f.stepping * f.seconds < _SHORT_STEP * f.steps:
            where, advice = "which is very short", "do more in each, with larger batches"
        limit, what = "step", f"The data keeps up; the limit is the step itself, {where}; "
    return limit, what + (hint(limit) or advice)


class TimeReport(Callback):
    """Logs a paragraph on where the time of an epoch goes: data, steps, callbacks.

    It comes at the end of each epoch, but not for less than ten steps after a warm-up; when the
    first epoch has taken `after_seconds`; and when it is triggered, as by a `PeriodicTrigger`. It
    is on the time since the one before, and also a line of JSON, with its figures, in
    `time_reports.jsonl` in the log directory.

    Callbacks have the time between two runs of the session; the rest is stepping, with the hooks
    around a run that are inside of this one's.

    Args:
      source: what knows more about the data, by default the dataflow of the `TrainConfig`: its
        `env_steps`, a number that grows, and its `bottleneck_hint(limit)`, which returns advice or
        None where the limit is "data", "callbacks", "processor" or "step". Both are optional.
      after_seconds: as above.
      clock: returns seconds; only differences count.
    """

    def __init__(
        self,
        source: Any = None,
        after_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source = source
        self._after_seconds = after_seconds
        self._clock = clock
        self._due = float("inf")  # when the report in the first epoch is due

    def _setup_graph(self) -> None:
        trainer = self.trainer
        if self._source is None and trainer.config is not None:
            self._source = trainer.config.dataflow
        self._fed = isinstance(getattr(trainer.config, "data", None), FeedInput)
        clocks = wait_clocks(trainer.step_op, self._fed) if not trainer.deterministic else []
        self._request = tf.train.SessionRunArgs(clocks) if clocks else None

    def _before_train(self) -> None:
        self._warm_from = self.trainer.steps_taken + _WARMUP_STEPS
        devices = self.trainer.sess.list_devices()
        self._on_gpu = any(device.device_type == "GPU" for device in devices)
        self._restart()

    def _before_epoch(self) -> None:
        self._restart()

    # These two are overridden without an underscore, for they are in every step.
    def before_run(self, ctx: tf.train.SessionRunContext) -> Optional[tf.train.SessionRunArgs]:
        """Does what is due, and asks for the time at which the step has its data."""
        self._in_step = self.trainer.in_step
        if not self._in_step:
            return None
        if self.trainer.steps_taken == self._warm_from:
            self._restart()
            self._due = self._clock() + self._after_seconds
        elif self._clock() >= self._due:
            self.trigger()
        self._began, self._began_time = self._clock(), time.time()
        # Without the step, the clocks would take a datapoint and drop it.
        return self._request if ctx.original_args.fetches is self.trainer.step_op else None

    def after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        """Takes the time of the step."""
        if self._in_step:
            took, times = self._clock() - self._began, run_values.results
            self._inside += took
            if times is not None:
                waited = max(times) - (self._began_time if self._fed else times[0])
                self._waited += min(max(0.0, waited), took)  # the clock of the graph may be set

    def _after_epoch(self) -> None:
        self.trigger()

    def _trigger_epoch(self) -> None:
        """Does nothing: the report comes before what other callbacks do at the end of an epoch."""

    def _trigger(self) -> None:
        first = max(self._start["steps"], self._warm_from)
        if self.trainer.steps_taken - first >= _FEW_STEPS:
            self._due = float("inf")
            self._report(self._figures())
            self._restart()

    def _restart(self) -> None:
        self._start = self._meters()
        self._inside = self._waited = 0.0  # seconds

    def _meters(self) -> Dict[str, float]:
        """Returns readings of what only grows; those of callbacks have their names behind "in "."""
        meters = {f"in {name}": took for name, took in self.trainer.callback_seconds.items()}
        env_steps = getattr(self._source, "env_steps", None)
        if env_steps is not None:
            meters["env_steps"] = env_steps
        steps = self.trainer.steps_taken
        return {**meters, "seconds": self._clock(), "steps": steps, "cpu": cpu_seconds()}

    def _figures(self) -> Figures:
        gained = {key: reading - self._start[key] for key, reading in self._meters().items()}
        seconds, cores = max(gained["seconds"], 1e-9), usable_cores()
        callbacks = max(0.0, seconds - self._inside) / seconds
        waiting = None if self._request is None else self._waited / seconds
        return Figures(
            seconds=seconds,
            steps=int(gained["steps"]),
            waiting=waiting,
            stepping=max(0.0, 1 - callbacks - (waiting or 0.0)),
            callbacks=callbacks,
            in_callbacks={key[3:]: took for key, took in gained.items() if key[:3] == "in "},
            env_steps=gained["env_steps"] / seconds if "env_steps" in gained else None,
            cores=cores,
            busy=gained["cpu"] / seconds / cores,
            on_gpu=self._on_gpu,
        )

    def _report(self, f: Figures) -> None:
        limit, advice = bottleneck(f, getattr(self._source, "bottleneck_hint", lambda limit: None))
        waiting = "unknown" if f.waiting is None else f"{f.waiting:.0%}"
        games = "" if f.env_steps is None else f", {f.env_steps:.4g} environment steps/s"
        text = (
            f"Where the time goes: waiting for data {waiting}, stepping {f.stepping:.0%}, "
            f"callbacks {f.callbacks:.0%}, of {f.seconds:.0f} seconds with {f.steps} steps; "
            f"{f.steps / f.seconds:.4g} updates/s{games}; "
            f"{f.busy * f.cores:.1f} of {f.cores} cores busy. {advice}."
        )
        logger.info(text)
        directory = logger.get_logger_dir()
        if directory is not None:
            place = {"epoch": self.epoch_num, "step": self.trainer.steps_taken}
            line = json.dumps({**place, "limit": limit, "text": text, **f._asdict()})
            path = os.path.join(directory, "time_reports.jsonl")
            survive(lambda: _append(path, f"{line}\n"), "The time report is in the log alone")


def _append(path: str, text: str) -> None:
    with open(path, "a", encoding="ascii") as file:
        file.write(text)


def cpu_seconds() -> float:
    """Returns the processor seconds of this process, of the children that it has waited for and,
    where there is /proc, of running ones that `multiprocessing` started.
    """
    total = sum(os.times()[:4])
    for child in multiprocessing.active_children():
        with suppress(OSError):  # it has ended, or the system has no /proc
            with open(f"/proc/{child.pid}/stat", encoding="utf-8", errors="replace") as file:
                ticks = file.read().rpartition(")")[2].split()[11:13]  # see proc(5)
            total += sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return total
