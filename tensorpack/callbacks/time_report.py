"""Reports where the time of a training goes, what limits it, and what would help."""

import json
import multiprocessing
import os
import time
from collections import defaultdict
from contextlib import suppress
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedInput
from tensorpack.input_source.dequeue import WaitProbe, WaitReading, wait_probes
from tensorpack.utils import logger
from tensorpack.utils.workers.processes import usable_cores

from .base import Callback

FILENAME = "time_reports.jsonl"
_PRECISION = 4  # digits behind the point
_WARMUP_STEPS = 20  # slower than the others
_LOOK_SECONDS = 1.0  # between two looks at what is due
_FEW_STEPS = 10  # less is too few for a report, even if it was asked for
_MUCH = 0.15  # a share of the time that is worth a change
_BUSY = 0.85  # a share of the cores that leaves nothing to gain
_SHORT_STEP = 1e-3  # seconds, below which the overhead of a step counts
_IN = "in "  # before the name of a callback, among the sums


class Figures(NamedTuple):
    """What was measured. Shares are in [0, 1] and of the time within epochs."""

    seconds: float  # measured
    steps: int  # in them
    waiting: Optional[float]  # share of waiting for data; None if unknown
    callbacks: float  # share of the time outside of the steps
    fill: Optional[float] = None  # of the input queue, on average; None if unknown
    env_steps: Optional[float] = None  # environment steps per second
    cores: int = 1
    busy: float = 0.0  # share of the cores that this process and its children keep busy
    on_gpu: bool = False
    in_callbacks: Dict[str, float] = {}  # seconds in `trigger_step` of each, by name

    @property
    def stepping(self) -> float:
        """The share of the steps themselves, with the waiting if that is unknown."""
        return max(0.0, 1.0 - self.callbacks - (self.waiting or 0.0))

    @property
    def updates(self) -> float:
        """Steps per second."""
        return self.steps / self.seconds if self.seconds > 0 else 0.0


def describe(figures: Figures) -> str:
    """Returns what was measured, in one sentence without its end."""
    text = f"stepping {_percent(figures.stepping)}"
    if figures.waiting is None:
        text += " (waiting for data could not be told from it)"
    else:
        text = f"waiting for data {_percent(figures.waiting)}, {text}"
    text += (
        f", callbacks {_percent(figures.callbacks)}, of {figures.seconds:.0f} seconds with "
        f"{figures.steps} steps; {figures.updates:.4g} updates/s"
    )
    if figures.env_steps is not None:
        text += f", {figures.env_steps:.4g} environment steps/s"
    if figures.fill is not None:
        text += f"; the input queue is {_percent(figures.fill)} full"
    return f"{text}; {figures.busy * figures.cores:.1f} of {figures.cores} cores busy"


def diagnose(figures: Figures) -> str:
    """Returns what limits the training: "data", "callbacks", "processor" or "step"."""
    waiting = figures.waiting or 0.0
    if max(waiting, figures.callbacks) >= _MUCH:
        return "data" if waiting >= figures.callbacks else "callbacks"
    return "processor" if figures.busy >= _BUSY and not figures.on_gpu else "step"


def advice(limit: str, figures: Figures, hint: Optional[str] = None) -> str:
    """Returns, in a sentence without its end, what the limit is and what would help.

    The source of the data may know better, and gives a hint.
    """
    if limit == "data":
        more = "the data is the limit; make it with more workers, or do less for a datapoint"
        hint = hint or more
        if figures.busy >= _BUSY:
            hint += f" (all {figures.cores} cores are busy, so it has to become cheaper, too)"
        return f"Waiting for data takes {_percent(figures.waiting or 0.0)}: {hint}"
    if limit == "callbacks":
        slowest, took = max(figures.in_callbacks.items(), key=lambda each: each[1], default=("", 0))
        share = took / max(figures.seconds, 1e-9)
        named = f", {_percent(share)} in {slowest}" if share >= 0.01 else ""
        return (
            f"Callbacks take {_percent(figures.callbacks)} between the steps{named}; let "
            "them run more rarely (PeriodicTrigger, PeriodicCallback)"
        )
    if limit == "processor":
        text = "the core is busy" if figures.cores == 1 else f"all {figures.cores} cores are busy"
        hint = hint or "bfloat16, a GPU, more cores or fewer summaries help"
        return f"The processor is the limit, {text}; {hint}"
    if 0 < figures.updates and figures.stepping / figures.updates < _SHORT_STEP:
        return "The data keeps up and a step is very short; do more in each, with larger batches"
    where = "on the GPU" if figures.on_gpu else "which leaves some of the cores idle"
    hint = f"; {hint}" if hint else ""
    return f"The data keeps up; the limit is the step itself, {where}{hint}"


