"""Measures a run within its epochs: samples of steps and callbacks, sums, and the processor."""

import multiprocessing
import os
import random
import sys
import threading
import time
from collections import Counter, deque
from typing import Any, Callable, List, NamedTuple, Optional

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedInput
from tensorpack.input_source.dequeue import WaitProbe, WaitReading, wait_probes

from ..base import Callback
from ._diagnosis import Figures

_RECENT_STEPS = 64  # over which the duration of a step is averaged
_LEAST = 1e-4  # probability of a step to be chosen
_RECENT_FILLS = 10000  # readings of the queue that are kept, about a quarter of an hour
_LOOK_SECONDS = 0.1  # between two looks at which callback is at work
_HOOKS = frozenset(
    prefix + hook for prefix in ("", "_") for hook in ("before_run", "after_run", "trigger_step")
)

# Fields of /proc/PID/stat behind the name, and of the first line of /proc/stat, see proc(5).
_USER, _SYSTEM = 11, 12
_BUSY_KINDS = (0, 1, 2, 5, 6, 7)  # all but idle and waiting for a disk; guests are in "user"


class SampleSchedule:
    """Chooses steps at random, about one in `seconds`, and says how many each stands for.

    The probability of a step follows the speed of the steps before it, and a measurement counts as
    often as the inverse: so sums are right, also where the speed changes. The choice is stratified:
    the samples are spread evenly, at no period.
    """

    def __init__(self, seconds: float) -> None:
        self._per_second = 1 / seconds
        self._draw = random.Random(0).random
        self._last = 0.0  # when the last step began
        self._duration = seconds  # of a step, lately; the first steps are all chosen
        self._sum = 0.0  # of the probabilities of all steps
        self._stratum, self._next = 0, self._draw()  # where in that sum the next sample is

    def resume(self, now: float) -> None:
        """Says that the time until now belongs to no step."""
        self._last = now

    def weight(self, now: float) -> float:
        """Returns how many steps the one that begins now stands for; 0 if it is not chosen."""
        took, self._last = now - self._last, now
        self._duration += (took - self._duration) / _RECENT_STEPS
        probability = min(1.0, max(_LEAST, self._duration * self._per_second))
        self._sum += probability
        chosen = 0
        while self._sum >= self._next:
            chosen += 1
            self._stratum += 1
            self._next = self._stratum + self._draw()
        return chosen / probability


