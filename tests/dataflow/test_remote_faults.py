"""Datapoints come whatever becomes of who sends them; what else comes is dropped and counted."""

import contextlib
import os
import pickle
import signal
import socket
import threading

import numpy as np
import pytest

from tensorpack.dataflow import DataFlowTerminated, DataFromList
from tensorpack.dataflow._remote.message import (
    DATA,
    END,
    SYNC,
    Answer,
    Message,
    decode,
    encode,
)
from tensorpack.dataflow.remote import make_remote_key
from tensorpack.utils.serialize import MAX_BYTES, FrameError, dumps
from tests.dataflow.flows import Canary, numbers
from tests.dataflow.remote_peers import SECONDS, A, Sending, free_address
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

    def take_until(name, count):
        """Takes datapoints until `count` more of `name` have come."""
        for who, number, data in flow:
            assert number == latest.get(who, number - 1) + 1  # nothing is missing
            assert (data == number % 251).all()
            latest[who] = number
            count -= who == name
            if count == 0:
                return

    killed = start("a", addr, 8 << 20)  # more than fits into a socket: killed within a message
    take_until("a", 2)
    others = [start("b", addr, 1000)]
    take_until("b", 2)
    killed.send(signal.SIGKILL)
    assert killed.end(SECONDS) == -signal.SIGKILL
    take_until("b", 20)
    others.append(start("c", addr, 1 << 20))
    take_until("c", 5)
    take_until("b", 5)
    assert flow.malformed == 0
    for child in others:  # no datapoint is taken any more: they wait
        child.send(signal.SIGINT)
        assert child.end(SECONDS) == 0
        assert "Interrupted after" in child.output and "ended in order" in child.output
        assert "Traceback" not in child.output


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
        b"\x91" * 60000,
    ]
    peer = raw(zmq.DEALER, flow.endpoints[0])
    for frame in frames:
        peer.send(frame)
    for parts in [[good, b""], [b"", good], [good] * 1000]:
        peer.send_multipart(parts)
    peer.send(good)
    capsys.readouterr()
    assert next(iter(flow)) == ["good"]
    assert flow.malformed == len(frames) + 3 and flow.cnt1 == 1
    assert not (tmp_path / "canary").exists()
    assert capsys.readouterr().out.count("Dropped a malformed message that came to tcp") == 1
    peer.send_multipart([good] * 7)
    peer.send(good)
    assert next(iter(flow)) == ["good"]


@pytest.mark.fault_row(31)
def test_too_many_malformed_messages_are_an_error(receive, raw):
    flow = receive(max_errors=2)
    peer = raw(zmq.DEALER, flow.endpoints[0])
    for _ in range(3):
        peer.send_multipart([b"x"] * 7)
    with pytest.raises(FrameError, match="^3 malformed .* to tcp.* max_errors=2 .* in 7 parts"):
        next(iter(flow))
    assert flow.cnt1 == 0


@pytest.mark.fault_row(31)
def test_a_flood_of_small_frames(receive, raw, capsys):
    count = 100000
    flow = receive(max_errors=count, hwm=1000)
    sent = threading.Thread(target=flood, args=(raw(zmq.DEALER, flow.endpoints[0]), count))
    sent.start()
    capsys.readouterr()
    assert next(iter(flow)) == ["good"]
    sent.join(SECONDS)
    assert flow.malformed == count
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == count // 1000
    assert "(1 so far)" in lines[0] and "(99001 so far)" in lines[-1]


def flood(peer, count):
    for number in range(count):
        peer.send(b"x" * (number % 9))
    peer.send(encode(Message(DATA, A, 0, ["good"])))


@pytest.mark.fault_row(49)
def test_a_datapoint_that_is_too_large_is_an_error_at_both_ends(receive):
    flow = receive(max_bytes=1 << 20)
    sizes = 100 * [1000] + [3 << 20] + 99 * [1000]
    source = DataFromList([[np.zeros(size, np.uint8)] for size in sizes], shuffle=False)
    sending = Sending(source, flow.endpoints[0], passes=1)
    taken = []
    says = f"a datapoint of 3145[0-9]+ bytes was not taken at {flow.endpoints[0]}, .* at most"
    with pytest.raises(DataFlowTerminated, match=f"A sender says: {says} max_bytes=1048576"):
        taken.extend(flow)
    assert len(taken) == 100 and flow.malformed == 0  # it was not even sent
    with pytest.raises(ValueError, match=f"{says} max_bytes=1048576. Give the receiver a larger"):
        sending.end()
    sending = Sending(numbers(3), flow.endpoints[0], passes=1)
    assert list(flow) == list(numbers(3))
    sending.end()


@pytest.mark.fault_row(49)
def test_a_receiver_that_is_busy_hears_of_a_datapoint_that_is_too_large(receive):
    flow = receive(max_bytes=1 << 20, hwm=1, timeout=5)
    sizes = 20 * [1 << 19] + [3 << 20]  # more than fits into the buffers on the way
    source = DataFromList([[np.zeros(size, np.uint8)] for size in sizes], shuffle=False)
    sending = Sending(source, flow.endpoints[0], passes=1)
    taken = [next(iter(flow))]
    sending.join(1.5)  # longer than what was sent has to leave when a connection is closed
    with pytest.raises(DataFlowTerminated, match="A sender says: .* of 3145[0-9]+ bytes"):
        taken.extend(flow)
    assert len(taken) == 20
    with pytest.raises(ValueError, match="of 3145[0-9]+ bytes was not taken"):
        sending.end()


