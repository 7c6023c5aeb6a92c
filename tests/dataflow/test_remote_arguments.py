"""What `remote` is given is checked before anything is sent."""

import os
import threading

import numpy as np
import pytest

from tensorpack.dataflow.remote import RemoteDataZMQ, send_dataflow_zmq
from tests.dataflow.remote_peers import ANY_PORT, SECONDS, numbers

zmq = pytest.importorskip("zmq")
pytest.importorskip("msgpack")


def test_a_stream_with_an_end_does_not_go_through_a_socket_file(tmp_path):
    with pytest.raises(ValueError, match="passes=2 at ipc://.* Use tcp://127.0.0.1:PORT"):
        send_dataflow_zmq(numbers(3), f"ipc://{tmp_path}/socket", passes=2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "arguments, keywords",
    [
        ((), {}),
        ((10,), {}),
        ((10, 5), {}),
        ((10, 5, None), {}),
        ((10, None), {}),
        ((10, None, False), {}),
        ((), {"hwm": 10, "print_interval": 5, "format": None}),
        ((), {"hwm": 10, "format": None, "bind": False}),
    ],
)
def test_the_arguments_of_both_releases(arguments, keywords, receive):
    flow = receive()
    addr = flow.endpoints[0]
    thread = threading.Thread(
        target=send_dataflow_zmq,
        args=(numbers(3), addr, *arguments),
        kwargs={**keywords, "passes": 1},
    )
    thread.start()
    assert list(flow) == list(numbers(3))
    thread.join(SECONDS)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "arguments, kind, says",
    [
        ((10, 5, "zmq_ops"), ValueError, "no format 'zmq_ops' here"),
        ((10, "zmq_ops"), ValueError, "no format 'zmq_ops' here"),
        ((10, "zmq_ops", True), ValueError, "no format 'zmq_ops' here"),
        ((10, 5, True), ValueError, "no format True here"),
        ((10, None, "zmq_ops"), TypeError, "bind is True or False, but got 'zmq_ops'"),
        ((0,), ValueError, "hwm must be more than 0"),
        (("5",), TypeError, "send_dataflow_zmq: hwm must be an integer, but got '5'"),
        ((None,), TypeError, "hwm must be an integer, but got None"),
        ((10, 0), ValueError, "print_interval must be more than 0"),
    ],
)
def test_arguments_that_are_wrong(arguments, kind, says):
    with pytest.raises(kind, match=says):
        send_dataflow_zmq(numbers(3), "tcp://127.0.0.1:1", *arguments)


def test_numbers_that_are_wrong():
    for name in "hwm", "senders", "timeout", "max_bytes":
        with pytest.raises(ValueError, match=f"{name} must be more than 0, but got 0"):
            RemoteDataZMQ(ANY_PORT, **{name: 0})
    with pytest.raises(ValueError, match="max_errors is a count"):
        RemoteDataZMQ(ANY_PORT, max_errors=-1)
    for name in "passes", "timeout":
        with pytest.raises(ValueError, match=f"{name} must be more than 0"):
            send_dataflow_zmq(numbers(1), ANY_PORT, **{name: 0})


def test_numbers_of_wrong_types():
    for hwm in 2.5, None, "5":
        with pytest.raises(TypeError, match="RemoteDataZMQ: hwm must be an integer, but got"):
            RemoteDataZMQ(ANY_PORT, hwm=hwm)
    with pytest.raises(TypeError, match="timeout must be a number, but got '3'"):
        RemoteDataZMQ(ANY_PORT, timeout="3")
    with pytest.raises(TypeError, match="send_dataflow_zmq: passes must be an integer, but got 1"):
        send_dataflow_zmq(numbers(1), "tcp://127.0.0.1:1", passes=1.5)


def test_numbers_of_numpy(receive):
    flow = receive(hwm=np.int64(50), max_bytes=np.int64(10**6))
    send_dataflow_zmq(numbers(3), flow.endpoints[0], np.int64(50), passes=np.int64(1))
    assert list(flow) == list(numbers(3))


def test_only_a_flow_is_sent():
    with pytest.raises(TypeError, match="send_dataflow_zmq sends .* a DataFlow, but got list"):
        send_dataflow_zmq([1], "tcp://127.0.0.1:1")


def test_an_address_that_is_in_use_is_named(receive):
    addr = receive().endpoints[0]
    with pytest.raises(OSError, match=f"Cannot bind to {addr}: .* end the program"):
        receive(addr)


def test_a_socket_of_the_users_own_is_bound_as_the_flow_is_made():
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        RemoteDataZMQ(ANY_PORT).bind_or_connect(socket, ANY_PORT)
        assert socket.last_endpoint.startswith(b"tcp://127.0.0.1:")
        with pytest.raises(ValueError, match="needs a key"):
            RemoteDataZMQ(ANY_PORT).bind_or_connect(socket, "tcp://*:8877")
