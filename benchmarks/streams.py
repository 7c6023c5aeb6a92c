"""R8 and R12: datapoints from worker processes."""

import contextlib
import sys
import time

import numpy as np
from _contest import Contest, itself
from _programs import HERE, rate_of

sys.path.insert(0, str(HERE / "peers"))

from _clock import per_second
from _stream import BATCH, KINDS, LARGE, check, decode, each_of, endless, pictures

import tensorpack.dataflow as df

BIG_MB = np.prod(LARGE) / 1e6
NAMES = {
    "small": "28 kB datapoints",
    "large": "9.6 MB datapoints",
    "ragged": "pictures of all heights, with boxes",
    "jpegs": "JPEGs, decoded and batched",
}


def processes(seconds=2.0, kinds=KINDS, counts=(1, 2)):
    """Datapoints from worker processes, against torch's DataLoader and tensorpack 0.11.

    Each kind of datapoint with one process and with two. Of large ones the unit is MB/s.
    """
    for kind in kinds:
        for count in counts:
            yield from _of_kind(kind, count, seconds)


def _of_kind(kind, count, seconds):
    flags = ["--kind", kind, "--processes", count, "--seconds", seconds]
    size, unit = (BIG_MB, "MB/s") if kind == "large" else (1, "/s")
    what = f"{NAMES[kind]}, {count} process{'es' if count > 1 else ''}"
    columns = yield Contest(
        f"{what} / the better peer",
        {"run": lambda: size * ours(kind, count, seconds)},
        {
            "torch": lambda: size * rate_of("torch_loader.py", *flags, peer="torch"),
            "tensorpack 0.11": lambda: (
                size * rate_of("tensorpack_runner.py", *flags, peer="tensorpack-0.11")
            ),
        },
        unit=unit,
        target=">= 2" if (kind, count) == ("large", 2) else "",
    )
    if (kind, count) == ("small", 2):
        yield Contest(what, {"run": columns["run"]}, {}, "dp/s", itself, ">= 50000")


class Endless(df.DataFlow):
    """The same datapoints again and again."""

    def __init__(self, kind):
        self._kind = kind

    def __iter__(self):
        return endless(self._kind)


def decoded(datapoint):
    """One picture."""
    return [decode(datapoint[0])]


def ours(kind, count, seconds):
    """Datapoints per second from so many processes of this project."""
    if kind == "jpegs":
        source = df.RepeatedData(
            df.DataFromList([[jpeg] for jpeg in pictures()], shuffle=False), -1
        )
        flow = df.MultiProcessMapAndBatchData(source, count, decoded, BATCH)
    else:
        flow = df.MultiProcessRunnerZMQ(Endless(kind), count)
    flow.reset_state()
    try:
        return per_second((datapoint[0] for datapoint in flow), seconds, each_of(kind), check)
    finally:
        flow.close()


def second_process(batches=100):
    """A strict flow whose map is the cost, in two processes against one, on two cores."""
    yield Contest(
        "batches of a map in a strict flow, 2 processes / 1",
        {
            "two": lambda: batches_per_second(2, batches),
            "one": lambda: batches_per_second(1, batches),
        },
        unit="/s",
        target=">= 1.8",
    )


def batches_per_second(count, batches):
    """Of the first pass, from its second batch on."""
    numbers = df.DataFromList([[number] for number in range(16 * batches)], shuffle=False)
    flow = df.MultiProcessRunner(
        df.BatchData(df.MapData(numbers, laborious), 16), 8, count, strict=True
    )
    flow.reset_state()
    with contextlib.closing(flow):
        datapoints = iter(flow)
        next(datapoints)
        start = time.perf_counter()
        return sum(1 for _ in datapoints) / (time.perf_counter() - start)


def laborious(datapoint):
    """Computes for a millisecond or two."""
    values = np.random.RandomState(datapoint[0]).rand(20000)
    return [np.sort(values)[:100]]
