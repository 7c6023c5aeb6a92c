"""Datapoints come whatever becomes of who sends them; what else comes is dropped and counted."""

import os
import pickle
import signal
import threading

import pytest

from tensorpack.dataflow._remote.message import DATA, Message, encode
from tensorpack.utils.serialize import FrameError, dumps
from tests.dataflow.remote_peers import SECONDS, A, wait_for_the_end
from tests.harness import Child

zmq = pytest.importorskip("zmq")
pytest.importorskip("msgpack")


@pytest.fixture
def start():
    """Starts a sender in a process of its own."""
    children = []

    def make(name, addr, size):
        children.append(Child("-c", SENDER, name, addr, size))
        return children[-1]

    yield make
    for child in children:
        if child.process.poll() is None:
            child.send(signal.SIGKILL)
        if not child.process.stdout.closed:
            child.end(SECONDS)


SENDER = """
import itertools, sys
import numpy as np
from tensorpack.dataflow import DataFromGenerator
from tensorpack.dataflow.remote import send_dataflow_zmq

name, addr, size = sys.argv[1:]

def datapoints():
    for i in itertools.count():
        yield [name, i, np.full(int(size), i % 251, np.uint8)]

try:
    send_dataflow_zmq(DataFromGenerator(datapoints), addr, hwm=1)
except KeyboardInterrupt:
    print("ended in order")
"""


@pytest.mark.slow
@pytest.mark.fault_row(31)
def test_a_sender_is_killed_and_another_takes_its_place(receive, start):
    flow = receive(hwm=1)
    addr = flow.endpoints[0]
    latest = {}

    def go_on(name, count):
        """Takes datapoints until `count` more of `name` have come."""
        for who, number, data in flow:
            assert number == latest.get(who, number - 1) + 1  # nothing is missing
            assert (data == number % 251).all()
            latest[who] = number
            count -= who == name
            if count == 0:
                return

    killed = start("a", addr, 8 << 20)  # more than fits into a socket: killed within a message
    go_on("a", 2)
    others = [start("b", addr, 1000)]
    go_on("b", 2)
    killed.send(signal.SIGKILL)
    assert killed.end(SECONDS) == -signal.SIGKILL
    go_on("b", 20)
    others.append(start("c", addr, 1 << 20))
    go_on("c", 5)
    go_on("b", 5)
    assert flow.malformed == 0
    for child in others:  # nobody takes anything any more: they wait
        child.send(signal.SIGINT)
        assert child.end(SECONDS) == 0
        assert "Interrupted after" in child.output and "ended in order" in child.output
        assert "Traceback" not in child.output


class Canary:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.fault_row(31)
def test_malformed_messages_are_dropped_counted_and_logged(receive, raw, tmp_path, capsys):
    flow = receive(max_errors=50)
    payload = pickle.dumps(Canary(str(tmp_path / "canary")))
    good = encode(Message(DATA, A, 0, ["good"]))
    frames = [
        b"",
        bytes(64),
        payload,
        dumps(payload),
        dumps([1, A, 0, payload]) + b"\0",
        dumps({"kind": 1}),
        dumps([9, A, 0, None]),
        good[:-1],
        good[:64] + bytes(len(good) - 64),
        b"\x91" * 100000,
    ]
    socket = raw(zmq.PUSH, flow.endpoints[0])
    for frame in frames:
        socket.send(frame)
    for parts in [[good, b""], [b"", good], [good] * 1000]:
        socket.send_multipart(parts)
    socket.send(good)
    capsys.readouterr()
    assert next(iter(flow)) == ["good"]
    assert flow.malformed == len(frames) + 3 and flow.cnt1 == 1
    assert not (tmp_path / "canary").exists()
    assert capsys.readouterr().out.count("Dropped a malformed message that came to tcp") == 1
    socket.send_multipart([good] * 7)
    socket.send(good)
    assert next(iter(flow)) == ["good"]


@pytest.mark.fault_row(31)
def test_too_many_malformed_messages_are_an_error(receive, raw):
    flow = receive(max_errors=2)
    socket = raw(zmq.PUSH, flow.endpoints[0])
    for _ in range(3):
        socket.send_multipart([b"x"] * 7)
    with pytest.raises(FrameError, match="^3 malformed .* to tcp.* max_errors=2 .* of 7 parts"):
        next(iter(flow))
    assert flow.cnt1 == 0


@pytest.mark.fault_row(31)
def test_a_flood_of_small_frames(receive, raw, capsys):
    count = 100000
    flow = receive(max_errors=count, hwm=1000)
    sent = threading.Thread(target=flood, args=(raw(zmq.PUSH, flow.endpoints[0]), count))
    sent.start()
    capsys.readouterr()
    assert next(iter(flow)) == ["good"]
    sent.join(SECONDS)
    assert flow.malformed == count
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == count // 1000
    assert "(1 so far)" in lines[0] and "(99001 so far)" in lines[-1]


def flood(socket, count):
    for number in range(count):
        socket.send(b"x" * (number % 9))
    socket.send(encode(Message(DATA, A, 0, ["good"])))


@pytest.mark.fault_row(31)
def test_who_sends_too_much_is_cut_off(receive, raw):
    flow = receive(max_bytes=10000)
    large, monitor = raw.monitored(zmq.PUSH, flow.endpoints[0])
    small = raw(zmq.PUSH, flow.endpoints[0])
    large.send(bytes(1 << 20))
    wait_for_the_end(monitor)
    small.send(encode(Message(DATA, A, 0, ["good"])))
    assert next(iter(flow)) == ["good"]
    assert flow.malformed == 0
