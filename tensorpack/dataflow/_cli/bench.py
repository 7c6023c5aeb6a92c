"""`bench`: how fast and how regular a flow is, and which of its stages takes the time.

A stage, a flow in the chain of `ds`, is measured together with all those before it. The datapoints
that it takes for one of its own are counted, so the difference of the times is the stage's own.
"""

import contextlib
import time
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
from tabulate import tabulate

from tensorpack.utils import get_tqdm
from tensorpack.utils._words import size_text

from .._flow import is_flow
from .._length import length_or_none
from .._threads.workers import nbytes_of
from ..base import DataFlow, ProxyDataFlow
from ..processes import MultiProcessRunnerZMQ
from . import CommandError, facts_table, number_text
from .flow import open_flow

_PERCENTILES = {"50 %": 50, "90 %": 90, "99 %": 99, "most": 100}
_EVERY = 16  # datapoints: the size of one of so many is taken, because that takes time as well
_Clock = Callable[[], float]


class Limits(NamedTuple):
    """How much is measured: datapoints and seconds at most, after `warmup` datapoints."""

    size: int
    seconds: float
    warmup: int


class Measurement(NamedTuple):
    """What was measured."""

    latencies: np.ndarray  # seconds from one datapoint to the next, float64 `[datapoints]`
    nbytes: float  # of a datapoint, on average
    first_seconds: float  # from the reset of the flow to its first datapoint
    passes: int
    stopped: str  # why there were no more before a limit was reached; empty if one was

    @property
    def seconds(self) -> float:
        """The time of all datapoints together; more than zero."""
        return max(float(self.latencies.sum()), 1e-9)

    @property
    def rate(self) -> float:
        """Datapoints in a second."""
        return len(self.latencies) / self.seconds


class Stage(NamedTuple):
    """A flow in a chain, measured with all stages before it."""

    flow: DataFlow
    measured: Measurement
    taken: Optional[float]  # datapoints of the stage before for one of its own; None if not known
    own_seconds: float  # of a datapoint of the whole flow; negative if it runs in parallel


def bench(args: Any, write: Callable[[str], None]) -> int:
    """Runs the command and prints by `write`; returns the exit code."""
    limits = Limits(args.size, args.seconds, args.warmup)
    with contextlib.ExitStack() as stack:
        flow = stack.enter_context(open_flow(args.flow))
        if args.processes:
            flow = MultiProcessRunnerZMQ(flow, num_proc=args.processes)
            stack.callback(flow.close)
        if args.stages:
            stages = measure_stages(flow, limits)
            write(_stages_table(stages) + "\n")
            write(facts_table(_facts(flow, stages[-1].measured)))
            write("\n" + slowest_stage(stages))
        else:
            write(facts_table(_facts(flow, measure(flow, limits, _name_of(flow)))))
    return 0


def measure(
    flow: DataFlow, limits: Limits, title: str, clock: _Clock = time.perf_counter
) -> Measurement:
    """Resets a flow and takes datapoints, pass after pass, under a progress bar.

    The time between two passes is part of the next datapoint's. Errors of the flow are raised,
    except where it cannot begin another pass.
    """
    begin = clock()
    flow.reset_state()
    start = previous = first_at = clock()
    latencies: List[float] = []
    sizes: List[int] = []
    passes, taken, stopped, done = 0, 0, "", False
    with get_tqdm(total=limits.size, desc=title) as bar:
        while not (stopped or done):
            before, measured_before = taken, len(latencies)
            datapoints: Any = ()
            try:
                datapoints = iter(flow)
                for datapoint in datapoints:
                    now = clock()
                    taken += 1
                    first_at = now if taken == 1 else first_at
                    if taken > limits.warmup:
                        latencies.append(now - previous)
                        bar.update()
                        sizes += [nbytes_of(datapoint)] if len(latencies) % _EVERY == 1 else []
                        done = len(latencies) == limits.size or now - start >= limits.seconds
                        if done:
                            break
                    previous = clock()  # the time since `now` is not the flow's
                    start = previous if taken <= limits.warmup else start
            except Exception as error:
                if taken > before or not latencies:
                    raise
                stopped = f"no other pass could begin: {type(error).__name__}: {error}"
            finally:
                getattr(datapoints, "close", lambda: None)()
            passes += len(latencies) > measured_before
            stopped = stopped or ("the next pass gave nothing" if taken == before else "")
    if not latencies:
        raise CommandError(
            f"There is nothing to measure: {title} gave {taken} datapoints and then a pass without "
            f"any, and the warm-up took {limits.warmup}. Give another --warmup, or a larger flow."
        )
    times, nbytes = np.array(latencies), float(np.mean(sizes))
    return Measurement(times, nbytes, first_at - begin, passes, stopped)


