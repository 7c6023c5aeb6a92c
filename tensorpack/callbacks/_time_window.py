"""Adds up what was measured within epochs, and leaves out what happens between them."""

from typing import Any, NamedTuple, Optional

from tensorpack.input_source.waiting import WaitReading

from ._bottleneck import Figures

__all__ = ["Meters", "TimeWindow"]


class Meters(NamedTuple):
    """Readings of all that only grows, at one moment; or the differences of two."""

    seconds: float = 0.0
    steps: int = 0
    inside: float = 0.0  # seconds in runs of the session
    cpu: float = 0.0  # seconds of processor time
    machine: float = 0.0  # seconds that the average core was busy, for anybody
    env_steps: int = 0

    def plus(self, other: "Meters", sign: int = 1) -> "Meters":
        """Returns the sum of each reading, or with `sign=-1` the difference."""
        return Meters._make(mine + sign * its for mine, its in zip(self, other))


class TimeWindow:
    """A stretch of a run that is looked at, perhaps over several epochs.

    Args:
      begin: the meters now; None between two epochs.
    """

    def __init__(self, begin: Optional[Meters] = None) -> None:
        self._total = Meters()
        self._entered = begin
        self._waited: Optional[float] = None  # seconds, of all steps up to the last sample
        self._seen = Meters()  # the total at the last sample
        self._late = Meters()  # the total up to where a sample was overdue, not before `_seen`
        self._fill = _Trend()

    def enter(self, now: Meters) -> None:
        """Says that an epoch begins."""
        self._entered = now

    def leave(self, now: Meters) -> None:
        """Says that it ends."""
        self._total = self.total(now)
        self._entered = None

    def total(self, now: Meters) -> Meters:
        """Returns how much there was of everything up to now."""
        if self._entered is None:
            return self._total
        return self._total.plus(now.plus(self._entered, -1))

    def put_off(self, now: Meters) -> None:
        """Says that the next sample comes later than it should have."""
        self._late = self.total(now)

    def take(self, reading: WaitReading, now: Meters) -> None:
        """Takes what was measured in one step, which stands for all since the last one."""
        total = self.total(now)
        late = self._late.plus(self._seen, -1)
        steps = total.steps - self._late.steps
        # The speed has changed somewhere before `_late`: there, no more is waited than time passed.
        waited = reading.seconds * steps + min(reading.seconds * late.steps, late.inside)
        self._waited = (self._waited or 0.0) + waited
        self._seen = self._late = total
        if reading.fill is not None:
            self._fill.take(reading.fill)

    def figures(self, now: Meters, **known: Any) -> Figures:
        """Returns what to tell, with fields of `Figures` that are known otherwise."""
        total = self.total(now)
        seconds = max(total.seconds, 1e-9)
        callbacks = min(1.0, max(0.0, (total.seconds - total.inside) / seconds))
        waiting = None
        if self._waited is not None:
            waiting = min(1.0, self._waited / max(self._seen.inside, 1e-9)) * (1.0 - callbacks)
        return Figures(
            seconds=total.seconds,
            steps=total.steps,
            waiting=waiting,
            callbacks=callbacks,
            fill=self._fill.mean,
            trend=self._fill.change,
            machine=total.machine / seconds,
            busy=total.cpu / seconds / known.get("cores", 1),
            **known,
        )


class _Trend:
    """Mean of values that come about equally often, and how much they change by a fitted line."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = self._sum_at = 0.0

    def take(self, value: float) -> None:
        self._sum += value
        self._sum_at += self._count * value
        self._count += 1

    @property
    def mean(self) -> Optional[float]:
        return self._sum / self._count if self._count else None

    @property
    def change(self) -> float:
        """From the first value to the last: the slope, times the distance."""
        n = self._count
        if n < 2:
            return 0.0
        # sum of (i - mean(i))^2 is n (n^2 - 1) / 12
        slope = (self._sum_at - (n - 1) / 2 * self._sum) * 12 / (n * (n * n - 1))
        return slope * (n - 1)
