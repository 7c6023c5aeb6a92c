"""`bench`: how fast a flow is, how regular, how large, and which part of it is slow."""

from typing import Any, Callable, List, Tuple

import numpy as np

from .._length import length_or_none
from ..base import DataFlow
from ..processes import MultiProcessRunnerZMQ
from .flow import open_flow
from .measure import Limits, Measurement, measure
from .output import facts_table, number_text, size_text, table
from .stages import Stage, chain_of, measure_stages, name_of, slowest_stage

__all__ = ["bench"]

_PERCENTILES = (50, 90, 99, 100)
_UNEVEN = 10.0  # times the median


def bench(args: Any, write: Callable[[str], None]) -> int:
    """Does what the command is asked for; returns the exit code.

    Args:
      args: what the command line gave: `flow`, `size`, `warmup`, `seconds`, `processes` and
        `stages`.
      write: prints a text.

    Raises:
      CommandError: there is no such flow, or nothing to measure in it.
      Exception: whatever the user's code raises.
    """
    limits = Limits(args.size, args.seconds, args.warmup)
    with open_flow(args.flow) as flow:
        if not args.processes:
            _bench(flow, limits, args.stages, write)
            return 0
        runner = MultiProcessRunnerZMQ(flow, num_proc=args.processes)
        try:
            _bench(runner, limits, args.stages, write)
        finally:
            runner.close()
    return 0


def _bench(flow: DataFlow, limits: Limits, stages: bool, write: Callable[[str], None]) -> None:
    if stages:
        found = measure_stages(flow, limits)
        write(_stages_table(found) + "\n")
        measured = found[-1].measured
    else:
        measured = measure(flow, limits, name_of(flow))
    write(facts_table(_facts(flow, measured)))
    write("\n" + _in_words(flow, measured))
    if stages:
        write(slowest_stage(found))
    elif len(chain_of(flow)) > 1:
        write(f"--stages tells which of its {len(chain_of(flow))} stages that is.")


def _facts(flow: DataFlow, measured: Measurement) -> List[Tuple[str, str]]:
    length = length_or_none(flow)
    milliseconds = 1000 * np.percentile(measured.latencies, _PERCENTILES)
    latency = ", ".join(
        f"{'most' if percent == 100 else f'{percent} %'} {number_text(value)}"
        for percent, value in zip(_PERCENTILES, milliseconds)
    )
    return [
        ("flow", " > ".join(name_of(each) for each in chain_of(flow))),
        ("length of a pass", "unknown" if length is None else str(length)),
        ("measured", _amount(measured)),
        ("rate", f"{number_text(measured.rate)} datapoints/s, {_megabytes(measured)} MB/s"),
        ("datapoint", size_text(measured.nbytes)),
        ("latency in ms", latency),
        ("first datapoint", f"after {number_text(measured.first_seconds)} s"),
        ("memory", _memory(measured)),
    ]


def _amount(measured: Measurement) -> str:
    passes = "1 pass" if measured.passes == 1 else f"{measured.passes} passes"
    text = f"{measured.number} datapoints in {passes} and {number_text(measured.seconds)} s"
    return f"{text}; {measured.stopped}" if measured.stopped else text


def _megabytes(measured: Measurement) -> str:
    return number_text(measured.rate * measured.nbytes / 1e6)


def _memory(measured: Measurement) -> str:
    if measured.memory is None or measured.memory_before is None:
        return "unknown on this system"
    more = measured.memory - measured.memory_before
    text = f"{size_text(measured.memory)} in this process"
    if more > 0:
        text += f", {size_text(more)} of it since the begin"
    workers = measured.memory_of_workers
    if workers:
        text += f"; {len(workers)} workers with up to {size_text(max(workers))}, in part shared"
    return text


def _in_words(flow: DataFlow, measured: Measurement) -> str:
    median, rare = np.percentile(measured.latencies, [50, 99])
    text = f"{name_of(flow)} takes {number_text(1000 / measured.rate)} ms for a datapoint."
    if measured.number >= 100 and rare > _UNEVEN * median:
        text += (
            f" It comes in bursts: one in a hundred takes {number_text(1000 * rare)} ms or more, "
            f"{rare / max(median, 1e-12):.0f} times as long as half of them."
        )
    return text


def _stages_table(stages: List[Stage]) -> str:
    headers = ["stage", "datapoints/s", "ms for one", "takes of the one before", "own ms"]
    rows = [
        [
            name_of(stage.flow),
            number_text(stage.measured.rate),
            number_text(1000 / stage.measured.rate),
            "" if stage.taken is None else number_text(stage.taken),
            "-" if stage.own_seconds < 0 else number_text(1000 * stage.own_seconds),
        ]
        for stage in stages
    ]
    rows[-1][0] += " (all)"
    return table(rows, headers) + "\nown ms: for one datapoint of the whole flow"
