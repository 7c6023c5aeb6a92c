"""Timers that take their clock as an argument, and durations for people to read."""

import time
from collections import defaultdict
from contextlib import contextmanager
from typing import Callable, DefaultDict, Iterator, Optional

from tabulate import tabulate

from . import logger
from .stats import StatCounter

_Clock = Callable[[], float]

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


class Timer:
    """A stop watch; it runs from the start. A `clock`, here and below, returns seconds."""

    def __init__(self, clock: _Clock = time.perf_counter):
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Sets the watch to zero and lets it run."""
        self._total = 0.0
        self._since: Optional[float] = self._clock()

    def pause(self) -> None:
        """Stops the watch. Raises RuntimeError if it is stopped already."""
        if self._since is None:
            raise RuntimeError("The timer is paused already: call resume() first.")
        self._total += self._clock() - self._since
        self._since = None

    def resume(self) -> None:
        """Lets a stopped watch run on. Raises RuntimeError if it is running."""
        if self._since is not None:
            raise RuntimeError("The timer is running: call pause() first.")
        self._since = self._clock()

    def is_paused(self) -> bool:
        """Tells whether the watch is stopped."""
        return self._since is None

    def seconds(self) -> float:
        """Returns the seconds that it ran since the last `reset`."""
        return self._total + (0.0 if self._since is None else self._clock() - self._since)


@contextmanager
def timed_operation(
    msg: str, log_start: bool = False, clock: _Clock = time.perf_counter
) -> Iterator[None]:
    """Logs how long the block took, or ran before it failed; with `log_start`, also its start."""
    if log_start:
        logger.info(f"Start {msg} ...")
    timer = Timer(clock)
    try:
        yield
    except BaseException:
        logger.info(f"{msg} failed, time:{timer.seconds():.4f}sec.")
        raise
    logger.info(f"{msg} finished, time:{timer.seconds():.4f}sec.")


# Seconds spent in each kind of operation, over the whole process.
_totals: DefaultDict[str, StatCounter] = defaultdict(StatCounter)


@contextmanager
def total_timer(msg: str, clock: _Clock = time.perf_counter) -> Iterator[None]:
    """Adds the time of the block, also of one that raises, to the total printed for `msg`."""
    timer = Timer(clock)
    try:
        yield
    finally:
        _totals[msg].feed(timer.seconds())


def print_total_timer() -> None:
    """Logs the totals of `total_timer` as one table, the longest total first."""
    totals = sorted(_totals.items(), key=lambda item: -item[1].sum)
    rows = [(msg, stat.sum, stat.count, 1000 * stat.average) for msg, stat in totals]
    table = tabulate(rows, ["operation", "seconds", "calls", "ms per call"], floatfmt=".4g")
    logger.info(f"Time by operation:\n{table}")


class IterSpeedCounter:
    """Logs the mean speed of a loop every `print_every` rounds; call it once per round.

    The lines begin with `name`.
    """

    def __init__(
        self, print_every: int, name: Optional[str] = None, clock: _Clock = time.perf_counter
    ):
        self._print_every = print_every
        self._name = name or "Speed"
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Restarts the count."""
        self._rounds = 0
        self._start = self._clock()

    def __call__(self) -> None:
        """Counts one round, and logs the mean speed since `reset` if it is time."""
        self._rounds += 1
        if self._rounds % self._print_every == 0:
            seconds = (self._clock() - self._start) / self._rounds
            rate = 1 / seconds if seconds > 0 else float("inf")
            logger.info(f"{self._name}: {seconds:.4f} sec/iter, {rate:.4g} iter/sec")


def humanize_time_delta(sec: float) -> str:
    """Returns a duration in words: `1 hour 2 minutes 3 seconds`, or `1.23 seconds` below 10."""
    if sec < 10:
        return f"{sec:.2f} seconds"
    words = []
    rest = int(round(sec))
    for name, length in _UNITS:
        count, rest = divmod(rest, length)
        if count:
            words.append(f"{count} {name}" if count == 1 else f"{count} {name}s")
    return " ".join(words)
