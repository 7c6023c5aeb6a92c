"""Which part of a flow takes the time: each flow in the chain of `ds` is measured for itself.

A stage is measured together with all those before it, for without them it has nothing to do. How
many datapoints of the one before it takes for one of its own is counted; so times can be compared,
and their difference is the stage's own.
"""

import time
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from .._flow import is_flow
from ..base import DataFlow
from ..batch import BatchData
from ..map import MapData, MapDataComponent
from .counted import Counted
from .measure import Limits, Measurement, measure
from .output import number_text

__all__ = ["Stage", "chain_of", "measure_stages", "name_of", "slowest_stage"]


class Stage(NamedTuple):
    """A flow in a chain, as it was measured.

    Attributes:
      flow: the flow.
      measured: with all stages before it.
      taken: how many datapoints of the stage before it takes for one of its own; None if it has
        none before it, or takes them where this process does not see it.
      own_seconds: what it adds to the time of one datapoint of the whole flow. Less than zero if
        it works beside the stages before it, or does not need them all the time.
    """

    flow: DataFlow
    measured: Measurement
    taken: Optional[float]
    own_seconds: float


def chain_of(flow: Any) -> List[Any]:
    """Returns the flows that a flow is made from one by one, the source first, itself last."""
    chain: List[Any] = []
    while flow is not None and not any(flow is each for each in chain):
        chain.insert(0, flow)
        flow = _inner_of(flow)
    return chain


def name_of(flow: Any) -> str:
    """Returns what a stage is called: its class, and its function if it has one."""
    name = type(flow).__name__
    function = getattr(getattr(flow, "func", None), "__name__", None)
    return f"{name}({function})" if function else name


def measure_stages(
    flow: DataFlow, limits: Limits, clock: Callable[[], float] = time.perf_counter
) -> List[Stage]:
    """Measures each stage of a flow, the source first.

    Args:
      flow: the whole flow. Meanwhile, its stages have something between them that counts.
      limits: for all stages together as to the time, for each of them otherwise.
      clock: returns the time in seconds.

    Raises:
      CommandError: a stage has nothing to measure.
    """
    chain = chain_of(flow)
    limits = limits._replace(seconds=limits.seconds / len(chain))
    found = [
        _measure_counted(each, limits, f"{number}/{len(chain)} {name_of(each)}", clock)
        for number, each in enumerate(chain, 1)
    ]
    # For one datapoint of the whole flow, so many of each stage are needed.
    needed = [1.0]
    for _, taken in reversed(found[1:]):
        needed.insert(0, needed[0] * (1.0 if taken is None else taken))
    stages = []
    before = 0.0
    for each, (measured, taken), number in zip(chain, found, needed):
        seconds = number / measured.rate
        stages.append(Stage(each, measured, taken, seconds - before))
        before = seconds
    return stages


def slowest_stage(stages: List[Stage]) -> str:
    """Returns in words which stage takes the most time, how much, and what may help."""
    slowest = max(stages, key=lambda stage: stage.own_seconds)
    total = sum(max(0.0, stage.own_seconds) for stage in stages)
    text = (
        f"The slowest stage is {name_of(slowest.flow)}: "
        f"{number_text(1000 * slowest.own_seconds)} ms for each datapoint of the flow, "
        f"{100 * slowest.own_seconds / total:.0f} % of what all stages take one by one."
    )
    seconds = 0.0
    for stage in stages:
        before, seconds = seconds, seconds + stage.own_seconds
        if stage.own_seconds < 0:
            text += (
                f" {name_of(stage.flow)} is {before / seconds:.2g} times as fast as the stages "
                "before it by themselves: it works beside them, in other processes or threads, or "
                "from memory."
            )
    return f"{text} {_advice(slowest, stages)}".strip()


def _inner_of(flow: Any) -> Any:
    """The one flow that a flow is made from; None where there is none, or there are several."""
    inner = getattr(flow, "ds", None)
    return inner if is_flow(inner) else None


def _measure_counted(
    flow: Any, limits: Limits, title: str, clock: Callable[[], float]
) -> Tuple[Measurement, Optional[float]]:
    """Measures a flow, and how many datapoints of its `ds` it takes for one of its own."""
    inner = _inner_of(flow)
    if inner is None:
        return measure(flow, limits, title, clock), None
    counted = Counted(inner)
    try:
        flow.ds = counted
    except AttributeError:  # it is no plain attribute
        return measure(flow, limits, title, clock), None
    try:
        measured = measure(flow, limits, title, clock)
    finally:
        flow.ds = inner
    given = limits.warmup + measured.number
    return measured, counted.count / given if counted.count else None


def _advice(slowest: Stage, stages: List[Stage]) -> str:
    if slowest is stages[0]:
        return (
            "It is where the data comes from: --processes N shows what more processes would gain."
        )
    if isinstance(slowest.flow, (MapData, MapDataComponent)):
        return (
            "MultiThreadMapData applies a function in several threads, which helps if it spends "
            "its time in files, numpy or OpenCV, and MultiProcessMapData in several processes."
        )
    if isinstance(slowest.flow, BatchData):
        return (
            "A batch copies everything that is in it: smaller dtypes help, or "
            "MultiProcessMapAndBatchData, which makes batches in several processes."
        )
    return ""
