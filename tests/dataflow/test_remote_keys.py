"""Nothing comes in and nothing goes out without the key."""

import os
import stat

import pytest

from tensorpack.dataflow import DataFlowTerminated
from tensorpack.dataflow._remote.message import DATA, Message, encode
from tensorpack.dataflow.remote import RemoteDataZMQ, make_remote_key, send_dataflow_zmq
from tests.dataflow.flows import numbers
from tests.dataflow.remote_peers import ANY_PORT, A, Sending, free_address, wait_for_the_end

zmq = pytest.importorskip("zmq")
pytest.importorskip("msgpack")
needs_curve = pytest.mark.skipif(not zmq.has("curve"), reason="this ZeroMQ cannot encrypt")


@pytest.fixture
def key(tmp_path):
    path = str(tmp_path / "remote.key")
    make_remote_key(path)
    return path


def strangers(key):
    """The options of sockets of those who have no key, or another one but know half of ours."""
    with open(key, "rb") as file:
        server_public = file.read().split(b"\n")[1]
    public, secret = zmq.curve_keypair()
    other_server = zmq.curve_keypair()[0]
    yield {}
    yield {"curve_serverkey": server_public, "curve_publickey": public, "curve_secretkey": secret}
    yield {"curve_serverkey": other_server, "curve_publickey": public, "curve_secretkey": secret}


@needs_curve
def test_a_stranger_without_the_key_gets_nothing_in(receive, raw, key):
    flow = receive(key=key)
    for options in strangers(key):
        socket, monitor = raw.monitored(zmq.DEALER, flow.endpoints[0], **options)
        try:
            socket.send(encode(Message(DATA, A, 0, ["of a stranger"])), zmq.NOBLOCK)
        except zmq.Again:
            pass  # it was turned away already
        wait_for_the_end(monitor)
    sending = Sending(numbers(5), flow.endpoints[0], passes=1, key=key)
    assert list(flow) == list(numbers(5))
    sending.end()
    assert flow.malformed == 0


@needs_curve
def test_a_stranger_without_the_key_gets_nothing_out(receive, raw, key):
    addr = free_address()
    sending = Sending(numbers(5), addr, passes=1, key=key, bind=True)
    pairs = [raw.monitored(zmq.ROUTER, addr, **options) for options in strangers(key)]
    for _, monitor in pairs:
        wait_for_the_end(monitor)
    flow = receive(addr, bind=False, key=key)
    assert list(flow) == list(numbers(5))
    sending.end()
    assert not any(pull.poll(0) for pull, _ in pairs)


@needs_curve
def test_nothing_is_sent_to_a_receiver_without_the_key(receive, key):
    flow = receive(timeout=1)
    sending = Sending(numbers(200), flow.endpoints[0], key=key, hwm=2, timeout=0.5)
    with pytest.raises(DataFlowTerminated, match="Nothing was taken"):
        sending.end()
    with pytest.raises(DataFlowTerminated, match="Nothing came"):
        next(iter(flow))


@needs_curve
def test_a_key_is_for_its_owner_alone(key, tmp_path):
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    with pytest.raises(FileExistsError, match=f"^{key} exists already.* for a new one, remove it"):
        make_remote_key(key)
    os.chmod(key, 0o640)
    with pytest.raises(PermissionError, match=f"chmod 600 {key}"):
        RemoteDataZMQ(ANY_PORT, key=key)
    with pytest.raises(FileNotFoundError, match=r"^There is no key .*none .*make_remote_key\(\)"):
        RemoteDataZMQ(ANY_PORT, key=str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=f"there is no folder {tmp_path}/no. Make it first"):
        make_remote_key(str(tmp_path / "no" / "key"))


@needs_curve
def test_a_damaged_key_is_refused(key):
    with open(key, "rb") as file:
        good = file.read()
    lines = good.split(b"\n")
    for bad in [
        b"",
        b"\xff" * 2000,
        good[:-1],
        good + b"x",
        good.replace(b"key 1", b"key 2"),
        b"\n".join([*lines[:3], lines[1], *lines[4:]]),
        b"\n".join([lines[0], lines[2], lines[1], *lines[3:]]),
        good.replace(lines[4], b"\0" * 40),
        good.replace(lines[4], b""),
    ]:
        with open(key, "wb") as file:
            file.write(bad)
        with pytest.raises(ValueError, match="not a key that|damaged"):
            RemoteDataZMQ(ANY_PORT, key=key)


def test_without_curve_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(zmq, "has", lambda name: False)
    with pytest.raises(RuntimeError, match="cannot encrypt"):
        make_remote_key(str(tmp_path / "key"))
    assert not (tmp_path / "key").exists()


def test_other_machines_need_a_key():
    for bind in True, False:
        with pytest.raises(ValueError, match=r"needs a key.*make_remote_key\("):
            RemoteDataZMQ("tcp://0.0.0.0:8877", bind=bind)
        with pytest.raises(ValueError, match=r"needs a key.*make_remote_key\("):
            RemoteDataZMQ("tcp://127.0.0.1:8877", "tcp://10.0.0.1:8877", bind=bind)
        with pytest.raises(ValueError, match=r"needs a key.*make_remote_key\("):
            send_dataflow_zmq(numbers(1), "tcp://0.0.0.0:8877", bind=bind)
