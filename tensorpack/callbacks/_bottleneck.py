"""Says what a training is limited by, given where its time goes."""

from typing import Any, NamedTuple, Optional

__all__ = [
    "CALLBACKS",
    "DATA",
    "DRAINING",
    "Figures",
    "PROCESSOR",
    "STEP",
    "advice",
    "describe",
    "diagnose",
]

DATA = "data"
DRAINING = "draining"
CALLBACKS = "callbacks"
PROCESSOR = "processor"
STEP = "step"

_MUCH = 0.15  # a share of the time that is worth a change
_STILL_MUCH = 0.10  # the same, of what was named before: so that the diagnosis does not flicker
_BUSY = 0.85  # a share of the cores that leaves nothing to gain
_HALF_FULL = 0.5
_FALLING = -0.2  # of the queue's capacity, over the time that was looked at
_SHORT_STEP = 1e-3  # seconds, below which what surrounds a step counts


class Figures(NamedTuple):
    """What was measured. Shares are in [0, 1] and of the time within epochs."""

    seconds: float  # looked at
    steps: int  # in them
    waiting: Optional[float]  # share of waiting for data; None if nobody knows
    callbacks: float  # share of the time between two runs of the session
    fill: Optional[float] = None  # of the input queue, on average; None if nobody knows
    trend: float = 0.0  # change of the fill, from the first to the last look
    env_steps: Optional[float] = None  # environment steps per second
    cores: int = 1
    busy: float = 0.0  # share of the cores that this process and its children keep busy
    machine: float = 0.0  # share of all cores of the machine that anybody keeps busy; 0: unknown
    on_gpu: bool = False
    slowest: str = ""  # the callback that was seen at work most often

    @property
    def stepping(self) -> float:
        """The share of the steps themselves, with the waiting if nobody knows that."""
        return max(0.0, 1.0 - self.callbacks - (self.waiting or 0.0))

    @property
    def crowded(self) -> bool:
        """Whether the cores are busy, but with other programs, too."""
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
    rates = f"{figures.updates:.4g} updates/s"
    if figures.env_steps is not None:
        rates += f", {figures.env_steps:.4g} environment steps/s"
    fill = "" if figures.fill is None else f"; the input queue is {_percent(figures.fill)} full"
    return (
        f"{shares}, callbacks {_percent(figures.callbacks)}, of {figures.seconds:.0f} seconds with "
        f"{figures.steps} steps; {rates}{fill}; {figures.busy * figures.cores:.1f} of "
        f"{figures.cores} cores busy"
        + (f", {_percent(figures.machine)} of the machine" if figures.machine > 0 else "")
    )


def diagnose(figures: Figures, before: str = "") -> str:
    """Returns what limits the training, as one of the constants of this module.

    Args:
      figures: what was measured.
      before: the last diagnosis, which needs less to stay than another one to become true.
    """
    waiting = figures.waiting or 0.0
    shares = {DATA: waiting, CALLBACKS: figures.callbacks}
    largest = DATA if waiting >= figures.callbacks else CALLBACKS
    if shares[largest] >= (_STILL_MUCH if largest == before else _MUCH):
        return largest
    if figures.fill is not None and figures.fill < _HALF_FULL and figures.trend <= _FALLING:
        return DRAINING
    busy = _BUSY - 0.1 if before == PROCESSOR else _BUSY
    full = max(figures.busy, figures.machine) >= busy
    return PROCESSOR if full and not figures.on_gpu else STEP


def advice(limit: str, figures: Figures, hint: Optional[str] = None) -> str:
    """Returns, in a sentence or two, what the limit is and what would help.

    Args:
      limit: what `diagnose` returned.
      figures: what it was given.
      hint: what the source of the data knows better.
    """
    return _SENTENCES[limit](figures, hint)


def _data(figures: Figures, hint: Any) -> str:
    text = f"Waiting for data takes {_percent(figures.waiting)}: "
    text += hint or "the data is the limit; make it with more workers, or do less for a datapoint"
    if figures.crowded:
        text += " (other programs keep the processor busy)"
    elif figures.busy >= _BUSY:
        text += f" (all {figures.cores} cores are busy, so it has to become cheaper, too)"
    return text


def _draining(figures: Figures, hint: Any) -> str:
    return "The input queue is running empty, so the steps will soon wait for data: " + (
        hint or "make it with more workers, or do less for a datapoint"
    )


def _callbacks(figures: Figures, hint: Any) -> str:
    who = f", most often seen at work: {figures.slowest}" if figures.slowest else ""
    return (
        f"Callbacks take {_percent(figures.callbacks)} between the steps{who}; let "
        "them run more rarely (PeriodicTrigger, PeriodicCallback)"
    )


def _processor(figures: Figures, hint: Any) -> str:
    if figures.crowded:
        text = f"and other programs take {_percent(figures.machine - figures.busy)} of it"
    elif figures.cores == 1:
        text = "the core is busy"
    else:
        text = f"all {figures.cores} cores are busy"
    help = hint or "bfloat16, a GPU, more cores or fewer summaries help"
    return f"The processor is the limit, {text}; {help}"


def _step(figures: Figures, hint: Any) -> str:
    if 0 < figures.updates and figures.stepping / figures.updates < _SHORT_STEP:
        return "The data keeps up and a step is very short; do more in each, with larger batches"
    where = "on the GPU" if figures.on_gpu else "which leaves some of the cores idle"
    return f"The data keeps up; the limit is the step itself, {where}" + (
        f"; {hint}" if hint else ""
    )


_SENTENCES = {
    DATA: _data,
    DRAINING: _draining,
    CALLBACKS: _callbacks,
    PROCESSOR: _processor,
    STEP: _step,
}


def _percent(share: Optional[float]) -> str:
    return f"{100 * (share or 0.0):.0f} %"
