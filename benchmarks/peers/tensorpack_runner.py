"""Datapoints from two processes of tensorpack 0.11's MultiProcessRunnerZMQ.

.venv-peer-tensorpack-0.11/bin/python benchmarks/peers/tensorpack_runner.py --size large
"""

import sys

from _stream import PROCESSES, count_per_second, make_array, parse_args

from tensorpack.dataflow import DataFlow, MultiProcessRunnerZMQ


class Endless(DataFlow):
    """The same array again and again."""

    def __init__(self, size):
        self._array = make_array(size)

    def __iter__(self):
        while True:
            yield [self._array]


def main():
    """Measures and prints."""
    args = parse_args(__doc__.splitlines()[0])
    flow = MultiProcessRunnerZMQ(Endless(args.size), PROCESSES)
    flow.reset_state()
    rate = count_per_second((datapoint[0] for datapoint in flow), args.seconds)
    sys.stdout.write(f"datapoints/s: {rate:.1f}\n")


if __name__ == "__main__":
    main()
