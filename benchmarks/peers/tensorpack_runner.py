"""Datapoints from processes of tensorpack 0.11's MultiProcessRunnerZMQ.

.venv-peer-tensorpack-0.11/bin/python benchmarks/peers/tensorpack_runner.py --kind large
"""

import sys

from _stream import BATCH, count_per_second, decode, endless, parse_args, pictures

from tensorpack.dataflow import (
    DataFlow,
    DataFromList,
    MultiProcessMapAndBatchDataZMQ,
    MultiProcessRunnerZMQ,
)


class Endless(DataFlow):
    """The same datapoints again and again."""

    def __init__(self, kind):
        self._kind = kind

    def __iter__(self):
        return endless(self._kind)


def decoded(datapoint):
    """One picture."""
    return [decode(datapoint[0])]


def main():
    """Measures and prints."""
    args = parse_args(__doc__.splitlines()[0])
    if args.kind == "jpegs":
        source = DataFromList([[jpeg] for jpeg in pictures()], shuffle=False)
        flow = MultiProcessMapAndBatchDataZMQ(
            source, args.processes, decoded, BATCH, buffer_size=4 * BATCH
        )
    else:
        flow = MultiProcessRunnerZMQ(Endless(args.kind), args.processes)
    flow.reset_state()
    each = BATCH if args.kind == "jpegs" else 1
    rate = count_per_second((datapoint[0] for datapoint in flow), args.seconds, each)
    sys.stdout.write(f"datapoints/s: {rate:.1f}\n")


if __name__ == "__main__":
    main()
