"""R8 and R12: datapoints from worker processes; R19: from files."""

import contextlib
import sys
import tempfile
import time

import numpy as np
from _contest import Contest, itself
from _programs import HERE, fresh, on_cores, rate_of

sys.path.insert(0, str(HERE / "peers"))

from _clock import per_second
from _stream import BATCH, KINDS, LARGE, check, decode, each_of, endless, pictures, records

import tensorpack.dataflow as df

BIG_MB = np.prod(LARGE) / 1e6
NAMES = {
    "small": "28 kB datapoints",
    "large": "9.6 MB datapoints",
    "ragged": "pictures of all heights, with boxes",
    "jpegs": "JPEGs, decoded and batched",
}
FROM_FILES = {"small": "small records of a file", "jpegs": "JPEGs of a file"}
LIBRARIES = ("grain", "tf.data", "WebDataset", "datasets")


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


def files(seconds=3.0, kinds=("small", "jpegs"), cores=(1, 2)):
    """Batches of 100,000 small records of a file, and of JPEGs, against other libraries.

    Pinned to one core and to two. Small records are read in one process, from an `.npz`, which is
    read whole, and from an LMDB, which is not; the ratio is that of the first. JPEGs are read from
    an LMDB, by a process for each core if there are two.
    """
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            ours = write(folder, kind)
            for count in cores:
                what = f"{FROM_FILES[kind]}, {count} core{'s' if count > 1 else ''}"
                flags = ["--kind", kind, "--folder", folder, "--seconds", seconds]
                sides = [on_cores(count, fresh, read, kind, each, count, seconds) for each in ours]
                peers = {
                    each: on_cores(
                        *(count, rate_of, "readers.py", "--library", each, *flags), peer="files"
                    )
                    for each in LIBRARIES
                }
                yield Contest(
                    *(f"{what} / the best peer", {"run": sides[0]}, peers),
                    unit="/s",
                    target=">= 1.5",
                )
                for side in sides[1:]:
                    yield Contest(f"{what}, from an LMDB", {"run": side}, {}, "/s", itself)


def write(folder, kind):
    """Writes the records as this project does; returns the paths."""
    flow = df.DataFromList(
        [[np.frombuffer(data, np.uint8), label] for data, label in records(kind)], shuffle=False
    )
    lmdb, npz = f"{folder}/{kind}.lmdb", f"{folder}/{kind}.npz"
    df.LMDBSerializer.save(flow, lmdb)
    if kind == "jpegs":
        return [lmdb]
    df.NumpySerializer.save(flow, npz)
    return [npz, lmdb]


def read(kind, path, processes, seconds):
    """Datapoints per second from a file, in batches."""
    serializer = df.NumpySerializer if path.endswith(".npz") else df.LMDBSerializer
    flow = df.RepeatedData(serializer.load(path, shuffle=False), -1)
    if kind == "jpegs" and processes > 1:
        flow = df.MultiProcessMapAndBatchData(flow, processes, decoded, BATCH)
    else:
        flow = df.BatchData(df.MapData(flow, decoded) if kind == "jpegs" else flow, BATCH)
    flow.reset_state()
    try:
        stream = (datapoint[0] for datapoint in flow)
        return per_second(stream, seconds, BATCH, check, warm_up=2.0)
    finally:
        flow.close()


def second_process(batches=100):
    """A strict map of batches that is the cost, in two processes against one, on two cores."""
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
    batches = df.BatchData(numbers, 16, use_list=True)
    flow = df.MultiProcessMapData(batches, count, laborious, buffer_size=8, strict=True)
    flow.reset_state()
    with contextlib.closing(flow):
        datapoints = iter(flow)
        next(datapoints)
        start = time.perf_counter()
        return sum(1 for _ in datapoints) / (time.perf_counter() - start)


def laborious(datapoint):
    """Computes for a millisecond or two for each of a batch of numbers."""
    values = (np.random.RandomState(number).rand(20000) for number in datapoint[0])
    return [np.stack([np.sort(each)[:100] for each in values])]
