"""Datapoints from processes of tensorpack, 0.11 or this project's.

.venv-peer-tensorpack-0.11/bin/python benchmarks/peers/tensorpack_runner.py --kind large
"""

import itertools

from _clock import parse_args, per_second, print_rate
from _stream import BATCH, check, datapoint_of, decoded, first, length, pictures, same

import tensorpack.dataflow as df


class Endless(df.DataFlow):
    """The same datapoints again and again."""

    def __init__(self, datapoints):
        self._datapoints = datapoints

    def __iter__(self):
        return itertools.cycle(self._datapoints)

    def __len__(self):
        return 10**9


def flow_of(kind, processes, listed=False):
    """The flow of a kind; `listed` makes lists of dictionaries, which 0.11 does not take."""
    if kind == "jpegs":
        flow = Endless([[jpeg] for jpeg in pictures()])
        return df.MultiProcessMapAndBatchDataZMQ(flow, processes, decoded, BATCH, 4 * BATCH)
    datapoint = datapoint_of(kind)
    if listed and isinstance(datapoint, dict):
        datapoint = list(datapoint.values())
    if kind.startswith("mapped"):
        return df.MultiProcessMapDataZMQ(Endless([datapoint]), processes, same)
    return df.MultiProcessRunnerZMQ(Endless([datapoint]), processes)


def main():
    """Measures and prints."""
    args = parse_args(__doc__, kind="large", processes=2, seconds=3.0)
    flow = flow_of(args.kind, args.processes, listed=True)
    flow.reset_state()
    rate = per_second(map(first, flow), args.seconds, length(args.kind), check)
    print_rate("datapoints", rate)


if __name__ == "__main__":
    main()
