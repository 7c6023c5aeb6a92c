"""How fast a flow gives its datapoints, with nothing consuming them."""

import multiprocessing
import os
import time
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

import numpy as np

from tensorpack.utils import get_tqdm

from .._length import length_or_none
from .._threads.size import nbytes_of
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
      ended: whether the pass came to its end.
      memory_before: bytes in the memory of this process before all; None where that is not known.
      memory: the same when it was over.
      memory_of_workers: of each process that this one had started then.
    """

    latencies: np.ndarray
    nbytes: float
    first_seconds: float
    ended: bool
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
    """Resets a flow and takes datapoints of one pass, under a progress bar.

    Args:
      flow: what to measure.
      limits: how long.
      title: of the bar.
      clock: returns the time in seconds.

    Raises:
      CommandError: there was no datapoint beyond the warm-up.
    """
    memory_before = _memory_of(os.getpid())
    begin = clock()
    flow.reset_state()
    datapoints = iter(flow)
    taking = _Taking(limits, clock)
    available = max(0, (length_or_none(flow) or 0) - limits.warmup) or limits.size
    try:
        with get_tqdm(total=min(limits.size, available), desc=title) as bar:
            taking.take(datapoints, bar)
        memory = _memory_of(os.getpid())
        workers = [_memory_of(process.pid) for process in multiprocessing.active_children()]
    finally:
        getattr(datapoints, "close", lambda: None)()
    if not taking.latencies:
        raise CommandError(
            f"There is nothing to measure: {title} gave {taking.taken} datapoints in a pass, and "
            f"the warm-up took {limits.warmup}. Give another --warmup, or a longer flow."
        )
    return Measurement(
        np.array(taking.latencies),
        float(np.mean(taking.sizes)),
        taking.first_at - begin,
        taking.ended,
        memory_before,
        memory,
        [nbytes for nbytes in workers if nbytes is not None],
    )


class _Taking:
    """Takes datapoints, and notes how long each one took and how large some of them are."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self.latencies: List[float] = []
        self.sizes: List[int] = []
        self.taken = 0
        self.first_at = 0.0
        self.ended = False

    def take(self, datapoints: Iterator[Any], bar: Any) -> None:
        """Takes as many as the limits allow."""
        limits, clock, latencies = self._limits, self._clock, self.latencies
        start = drawn = previous = clock()
        for datapoint in datapoints:
            now = clock()
            self.taken += 1
            if self.taken == 1:
                self.first_at = now
            if self.taken > limits.warmup:
                latencies.append(now - previous)
                if len(latencies) % _WEIGH_EVERY == 1:
                    self.sizes.append(nbytes_of(datapoint))
                if len(latencies) == limits.size or now - start >= limits.seconds:
                    break
                if now - drawn >= _DRAW_SECONDS:
                    drawn = now
                    bar.update(len(latencies) - bar.n)
            previous = clock()  # what was done here is not the flow's
            if self.taken == limits.warmup:
                start = previous
        else:
            self.ended = True
        bar.update(len(latencies) - bar.n)


def _memory_of(pid: Optional[int]) -> Optional[int]:
    """What a process has in memory, in bytes; None where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, IndexError):  # an empty one: it has just ended
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
