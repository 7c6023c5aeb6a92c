"""R8, R12 and "socket": datapoints from other processes."""

import contextlib
import sys
import time

import numpy as np
from _contest import Contest, itself
from _programs import HERE, begin, rate_of

sys.path.insert(0, str(HERE / "peers"))

from _clock import per_second
from _stream import BATCH, KINDS, LARGE, check, decode, each_of, endless, pictures

from tensorpack.dataflow import (
    BatchData,
    DataFlow,
    DataFromList,
    MapData,
    MultiProcessMapAndBatchData,
    MultiProcessRunner,
    MultiProcessRunnerZMQ,
    RepeatedData,
)
from tensorpack.dataflow.remote import RemoteDataZMQ, send_dataflow_zmq

BIG_MB = np.prod(LARGE) / 1e6
NAMES = {
    "small": "28 kB datapoints",
    "large": "9.6 MB datapoints",
    "ragged": "pictures of all heights, with boxes",
    "jpegs": "JPEGs, decoded and batched",
}
SHAPES = {
    "a number": (),
    "one frame (84, 84, 4)": (84, 84, 4),
    "one image (224, 224, 3)": (224, 224, 3),
    "a batch 64 x (84, 84, 5)": (64, 84, 84, 5),
    "a batch 64 x (224, 224, 3)": (64, 224, 224, 3),
}
HWM = 50


# ------------------------------------------------------------------ R8


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


class Endless(DataFlow):
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
        source = RepeatedData(DataFromList([[jpeg] for jpeg in pictures()], shuffle=False), -1)
        flow = MultiProcessMapAndBatchData(source, count, decoded, BATCH)
    else:
        flow = MultiProcessRunnerZMQ(Endless(kind), count)
    flow.reset_state()
    try:
        return per_second((datapoint[0] for datapoint in flow), seconds, each_of(kind), check)
    finally:
        flow.close()


# ------------------------------------------------------------------ R12


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
    numbers = DataFromList([[number] for number in range(16 * batches)], shuffle=False)
    flow = MultiProcessRunner(BatchData(MapData(numbers, laborious), 16), 8, count, strict=True)
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


# ------------------------------------------------------------------ over a socket


def socket(seconds=3.0, address="tcp://127.0.0.1:*"):
    """From `send_dataflow_zmq` in another process to `RemoteDataZMQ`, over loopback.

    A datapoint is one array and a label. "bare sockets" carry as many bytes, not looked at.
    """
    for name, shape in SHAPES.items():
        size = np.prod(shape) / 1e6 if shape else 1
        yield Contest(
            f"{name}, over a socket",
            {
                "ours": lambda shape=shape, size=size: size * received(shape, address, seconds),
                "bare sockets": lambda shape=shape, size=size: (
                    size * received_bare(shape, address, seconds)
                ),
            },
            unit="MB/s" if shape else "/s",
            judge=itself,
        )


def array_of(shape):
    """What is sent, of random bytes."""
    return np.asarray(np.random.RandomState(0).randint(256, size=shape), np.uint8)


def send(shape, endpoint):
    """Sends for ever; in a process of its own."""
    data = DataFromList([[array_of(shape), 7]], shuffle=False)
    send_dataflow_zmq(data, endpoint, hwm=HWM)


def send_bare(shape, endpoint):
    """The same bytes through a PUSH socket."""
    import zmq

    sender = zmq.Context().socket(zmq.PUSH)
    sender.sndhwm = HWM
    sender.connect(endpoint)
    data = array_of(shape).tobytes()
    while True:
        sender.send(data)


def received(shape, address, seconds):
    """Datapoints per second of this project."""
    with contextlib.closing(RemoteDataZMQ(address, hwm=HWM)) as flow:
        datapoints = iter(flow)
        with sending(send, shape, flow.endpoints[0]):
            return per_second(datapoints, seconds)


def received_bare(shape, address, seconds):
    """Messages per second."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.PULL) as receiver:
        receiver.rcvhwm = HWM
        receiver.linger = 0
        receiver.bind(address)
        with sending(send_bare, shape, receiver.last_endpoint.decode()):
            return per_second(iter(lambda: receiver.recv(copy=False), None), seconds)


@contextlib.contextmanager
def sending(function, shape, endpoint):
    """Another process sends."""
    with begin([function, shape, endpoint]) as sender:
        try:
            yield
        finally:
            sender.kill()
