"""How fast a flow gives its datapoints, with nothing consuming them."""

import multiprocessing
import os
import time
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

import numpy as np

from tensorpack.utils import get_tqdm

from .._threads.workers import nbytes_of
from ..base import DataFlow
from .errors import CommandError

__all__ = ["Limits", "Measurement", "measure"]

_WEIGH_EVERY = 16  # datapoints, for to find out how large one is takes time as well
_DRAW_SECONDS = 0.2


class Limits(NamedTuple):
    """How much is measured.

    Attributes:
      size: datapoints, at most.
      seconds: of measuring, at most; a datapoint that is under way is waited for.
      warmup: datapoints that are taken first and do not count.
    """

    size: int
    seconds: float
    warmup: int


class Measurement(NamedTuple):
    """What was measured.

    Attributes:
      latencies: seconds from one datapoint to the next, float64 `[datapoints]`.
      nbytes: of a datapoint, on the average.
      first_seconds: from the reset of the flow to its first datapoint.
      passes: in how many passes of the flow they were.
      stopped: why there were no more before a limit was reached; empty if one was.
      memory_before: bytes in the memory of this process before all; None where that is not known.
      memory: the same when it was over.
      memory_of_workers: of each process that this one had started then.
    """

    latencies: np.ndarray
    nbytes: float
    first_seconds: float
    passes: int
    stopped: str
    memory_before: Optional[int]
    memory: Optional[int]
    memory_of_workers: List[int]

    @property
    def number(self) -> int:
        """The number of datapoints."""
        return len(self.latencies)

    @property
    def seconds(self) -> float:
        """Of all datapoints together; more than zero."""
        return max(float(self.latencies.sum()), 1e-9)

    @property
    def rate(self) -> float:
        """Datapoints in a second."""
        return self.number / self.seconds


def measure(
    flow: DataFlow,
    limits: Limits,
    title: str,
    clock: Callable[[], float] = time.perf_counter,
) -> Measurement:
    """Resets a flow and takes datapoints, pass after pass, under a progress bar.

    What lies between two passes counts, as a part of the datapoint that comes next.

    Args:
      flow: what to measure.
      limits: how long.
      title: of the bar.
      clock: returns the time in seconds.

    Raises:
      CommandError: there was no datapoint beyond the warm-up.
      Exception: whatever the flow raises; but if it cannot begin another pass, that is told by
        `Measurement.stopped`.
    """
    memory_before = _memory_of(os.getpid())
    begin = clock()
    flow.reset_state()
    taking = _Taking(limits, clock)
    try:
        with get_tqdm(total=limits.size, desc=title) as bar:
            taking.take(flow, bar)
            bar.update(len(taking.latencies) - bar.n)
        memory = _memory_of(os.getpid())
        workers = [_memory_of(process.pid) for process in multiprocessing.active_children()]
    finally:
        taking.close()
    if not taking.latencies:
        raise CommandError(
            f"There is nothing to measure: {title} gave {taking.taken} datapoints and then a pass "
            f"without any, and the warm-up took {limits.warmup}. Give another --warmup, or a flow "
            "with more in it."
        )
    return Measurement(
        np.array(taking.latencies),
        float(np.mean(taking.sizes)),
        taking.first_at - begin,
        taking.passes,
        taking.stopped,
        memory_before,
        memory,
        [nbytes for nbytes in workers if nbytes is not None],
    )


class _Taking:
    """Takes datapoints, and notes how long each one took and how large some of them are."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._start = self._previous = self._drawn = 0.0
        self.latencies: List[float] = []
        self.sizes: List[int] = []
        self.taken = self.passes = 0
        self.first_at = 0.0
        self.stopped = ""
        self._datapoints: Iterator[Any] = iter(())

    def take(self, flow: DataFlow, bar: Any) -> None:
        """Takes as many as the limits allow; begins another pass where one ends before that."""
        self._start = self._previous = self._drawn = self._clock()
        more = True
        while more:
            before = self.taken
            try:
                self._datapoints = iter(flow)
                more = self._take_pass(bar)
            except Exception as error:
                if self.taken > before or not self.latencies:
                    raise
                self.stopped = f"no other pass could begin: {type(error).__name__}: {error}"
                return
            if self.taken == before:
                self.stopped = "the next pass gave nothing"
                return

    def close(self) -> None:
        """Leaves the pass that it is in."""
        getattr(self._datapoints, "close", lambda: None)()

    def _take_pass(self, bar: Any) -> bool:
        """Takes what it can of a pass; returns whether that ended before a limit was reached."""
        before = len(self.latencies)
        for datapoint in self._datapoints:
            if self._reaches_limit(self._clock(), datapoint, bar):
                self.passes += 1
                return False
            self._previous = self._clock()  # what was done here is not the flow's
            if self.taken == self._limits.warmup:
                self._start = self._previous
        self.passes += len(self.latencies) > before
        return True

    def _reaches_limit(self, now: float, datapoint: Any, bar: Any) -> bool:
        """Notes a datapoint that has come; returns whether it is the last one."""
        limits = self._limits
        self.taken += 1
        if self.taken == 1:
            self.first_at = now
        if self.taken <= limits.warmup:
            return False
        self.latencies.append(now - self._previous)
        if len(self.latencies) % _WEIGH_EVERY == 1:
            self.sizes.append(nbytes_of(datapoint))
        if now - self._drawn >= _DRAW_SECONDS:
            self._drawn = now
            bar.update(len(self.latencies) - bar.n)
        return len(self.latencies) == limits.size or now - self._start >= limits.seconds


def _memory_of(pid: Optional[int]) -> Optional[int]:
    """What a process has in memory, in bytes; None where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, IndexError):  # an empty one: it has just ended
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