class CallbackSampler:
    """Counts in which callback's `trigger_step`, `before_run` or `after_run` a thread is.

    It samples the thread that called `start`, from a thread of its own, until `stop`. A sample
    takes the interpreter for some microseconds; a step inside TensorFlow is not slowed down. It
    counts if `counts()` says so at that moment.
    """

    def __init__(self, counts: Callable[[], bool]) -> None:
        self._counts = counts
        self._seen: Counter[str] = Counter()
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        """Starts to sample the calling thread, unless it has been started."""
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(
                target=self._run, args=(threading.get_ident(),), name="CallbackSampler", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread, if there is one."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def sample(self, ident: int) -> None:
        """Takes one sample of a thread."""
        name = running_callback(sys._current_frames().get(ident)) if self._counts() else None
        if name is not None:
            self._seen[name] += 1

    def slowest(self) -> str:
        """Returns the name of the callback that was sampled most often, "" if none was."""
        seen = dict(self._seen)  # the thread may be counting
        return max(seen, key=seen.__getitem__, default="")

    def reset(self) -> None:
        """Sets all counts to zero."""
        self._seen.clear()

    def _run(self, ident: int) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self.sample(ident)


def running_callback(frame: Any) -> Optional[str]:
    """Returns the name of the callback to which the innermost frame of a thread belongs, or None.

    A proxy is named instead of the callback inside; the group of all callbacks is not.
    """
    found = None
    while frame is not None:
        if frame.f_code.co_name in _HOOKS:
            owner = frame.f_locals.get("self")
            if isinstance(owner, Callback) and not hasattr(owner, "cbs"):
                found = owner
        frame = frame.f_back
    return None if found is None else str(found)


class StepProbe:
    """Measures how long a step of the training waits for its data.

    Its `request` is to be fetched along with the step. It is None unless the trainer has one op per
    step and its input is a queue or a `FeedInput`.
    """

    def __init__(self, trainer: Any) -> None:
        config, step_op = trainer.config, trainer.step_op
        self.request: Optional[tf.train.SessionRunArgs] = None
        self._fed = config is not None and isinstance(config.data, FeedInput)
        self._probes: List[WaitProbe] = []
        self._asked_at = 0.0  # on the clock of the graph
        if step_op is None:
            return
        if self._fed:
            self.request = tf.train.SessionRunArgs(tf.timestamp(name="begin"))
            return
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
        seconds = max(each.seconds for each in readings)
        fills = [each.fill for each in readings if each.fill is not None]
        return WaitReading(min(seconds, longest), min(fills) if fills else None)


class Meters(NamedTuple):
    """Readings of what only grows, at one moment; or the differences of two."""

    seconds: float = 0.0
    steps: int = 0
    inside: float = 0.0  # seconds in runs of the session
    cpu: float = 0.0  # seconds of processor time
    machine: float = 0.0  # seconds that the average core was busy
    env_steps: int = 0

    def since(self, begin: "Meters") -> "Meters":
        """Returns the difference of each reading."""
        return Meters._make(mine - its for mine, its in zip(self, begin))


class Window:
    """A part of a run that is measured, without the time between epochs."""

    def __init__(self, begin: Meters) -> None:
        self._begin = begin
        self._left: Optional[Meters] = None  # between two epochs: at the end of the first
        self._waited = self._looked = 0.0  # seconds in the sampled steps, times their weights
        self._fills: deque[float] = deque(maxlen=_RECENT_FILLS)

    def leave(self, now: Meters) -> None:
        """Says that an epoch ends."""
        self._left = now

    def enter(self, now: Meters) -> None:
        """Says that an epoch begins."""
        if self._left is not None:
            self._begin = now.since(self._left.since(self._begin))
            self._left = None

    def total(self, now: Meters) -> Meters:
        """Returns how much of everything the window has."""
        return (now if self._left is None else self._left).since(self._begin)

    def take(self, reading: WaitReading, took: float, weight: float) -> None:
        """Takes what was measured in a step that took so many seconds and stands for `weight`."""
        self._waited += weight * reading.seconds
        self._looked += weight * took
        if reading.fill is not None:
            self._fills.append(reading.fill)

    def figures(self, now: Meters, **known: Any) -> Figures:
        """Returns the figures of the window, with fields of `Figures` that are known otherwise."""
        total = self.total(now)
        seconds = max(total.seconds, 1e-9)
        callbacks = min(1.0, max(0.0, (total.seconds - total.inside) / seconds))
        waiting = None
        if self._looked > 0:
            waiting = min(1.0, self._waited / self._looked) * (1.0 - callbacks)
        count = len(self._fills)
        slope = np.polyfit(range(count), self._fills, 1)[0] if count > 1 else 0.0
        return Figures(
            seconds=total.seconds,
            steps=total.steps,
            waiting=waiting,
            callbacks=callbacks,
            fill=float(np.mean(self._fills)) if count else None,
            trend=float(slope) * (count - 1),
            machine=total.machine / seconds,
            busy=total.cpu / seconds / known.get("cores", 1),
            **known,
        )


def cpu_seconds() -> float:
    """Returns the processor time of this process and its children, in seconds.

    It includes children that have been waited for and, where there is /proc, running ones that
    `multiprocessing` started.
    """
    total = sum(os.times()[:4])
    for child in multiprocessing.active_children():
        fields = _fields(f"/proc/{child.pid}/stat")
        if len(fields) > _SYSTEM:
            ticks = int(fields[_USER]) + int(fields[_SYSTEM])
            total += ticks / os.sysconf("SC_CLK_TCK")
    return total


def machine_seconds() -> Optional[float]:
    """Returns how many seconds the average core has been busy with any program; None if unknown."""
    try:
        busy = sum(int(_fields("/proc/stat", "cpu ")[kind]) for kind in _BUSY_KINDS)
    except (IndexError, ValueError):
        return None
    return busy / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)


def _fields(path: str, behind: str = ")") -> List[str]:
    """The fields of a file's first line after a mark; none if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().rpartition(behind)[2].split()
    except OSError:  # the process has ended, or the system has no /proc
        return []