class TimeReport(Callback):
    """Logs a paragraph on where the time within epochs goes: data, steps, callbacks.

    Once, after the warm-up: in the middle of the first epoch if that is long enough, otherwise at
    the end of an epoch. Later, at the end of an epoch, if something else has become the limit. An
    empty file in the log directory, `touch LOGDIR/report`, asks for a report: it is removed and
    answered within seconds, before the next step. `trigger()` reports as well, so a
    `PeriodicTrigger` can ask, too. Each report is on the time since the one before.

    Callbacks have the time between two runs of the session; the one that is named took the longest
    in its `trigger_step`. The rest is stepping, with the hooks around a run that are inside of this
    one's. In a deterministic run, where data and training take turns, nothing is measured. The
    measurements are no part of the state of a run, and change nothing in it. Each paragraph is also
    a line of JSON, with its figures, in `time_reports.jsonl` in the log directory.

    Args:
      source: an object that knows more about the data; by default the dataflow of the
        `TrainConfig`. Two optional attributes of it are used: `env_steps`, a number that grows, and
        `bottleneck_hint(limit)`, which returns a phrase on what to do, or None. The limit is
        "data", "callbacks", "processor" or "step".
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
        self._began = self._next_look = 0.0  # on the clock
        self._limit = ""  # in the last report
        self._warm = self._in_epoch = self._in_step = False

    def _setup_graph(self) -> None:
        if self._source is None and self.trainer.config is not None:
            self._source = self.trainer.config.dataflow
        self._step_op = self.trainer.step_op
        self._probe = StepProbe(self.trainer)

    def _before_train(self) -> None:
        self._directory = directory = logger.get_logger_dir()
        asks = directory is not None or os.path.isabs(self._request_file)
        self._path = os.path.join(directory or "", self._request_file) if asks else None
        self._warm_from = self.trainer.loop.steps_taken + _WARMUP_STEPS
        self._on_gpu = any(each.device_type == "GPU" for each in self.trainer.sess.list_devices())
        self._restart()

    def _before_epoch(self) -> None:
        self._last = self._meters()
        self._in_epoch = not self.trainer.deterministic  # or it measures nothing

    def _after_epoch(self) -> None:
        self._add_up()
        self._in_epoch = False

    # These two are overridden without an underscore, for they are in every step.
    def before_run(self, ctx: tf.train.SessionRunContext) -> Optional[tf.train.SessionRunArgs]:
        """Does what is due, and asks for the time at which the step has its data."""
        self._in_step = self._in_epoch and self.trainer.loop.in_step
        if not self._in_step:
            return None
        if self._clock() >= self._next_look:
            self._look()
        self._began = self._clock()
        # Only along with the step: fetched alone, the probe would take a datapoint and drop it.
        is_step = self._step_op is not None and ctx.original_args.fetches is self._step_op
        return self._probe.ask() if is_step else None

    def after_run(
        self, ctx: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        """Takes the time of the step."""
        if not self._in_step:
            return
        took = self._clock() - self._began
        self._sums["inside"] += took
        if run_values.results is not None:
            waited, fill = self._probe.read(run_values.results, longest=took)
            self._sums["looked"] += took
            self._sums["waited"] += waited
            if fill is not None:
                self._sums["fill"] += fill
                self._sums["fills"] += 1

    def _look(self) -> None:
        """Does what is due, before a step."""
        if not self._warm:
            if self.trainer.loop.steps_taken >= self._warm_from:
                self._warm = True
                self._restart()
            return
        self._add_up()
        if self._sums["steps"] < _FEW_STEPS:
            return
        self._next_look = self._clock() + _LOOK_SECONDS
        in_first_epoch = self.epoch_num == self.trainer.starting_epoch
        if (in_first_epoch and not self._limit and self._is_due()) or _was_asked(self._path):
            self._report()

    def _trigger_epoch(self) -> None:
        if self._warm and self._is_due():
            if diagnose(self._figures()) != self._limit:
                self._report()
            self._restart()

    def _trigger(self) -> None:
        self._add_up()
        if self._warm and self._sums["steps"] >= _FEW_STEPS:
            self._report()

    def _is_due(self) -> bool:
        sums = self._sums
        return sums["seconds"] >= self._after_seconds and sums["steps"] >= self._after_steps

    def _meters(self) -> Dict[str, float]:
        """Returns readings of what only grows."""
        in_callbacks = self.trainer.callback_seconds
        return {
            "seconds": self._clock(),
            "steps": self.trainer.loop.steps_taken,
            "cpu": cpu_seconds(),
            "env_steps": getattr(self._source, "env_steps", None) or 0,
            **{_IN + name: seconds for name, seconds in in_callbacks.items()},
        }

    def _add_up(self) -> None:
        """Adds what the meters have gained, without the time between epochs."""
        if self._in_epoch:
            now = self._meters()
            for key, reading in now.items():
                self._sums[key] += reading - self._last.get(key, 0.0)
            self._last = now

    def _restart(self) -> None:
        self._sums: Dict[str, float] = defaultdict(float)
        self._last = self._meters()

    def _report(self) -> None:
        figures = self._figures()
        self._limit = diagnose(figures)
        hint = getattr(self._source, "bottleneck_hint", None)
        said = advice(self._limit, figures, hint(self._limit) if hint is not None else None)
        text = f"Where the time goes: {describe(figures)}. {said}."
        logger.info(text)
        self._restart()
        if self._directory is None:
            return
        step = self.trainer.loop.steps_taken
        where = {"epoch": self.epoch_num, "step": step, "limit": self._limit, "text": text}
        fields = {**where, **figures._asdict(), "stepping": figures.stepping}
        rounded = {
            k: round(v, _PRECISION) if isinstance(v, float) else v for k, v in fields.items()
        }
        try:
            with open(os.path.join(self._directory, FILENAME), "ab") as file:
                file.write(json.dumps(rounded).encode("ascii") + b"\n")
        except OSError as error:
            logger.warning(f"The time report is in the log alone: {error}")

    def _figures(self) -> Figures:
        sums, cores = self._sums, usable_cores()
        seconds = max(sums["seconds"], 1e-9)
        callbacks = max(0.0, sums["seconds"] - sums["inside"]) / seconds
        waiting = sums["waited"] / sums["looked"] * (1 - callbacks) if sums["looked"] > 0 else None
        has_env = getattr(self._source, "env_steps", None) is not None
        return Figures(
            seconds=sums["seconds"],
            steps=int(sums["steps"]),
            waiting=waiting,
            callbacks=callbacks,
            fill=sums["fill"] / sums["fills"] if sums["fills"] else None,
            env_steps=sums["env_steps"] / seconds if has_env else None,
            cores=cores,
            busy=sums["cpu"] / seconds / cores,
            on_gpu=self._on_gpu,
            in_callbacks={
                key[len(_IN) :]: round(took, _PRECISION)
                for key, took in sums.items()
                if key.startswith(_IN)
            },
        )


class StepProbe:
    """Measures how long a step of the training waits for its data.

    Its `request` is to be fetched along with the step. It is None unless the trainer has one op per
    step and its input is a queue or a `FeedInput`.
    """

    def __init__(self, trainer: Any) -> None:
        step_op = trainer.step_op
        self._fed = isinstance(getattr(trainer.config, "data", None), FeedInput)
        self._asked_at = 0.0  # on the clock of the graph
        self._probes: List[WaitProbe] = []
        self.request: Optional[tf.train.SessionRunArgs] = None
        if step_op is not None and self._fed:
            self.request = tf.train.SessionRunArgs(tf.timestamp(name="begin"))
        elif step_op is not None:
            self._probes = [each for each in wait_probes(step_op.graph) if each.belongs_to(step_op)]
        if self._probes:
            self.request = tf.train.SessionRunArgs([each.fetches for each in self._probes])

    def ask(self) -> Optional[tf.train.SessionRunArgs]:
        """Returns `request`, to be used at once."""
        self._asked_at = time.time()
        return self.request

    def read(self, results: Any, longest: float) -> WaitReading:
        """Returns what the results of the request say; no wait is longer than the step, which took
        `longest` seconds, whatever the clocks say.
        """
        if self._fed:
            return WaitReading(min(max(0.0, results - self._asked_at), longest), None)
        readings = [probe.read(values) for probe, values in zip(self._probes, results)]
        fills = [each.fill for each in readings if each.fill is not None]
        seconds = min(max(each.seconds for each in readings), longest)
        return WaitReading(seconds, min(fills) if fills else None)


def cpu_seconds() -> float:
    """Returns the processor time of this process and its children, in seconds.

    It includes children that have been waited for and, where there is /proc, running ones that
    `multiprocessing` started.
    """
    total = sum(os.times()[:4])
    for child in multiprocessing.active_children():
        with suppress(OSError):  # it has ended, or the system has no /proc
            with open(f"/proc/{child.pid}/stat", encoding="utf-8", errors="replace") as file:
                user, system = file.read().rpartition(")")[2].split()[11:13]  # see proc(5)
            total += (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return total


def _was_asked(path: Optional[str]) -> bool:
    """Whether an empty file asks for a report; removes it, and leaves any other file alone."""
    with suppress(OSError):  # it may not be removed
        if path and os.path.isfile(path) and os.path.getsize(path) == 0:
            os.unlink(path)
            return True
    return False


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
