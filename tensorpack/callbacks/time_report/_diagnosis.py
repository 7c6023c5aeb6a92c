"""Says what limits a training and what would help, given where its time goes."""

from typing import NamedTuple, Optional

_MUCH = 0.15  # a share of the time that is worth a change
_STILL_MUCH = 0.10  # the same for the last diagnosis, so that it does not flicker
_BUSY = 0.85  # a share of the cores that leaves nothing to gain
_STILL_BUSY = 0.75
_HALF_FULL = 0.5
_FALLING = -0.2  # of the queue's capacity, over the measured time
_MORE_DATA = "make it with more workers, or do less for a datapoint"
_SHORT_STEP = 1e-3  # seconds, below which the overhead of a step counts


class Figures(NamedTuple):
    """What was measured. Shares are in [0, 1] and of the time within epochs."""

    seconds: float  # measured
    steps: int  # in them
    waiting: Optional[float]  # share of waiting for data; None if unknown
    callbacks: float  # share of the time between two runs of the session
    fill: Optional[float] = None  # of the input queue, on average; None if unknown
    trend: float = 0.0  # change of the fill over the measured time
    env_steps: Optional[float] = None  # environment steps per second
    cores: int = 1
    busy: float = 0.0  # share of the cores that this process and its children keep busy
    machine: float = 0.0  # share of all cores that all programs keep busy; 0 if unknown
    on_gpu: bool = False
    slowest: str = ""  # the callback that was sampled most often

    @property
    def stepping(self) -> float:
        """The share of the steps themselves, with the waiting if that is unknown."""
        return max(0.0, 1.0 - self.callbacks - (self.waiting or 0.0))

    @property
    def crowded(self) -> bool:
        """Whether the cores are busy, but with other programs as well."""
        return self.machine >= _BUSY > self.busy

    @property
    def updates(self) -> float:
        """Steps per second."""
        return self.steps / self.seconds if self.seconds > 0 else 0.0


def describe(figures: Figures) -> str:
    """Returns what was measured, in one sentence without its end."""
    stepping = f"stepping {_percent(figures.stepping)}"
    if figures.waiting is None:
        shares = f"{stepping} (waiting for data could not be told from it)"
    else:
        shares = f"waiting for data {_percent(figures.waiting)}, {stepping}"
    text = (
        f"{shares}, callbacks {_percent(figures.callbacks)}, of {figures.seconds:.0f} seconds with "
        f"{figures.steps} steps; {figures.updates:.4g} updates/s"
    )
    if figures.env_steps is not None:
        text += f", {figures.env_steps:.4g} environment steps/s"
    if figures.fill is not None:
        text += f"; the input queue is {_percent(figures.fill)} full"
    text += f"; {figures.busy * figures.cores:.1f} of {figures.cores} cores busy"
    return text + (f", {_percent(figures.machine)} of the machine" if figures.machine > 0 else "")


def diagnose(figures: Figures, before: str = "") -> str:
    """Returns what limits the training: "data", "draining", "callbacks", "processor" or "step".

    The diagnosis of before needs less to stay than another one to become true.
    """
    shares = {"data": figures.waiting or 0.0, "callbacks": figures.callbacks}
    largest = max(shares, key=lambda name: shares[name])
    if shares[largest] >= (_STILL_MUCH if largest == before else _MUCH):
        return largest
    if figures.fill is not None and figures.fill < _HALF_FULL and figures.trend <= _FALLING:
        return "draining"
    full = _STILL_BUSY if before == "processor" else _BUSY
    is_full = max(figures.busy, figures.machine) >= full
    return "processor" if is_full and not figures.on_gpu else "step"


def advice(limit: str, figures: Figures, hint: Optional[str] = None) -> str:
    """Returns, in a sentence without its end, what the limit is and what would help.

    The source of the data may know better, and gives a hint.
    """
    if limit == "data":
        hint = hint or f"the data is the limit; {_MORE_DATA}"
        if figures.crowded:
            hint += " (other programs keep the processor busy)"
        elif figures.busy >= _BUSY:
            hint += f" (all {figures.cores} cores are busy, so it has to become cheaper, too)"
        return f"Waiting for data takes {_percent(figures.waiting)}: {hint}"
    if limit == "draining":
        text = "The input queue is running empty, so the steps will soon wait for data"
        return f"{text}: {hint or _MORE_DATA}"
    if limit == "callbacks":
        slowest = f", most often seen at work: {figures.slowest}" if figures.slowest else ""
        return (
            f"Callbacks take {_percent(figures.callbacks)} between the steps{slowest}; let "
            "them run more rarely (PeriodicTrigger, PeriodicCallback)"
        )
    if limit == "processor":
        text = "the core is busy" if figures.cores == 1 else f"all {figures.cores} cores are busy"
        if figures.crowded:
            text = f"and other programs take {_percent(figures.machine - figures.busy)} of it"
        hint = hint or "bfloat16, a GPU, more cores or fewer summaries help"
        return f"The processor is the limit, {text}; {hint}"
    if 0 < figures.updates and figures.stepping / figures.updates < _SHORT_STEP:
        return "The data keeps up and a step is very short; do more in each, with larger batches"
    where = "on the GPU" if figures.on_gpu else "which leaves some of the cores idle"
    hint = f"; {hint}" if hint else ""
    return f"The data keeps up; the limit is the step itself, {where}{hint}"


def _percent(share: Optional[float]) -> str:
    return f"{100 * (share or 0.0):.0f} %"
