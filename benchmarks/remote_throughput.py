"""MB/s from `send_dataflow_zmq` in another process to `RemoteDataZMQ`, over loopback.

    python benchmarks/remote_throughput.py [--seconds 3] [--rounds 5] [--address tcp://127.0.0.1:*]

A datapoint is one array and a label. "bare" is a PUSH and a PULL socket that carry as many bytes,
not looked at. The two take turns; the table has the medians of the rounds.
"""

import argparse
import statistics
import subprocess
import sys
import time

import numpy as np
from _report import Measured, report, say

from tensorpack.dataflow import DataFromList
from tensorpack.dataflow.remote import RemoteDataZMQ, send_dataflow_zmq

SHAPES = [
    ("a number", ()),
    ("one frame (84, 84, 4)", (84, 84, 4)),
    ("one image (224, 224, 3)", (224, 224, 3)),
    ("a batch 64 x (84, 84, 5)", (64, 84, 84, 5)),
    ("a batch 64 x (224, 224, 3)", (64, 224, 224, 3)),
]
WARM_UP = 20  # datapoints that are not measured
HWM = 50
HEAD = "                              datapoints/s     MB/s   bare MB/s   ours/bare"


def array_of(number):
    """What is sent, of random bytes."""
    return np.asarray(np.random.RandomState(0).randint(256, size=SHAPES[number][1]), np.uint8)


def send(kind, number, address):
    """Sends for ever; in a process of its own."""
    array = array_of(number)
    if kind == "ours":
        send_dataflow_zmq(DataFromList([[array, 7]], shuffle=False), address, hwm=HWM)
    import zmq

    socket = zmq.Context().socket(zmq.PUSH)
    socket.sndhwm = HWM
    socket.connect(address)
    data = array.tobytes()
    while True:
        socket.send(data)


def rate(take, seconds):
    """How many a second."""
    for _ in range(WARM_UP):
        take()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        take()
        count += 1
    return count / (time.perf_counter() - begin)


def with_sender(kind, number, address, take, seconds):
    """Measures while another process sends."""
    command = [sys.executable, __file__, "--send", kind, str(number), address]
    sender = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return rate(take, seconds)
    finally:
        sender.kill()
        sender.wait()


def measure_ours(number, args):
    """Datapoints a second."""
    flow = RemoteDataZMQ(args.address, hwm=HWM)
    try:
        datapoints = iter(flow)
        take = datapoints.__next__
        return with_sender("ours", number, flow.endpoints[0], take, args.seconds)
    finally:
        flow.close()


def measure_bare(number, args):
    """Messages a second."""
    import zmq

    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        socket.rcvhwm = HWM
        socket.linger = 0
        socket.bind(args.address)
        endpoint = socket.last_endpoint.decode()

        def take():
            return socket.recv(copy=False)

        return with_sender("bare", number, endpoint, take, args.seconds)


def measure(number, args):
    """Writes the row of the table; returns the figure."""
    name, megabytes = SHAPES[number][0], array_of(number).nbytes / 1e6
    rounds = [(measure_ours(number, args), measure_bare(number, args)) for _ in range(args.rounds)]
    ours, bare = (statistics.median(rates) for rates in zip(*rounds))
    ratio = statistics.median(one / other for one, other in rounds)
    say(f"{name:28} {ours:13.0f} {ours * megabytes:8.0f} {bare * megabytes:11.0f} {ratio:11.2f}")
    peer = f"bare sockets: {bare * megabytes:.0f} MB/s"
    if not SHAPES[number][1]:
        return Measured("remote", name, ours, "datapoints/s", peer=f"bare sockets: {bare:.0f}")
    return Measured("remote", name, ours * megabytes, "MB/s", peer=peer)


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--address", default="tcp://127.0.0.1:*")
    parser.add_argument("--send", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.send:
        kind, number, address = args.send
        send(kind, int(number), address)
    say(HEAD)
    report(*[measure(number, args) for number in range(len(SHAPES))])


if __name__ == "__main__":
    main()
