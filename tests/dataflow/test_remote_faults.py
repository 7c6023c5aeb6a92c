"""Senders that die, messages that are not ours, and strangers without the key."""

import contextlib
import os
import pickle
import signal
import socket
import stat

import numpy as np
import pytest

from tensorpack.dataflow import DataFlowTerminated, DataFromList
from tensorpack.dataflow.remote import RemoteDataZMQ, make_remote_key, send_dataflow_zmq
from tensorpack.utils.serialize import FrameError, dumps
from tests.dataflow.flows import Canary, numbers
from tests.dataflow.remote_peers import ANY_PORT, SECONDS, Sending, free_address
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
        child.process.kill()
        child.end(SECONDS)


@pytest.fixture
def raw():
    """Makes bare sockets of ZeroMQ."""
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(zmq.Context())

        def connect(kind, addr, **options):
            peer = stack.enter_context(context.socket(kind))
            for name, value in {"linger": 0, **options}.items():
                setattr(peer, name, value)
            peer.connect(addr)
            return peer

        yield connect


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
    latest = {}

    def take_until(name, count):
        """Takes datapoints until `count` more of `name` have come; none is missing or damaged."""
        for sender, number, data in flow:
            assert number == latest.get(sender, number - 1) + 1
            assert (data == number % 251).all()
            latest[sender] = number
            count -= sender == name
            if count == 0:
                return

    killed = start("a", flow.endpoints[0], 8 << 20)  # more than fits into a socket
    take_until("a", 2)
    other = start("b", flow.endpoints[0], 1 << 20)
    take_until("b", 2)
    killed.send(signal.SIGKILL)
    assert killed.end(SECONDS) == -signal.SIGKILL
    take_until("b", 20)
    other.send(signal.SIGINT)  # no datapoint is taken any more: it waits
    assert other.end(SECONDS) == 0
    assert "ended in order" in other.output and "Traceback" not in other.output


@pytest.mark.fault_row(31)
def test_a_sender_without_a_receiver_ends_by_ctrl_c(start):
    child = start("a", free_address(), 10)
    child.wait_for("Serving data")
    child.send(signal.SIGINT)
    assert child.end(10) == 0
    assert "ended in order" in child.output


@pytest.mark.fault_row(31)
def test_a_message_that_is_not_ours_is_an_error_with_the_address_of_its_peer(
    receive, raw, tmp_path
):
    flow = receive()
    payload = pickle.dumps(Canary(str(tmp_path / "canary")))
    good = dumps(["good"])
    peer = raw(zmq.DEALER, flow.endpoints[0])
    for message in [
        [b""],
        [payload],
        [b"tp2 data"],
        [bytes(16), b"tp1 data", good],  # of an earlier version
        [b"tp2 data", payload],
        [b"tp2 data", good[:-1]],
        [b"tp2 data", good, b"x"],
    ]:
        peer.send_multipart(message)
        with pytest.raises(FrameError, match=r"^A message of 127\.0\.0\.1 was not taken: "):
            next(iter(flow))
    peer.send_multipart([b"tp2 data", good])
    assert next(iter(flow)) == ["good"]
    assert not (tmp_path / "canary").exists()


@pytest.mark.fault_row(49)
def test_a_datapoint_that_is_too_large_is_an_error_with_the_address_of_its_peer(receive, tmp_path):
    for addr in ANY_PORT, f"ipc://{tmp_path}/socket":
        flow = receive(addr, max_bytes=1 << 20)
        sizes = [1000, 3 << 20, 1000]
        source = DataFromList([[np.zeros(size, np.uint8)] for size in sizes], shuffle=False)
        sending = Sending(source, flow.endpoints[0], passes=1)
        datapoints = iter(flow)
        assert next(datapoints)[0].nbytes == 1000
        peer = "127.0.0.1" if addr == ANY_PORT else "localhost:.*"
        with pytest.raises(FrameError, match=f"^A message of {peer} was .* 3145[0-9]+ bytes, "):
            next(datapoints)
        assert [array.nbytes for (array,) in flow] == [1000]
        sending.end()


@pytest.fixture
def key(tmp_path):
    if not zmq.has("curve"):
        pytest.skip("this ZeroMQ cannot encrypt")
    path = str(tmp_path / "remote.key")
    make_remote_key(path)
    return path


