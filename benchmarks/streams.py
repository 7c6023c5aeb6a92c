"""R8 and R12: datapoints from worker processes; R19: from files."""

import contextlib
import tempfile
import time

import numpy as np
from _clock import per_second
from _contest import Contest, itself
from _programs import fresh, on_cores, rate_of
from _stream import BATCH, LARGE, check, decoded, first, length, records
from tensorpack_runner import flow_of

import tensorpack.dataflow as df

KINDS = {  # of datapoints: what they are, in how many processes, and the target of the ratio
    "image": ("84x84 images", (1, 2), ">= 1.5"),
    "dict": ("dictionaries of arrays", (1, 2), ">= 1.5"),
    "mapped-image": ("84x84 images, mapped", (1, 2), ">= 1.5"),
    "mapped-dict": ("dictionaries of arrays, mapped", (1, 2), ">= 1.5"),
    "small": ("28 kB datapoints", (2,), ""),
    "large": ("9.6 MB datapoints", (2,), ">= 2"),
    "jpegs": ("JPEGs, decoded and batched", (2,), ""),
}
FILES = {  # what of R19: whose serializer, the numbers of cores, the peers, and the target
    "small records of an .npz": ("Numpy", (1,), ("tf.data", "datasets"), ">= 1.5"),
    "small records of a TFRecord": ("TFRecord", (1,), ("tf.data",), ">= 0.7"),
    "small records of an LMDB": ("LMDB", (1,), ("torch",), ">= 0.7"),
    "JPEGs of an LMDB": ("LMDB", (1, 2), ("grain", "tf.data", "datasets"), ">= 1"),
}


def processes(seconds=2.0, kinds=tuple(KINDS)):
    """Datapoints from worker processes, against torch's DataLoader and tensorpack 0.11.

    Of large ones the unit is MB/s. Those that are mapped are sent to the processes and back.
    """
    for kind in kinds:
        name, counts, target = KINDS[kind]
        size, unit = (np.prod(LARGE) / 1e6, "MB/s") if kind == "large" else (1, "/s")
        for count in counts:
            what = f"{name}, {count} process{'es' if count > 1 else ''}"
            flags = ["--kind", kind, "--processes", count, "--seconds", seconds]
            columns = yield Contest(
                f"{what} / the better peer",
                {"run": lambda args=(kind, count, seconds), size=size: size * ours(*args)},
                {
                    peer: lambda script=script, venv=venv, flags=flags, size=size: (
                        size * rate_of(script, *flags, peer=venv)
                    )
                    for peer, script, venv in (
                        ("torch", "torch_loader.py", "torch"),
                        ("tensorpack 0.11", "tensorpack_runner.py", "tensorpack-0.11"),
                    )
                },
                unit=unit,
                target=target,
            )
            if kind == "small":
                yield Contest(what, {"run": columns["run"]}, {}, "dp/s", itself, ">= 50000")


def ours(kind, count, seconds):
    """Datapoints per second from so many processes of this project."""
    return rate(flow_of(kind, count), seconds, length(kind))


def rate(flow, seconds, each, **options):
    """Datapoints per second of a flow whose elements stand for `each`."""
    flow.reset_state()
    with contextlib.closing(flow):
        return per_second(map(first, flow), seconds, each, check, **options)


def files(seconds=3.0, whats=tuple(FILES)):
    """Batches of 100,000 small records of a file, and of JPEGs, against other libraries.

    Small records are read in one process, JPEGs by a process for each core if there are two.
    """
    with tempfile.TemporaryDirectory() as folder:
        for what in whats:
            form, counts, libraries, target = FILES[what]
            kind = "jpegs" if "JPEG" in what else "small"
            path = f"{folder}/{kind}-{form}.npz"
            rows = [[np.frombuffer(data, np.uint8), label] for data, label in records(kind)]
            getattr(df, f"{form}Serializer").save(df.DataFromList(rows, shuffle=False), path)
            flags = ["--kind", kind, "--folder", folder, "--seconds", seconds]
            for count in counts:
                yield Contest(
                    f"{what}, {count} core{'s' if count > 1 else ''} / the best peer",
                    {"run": on_cores(count, fresh, read, kind, form, path, count, seconds)},
                    {
                        name: on_cores(
                            *(count, rate_of, "readers.py", "--library", name, *flags), peer="files"
                        )
                        for name in libraries
                    },
                    unit="/s",
                    target=target,
                )


def read(kind, form, path, processes, seconds):
    """Datapoints per second from a file, in batches."""
    options = {} if form == "TFRecord" else {"shuffle": False}
    flow = df.RepeatedData(getattr(df, f"{form}Serializer").load(path, **options), -1)
    if kind == "jpegs" and processes > 1:
        flow = df.MultiProcessMapAndBatchData(flow, processes, decoded, BATCH)
    else:
        flow = df.BatchData(df.MapData(flow, decoded) if kind == "jpegs" else flow, BATCH)
    return rate(flow, seconds, BATCH, warm_up=2.0)


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