@pytest.mark.fault_row(49)
def test_a_datapoint_is_too_large_before_the_limit_is_known(receive):
    flow = receive(max_bytes=1000)
    # The first one: any answer to one before it would have told the limit.
    source = DataFromList([[np.zeros(size, np.uint8)] for size in (2000, 10, 10)], shuffle=False)
    sending = Sending(source, flow.endpoints[0], passes=1)
    taken = []
    with pytest.raises(DataFlowTerminated, match="of 2[0-9]+ bytes was not .* max_bytes=1000"):
        taken.extend(flow)
    assert flow.malformed == 1 and len(taken) <= 2
    with pytest.raises(ValueError, match="of 2[0-9]+ bytes was not .* max_bytes=1000"):
        sending.end()


@pytest.mark.fault_row(49)
def test_datapoints_that_are_lost_on_the_way_are_an_error_at_both_ends(raw):
    addr = free_address()
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        router.bind(addr)
        sending = Sending(numbers(5), addr, passes=1)
        said = None
        while said is None:
            assert router.poll(1000 * SECONDS)
            peer, frame = router.recv_multipart()
            message = decode(frame, MAX_BYTES)
            said = message.datapoint if message.kind == END else None
            taken = min(message.number + (message.kind == DATA), 3)
            router.send_multipart([peer, Answer(message.kind, A, taken, MAX_BYTES).encode()])
        assert f"2 of 5 datapoints sent to {addr} were lost" in said
        with pytest.raises(DataFlowTerminated, match="2 of 5 datapoints .* Send them again"):
            sending.end()


def test_the_late_answer_to_an_earlier_question_does_not_make_a_loss(raw):
    addr = free_address()
    source = DataFromList([[np.zeros(2 << 20, np.uint8)]])  # so large that the sender asks first
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        router.bind(addr)
        sending = Sending(source, addr, passes=1)

        def take():
            assert router.poll(1000 * SECONDS)
            peer, *parts = router.recv_multipart()
            return peer, decode(b"".join(parts), MAX_BYTES)

        def answer(message, taken):
            router.send_multipart([peer, Answer(message.kind, A, taken, MAX_BYTES).encode()])

        (peer, first), (_, again) = take(), take()  # it has waited for a second
        answer(first, 0)
        (_, data), (_, last) = take(), take()
        assert [each.kind for each in (first, again, data, last)] == [SYNC, SYNC, DATA, SYNC]
        answer(again, 0)
        answer(data, 1)
        message = last
        while message.kind != END:
            answer(message, 1)
            message = take()[1]
        assert message.datapoint is None
        answer(message, 1)
        sending.end()


@pytest.mark.fault_row(49)
def test_a_peer_counts_from_its_first_datapoint(receive, raw):
    flow = receive()
    forged = raw(zmq.DEALER, flow.endpoints[0])
    for number in range(100):
        forged.send(encode(Message(SYNC, number.to_bytes(16, "big"), 0)))
    sending = Sending(numbers(3), flow.endpoints[0], passes=1)
    assert list(flow) == list(numbers(3))
    sending.end()
    assert flow.malformed == 0


@pytest.mark.fault_row(49)
@pytest.mark.parametrize("keyed", [True, False])
def test_a_peer_that_sends_a_large_part_is_cut_off_with_and_without_a_key(receive, tmp_path, keyed):
    options = {}
    if keyed:
        if not zmq.has("curve"):
            pytest.skip("this ZeroMQ cannot encrypt")
        options["key"] = str(tmp_path / "key")
        make_remote_key(options["key"])
    flow = receive(**options)
    greeting = (
        b"\xff" + bytes(8) + b"\x7f\x03\x00" + (b"CURVE" if keyed else b"NULL").ljust(20, b"\0")
    )
    for _ in range(6):
        sent = 0
        with contextlib.closing(socket.create_connection(port_of(flow), SECONDS)) as peer:
            peer.sendall(greeting.ljust(64, b"\0"))
            peer.sendall(b"\x06" + (800 << 20).to_bytes(8, "big"))  # a command of 800 MiB
            with pytest.raises(OSError):
                while sent < 64 << 20:
                    sent += peer.send(bytes(1 << 16))
        assert sent < 64 << 20
    sending = Sending(numbers(3), flow.endpoints[0], passes=1, **options)
    assert list(flow) == list(numbers(3))
    sending.end()


def port_of(flow):
    host, port = flow.endpoints[0].replace("tcp://", "").split(":")
    return host, int(port)


@pytest.mark.fault_row(49)
def test_a_socket_file_is_gone_after_its_socket_but_not_that_of_another_one(receive, tmp_path):
    addr = f"ipc://{tmp_path}/socket"
    first = receive(addr)
    assert first.endpoints == [addr] and os.listdir(str(tmp_path)) == ["socket"]
    first.close()
    assert os.listdir(str(tmp_path)) == []
    second = receive(addr)
    os.rename(str(tmp_path / "socket"), str(tmp_path / "moved"))
    third = receive(addr)
    second.close()
    sending = Sending(numbers(3), addr, passes=1)
    assert list(third) == list(numbers(3))
    sending.end()