@pytest.mark.fault_row(49)
def test_a_peer_that_has_not_shown_the_key_is_cut_off_when_it_sends_a_large_part(receive, key):
    flow = receive(key=key)
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"CURVE".ljust(20, b"\0")
    host, port = flow.endpoints[0].replace("tcp://", "").split(":")
    for _ in range(6):
        sent = 0
        with contextlib.closing(socket.create_connection((host, int(port)), SECONDS)) as peer:
            peer.sendall(greeting.ljust(64, b"\0"))
            peer.sendall(b"\x06" + (800 << 20).to_bytes(8, "big"))  # a command of 800 MiB
            with pytest.raises(OSError):
                while sent < 64 << 20:
                    sent += peer.send(bytes(1 << 16))
        assert sent < 64 << 20
    source = DataFromList([[np.full(1 << 20, i, np.uint8)] for i in range(5)], shuffle=False)
    sending = Sending(source, flow.endpoints[0], passes=1, key=key)
    assert [array[-1] for (array,) in flow] == [0, 1, 2, 3, 4]
    sending.end()


def strangers(key):
    """The options of sockets of those who have no key, or another one but know half of ours."""
    with open(key, "rb") as file:
        server_public = file.read().split(b"\n")[1]
    public, secret = zmq.curve_keypair()
    other_server = zmq.curve_keypair()[0]
    yield {}
    yield {"curve_serverkey": server_public, "curve_publickey": public, "curve_secretkey": secret}
    yield {"curve_serverkey": other_server, "curve_publickey": public, "curve_secretkey": secret}


def test_a_stranger_without_the_key_gets_nothing_in(receive, raw, key):
    flow = receive(key=key)
    for options in strangers(key):
        peer = raw(zmq.DEALER, flow.endpoints[0], **options)
        with contextlib.suppress(zmq.Again):  # it was turned away already
            peer.send_multipart([b"tp2 data", dumps(["of a stranger"])], zmq.NOBLOCK)
    sending = Sending(numbers(5), flow.endpoints[0], passes=1, key=key)
    assert list(flow) == list(numbers(5))
    sending.end()
    assert not flow._connection.current()._socket.poll(500)


def test_a_stranger_without_the_key_gets_nothing_out(receive, raw, key):
    addr = free_address()
    sending = Sending(numbers(5), addr, passes=1, key=key, bind=True)
    peers = [raw(zmq.ROUTER, addr, **options) for options in strangers(key)]
    assert not any(peer.poll(300) for peer in peers)
    assert list(receive(addr, bind=False, key=key)) == list(numbers(5))
    sending.end()
    assert not any(peer.poll(0) for peer in peers)


def test_nothing_is_sent_to_a_receiver_without_the_key(receive, key):
    flow = receive(timeout=1)
    sending = Sending(numbers(200), flow.endpoints[0], key=key, hwm=2, timeout=0.5)
    with pytest.raises(DataFlowTerminated, match="Nothing was taken"):
        sending.end()
    with pytest.raises(DataFlowTerminated, match="Nothing came"):
        next(iter(flow))


def test_a_key_is_for_its_owner_alone_and_stays(key, tmp_path):
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    with pytest.raises(FileExistsError):
        make_remote_key(key)
    with open(key) as file:
        text = file.read()
    for bad in "", text[:-10], text.replace("key 1", "key 2"):
        with open(key, "w") as file:
            file.write(bad)
        with pytest.raises(ValueError, match=f"{key} is not a key that make_remote_key"):
            RemoteDataZMQ(ANY_PORT, key=key).reset_state()


@pytest.mark.parametrize("host", ["0.0.0.0", "*", "[::]", "eth0", "127.0.0.1:0;example.com"])
def test_other_machines_need_a_key_and_other_protocols_are_refused(host):
    for bind in True, False:
        with pytest.raises(ValueError, match=r"needs a key.*make_remote_key\('remote.key'\)"):
            RemoteDataZMQ(ANY_PORT, f"tcp://{host}:1", bind=bind)
        with pytest.raises(ValueError, match="needs a key"):
            send_dataflow_zmq(numbers(1), f"tcp://{host}:1", bind=bind)
        with pytest.raises(ValueError, match="must be tcp://HOST:PORT or ipc://PATH"):
            RemoteDataZMQ(f"{host}:1", bind=bind)