def _facts(flow: DataFlow, measured: Measurement) -> List[Tuple[str, str]]:
    length = length_or_none(flow)
    milliseconds = 1000 * np.percentile(measured.latencies, list(_PERCENTILES.values()))
    latency = ", ".join(f"{n} {number_text(ms)}" for n, ms in zip(_PERCENTILES, milliseconds))
    passes = "1 pass" if measured.passes == 1 else f"{measured.passes} passes"
    seconds = number_text(measured.seconds)
    amount = f"{len(measured.latencies)} datapoints in {passes} and {seconds} s"
    megabytes = number_text(measured.rate * measured.nbytes / 1e6)
    return [
        ("flow", " > ".join(_name_of(each) for each in _chain_of(flow))),
        ("length of a pass", "unknown" if length is None else str(length)),
        ("measured", f"{amount}; {measured.stopped}" if measured.stopped else amount),
        ("rate", f"{number_text(measured.rate)} datapoints/s, {megabytes} MB/s"),
        ("datapoint", size_text(measured.nbytes)),
        ("latency in ms", f"{latency}; mean {number_text(1000 / measured.rate)}"),
        ("first datapoint", f"after {number_text(measured.first_seconds)} s"),
    ]


def _chain_of(flow: Any) -> List[Any]:
    """The flows that a flow is made of one by one, the source first, itself last."""
    chain = [flow]
    while is_flow(getattr(chain[0], "ds", None)):
        chain.insert(0, chain[0].ds)
    return chain


def _name_of(flow: Any) -> str:
    function = getattr(getattr(flow, "func", None), "__name__", None)
    return f"{type(flow).__name__}({function})" if function else type(flow).__name__


def measure_stages(
    flow: DataFlow, limits: Limits, clock: _Clock = time.perf_counter
) -> List[Stage]:
    """Measures each stage of a flow, the source first; `limits.seconds` is for all together."""
    chain = _chain_of(flow)
    limits = limits._replace(seconds=limits.seconds / len(chain))
    found = [
        _measure_counted(each, inner, limits, f"{number}/{len(chain)} {_name_of(each)}", clock)
        for number, (inner, each) in enumerate(zip([None, *chain], chain), 1)
    ]
    needed = 1.0
    times: List[float] = []
    for measured, taken in reversed(found):
        times.insert(0, needed / measured.rate)
        needed *= 1.0 if taken is None else taken
    own = np.diff([0.0, *times])
    return [Stage(each, *both, float(seconds)) for each, both, seconds in zip(chain, found, own)]


class _Counted(ProxyDataFlow):
    """Passes a flow on; `count` is the number of datapoints since the last `reset_state`."""

    count = 0

    def __iter__(self) -> Iterator[Any]:
        for datapoint in self.ds:
            self.count += 1
            yield datapoint

    def reset_state(self) -> None:
        super().reset_state()
        self.count = 0


def _measure_counted(
    flow: Any, inner: Any, limits: Limits, title: str, clock: _Clock
) -> Tuple[Measurement, Optional[float]]:
    """Measures a flow, and how many datapoints of its `ds`, `inner`, it takes for one."""
    if inner is None:
        return measure(flow, limits, title, clock), None
    counted = flow.ds = _Counted(inner)
    try:
        measured = measure(flow, limits, title, clock)
    finally:
        flow.ds = inner
    number = limits.warmup + len(measured.latencies)
    return measured, counted.count / number if counted.count else None


def _stages_table(stages: List[Stage]) -> str:
    headers = ["stage", "datapoints/s", "ms for one", "takes of the one before", "own ms"]
    rows = [
        [
            _name_of(stage.flow),
            number_text(stage.measured.rate),
            number_text(1000 / stage.measured.rate),
            "" if stage.taken is None else number_text(stage.taken),
            "-" if stage.own_seconds < 0 else number_text(1000 * stage.own_seconds),
        ]
        for stage in stages
    ]
    table = tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)
    return table + "\nown ms: for one datapoint of the whole flow; - where it runs in parallel"


def slowest_stage(stages: List[Stage]) -> str:
    """Returns in words which stage takes the most time, and how much."""
    slowest = max(stages, key=lambda stage: stage.own_seconds)
    total = sum(max(0.0, stage.own_seconds) for stage in stages)
    return (
        f"The slowest stage is {_name_of(slowest.flow)}: "
        f"{number_text(1000 * slowest.own_seconds)} ms for each datapoint of the flow, "
        f"{100 * slowest.own_seconds / total:.0f} % of the sum of all stages."
    )
