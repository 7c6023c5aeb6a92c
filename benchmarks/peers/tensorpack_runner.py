"""Datapoints from processes of tensorpack 0.11's MultiProcessRunnerZMQ.

.venv-peer-tensorpack-0.11/bin/python benchmarks/peers/tensorpack_runner.py --kind large
"""

from _clock import parse_args, per_second, print_rate
from _stream import BATCH, check, decode, each_of, endless, pictures

import tensorpack.dataflow as df


class Endless(df.DataFlow):
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
    args = parse_args(__doc__, kind="large", processes=2, seconds=3.0)
    if args.kind == "jpegs":
        source = df.DataFromList([[jpeg] for jpeg in pictures()], shuffle=False)
        flow = df.MultiProcessMapAndBatchDataZMQ(
            source, args.processes, decoded, BATCH, buffer_size=4 * BATCH
        )
    else:
        flow = df.MultiProcessRunnerZMQ(Endless(args.kind), args.processes)
    flow.reset_state()
    stream = (datapoint[0] for datapoint in flow)
    print_rate("datapoints", per_second(stream, args.seconds, each_of(args.kind), check))


if __name__ == "__main__":
    main()
