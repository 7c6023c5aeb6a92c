"""What `remote` is given is checked before anything is sent."""

import numpy as np
import pytest

from tensorpack.dataflow.remote import RemoteDataZMQ, send_dataflow_zmq
from tests.dataflow.flows import numbers
from tests.dataflow.remote_peers import ANY_PORT, Sending

zmq = pytest.importorskip("zmq")
pytest.importorskip("msgpack")


@pytest.mark.parametrize(
    "arguments, keywords",
    [
        ((), {}),
        ((10, 5), {}),
        ((10, 5, None), {}),
        ((10, None, False), {}),
        ((), {"hwm": 10, "print_interval": 5, "format": None}),
        ((), {"hwm": "10", "format": None, "bind": 0}),
    ],
)
def test_the_arguments_of_both_releases(arguments, keywords, receive):
    flow = receive()
    sending = Sending(numbers(3), flow.endpoints[0], *arguments, passes=1, **keywords)
    assert list(flow) == list(numbers(3))
    sending.end()


@pytest.mark.parametrize(
    "arguments, kind, says",
    [
        ((10, 5, "proto"), ValueError, "no format 'proto' here"),
        ((10, "proto", True), ValueError, "no format 'proto' here"),
        ((10, 5, True), ValueError, "no format True here"),
        ((10, None, "zmq_ops"), TypeError, "bind is True or False, but got 'zmq_ops'"),
        ((0,), ValueError, "hwm must be a whole number of at least 1"),
        (("a",), TypeError, "send_dataflow_zmq: hwm must be a number, but got 'a'"),
        ((10, 0), ValueError, "print_interval must be a whole number"),
    ],
)
def test_arguments_that_are_wrong(arguments, kind, says):
    with pytest.raises(kind, match=says):
        send_dataflow_zmq(numbers(3), "tcp://127.0.0.1:1", *arguments)


@pytest.mark.parametrize("name", ["hwm", "senders", "timeout", "max_bytes", "max_errors"])
def test_numbers_that_are_wrong(name):
    with pytest.raises(ValueError, match=f"RemoteDataZMQ: {name} must be a"):
        RemoteDataZMQ(ANY_PORT, **{name: -1})


def test_numbers_of_numpy(receive):
    flow = receive(hwm=np.int64(50), max_bytes=np.int64(10**6))
    sending = Sending(numbers(3), flow.endpoints[0], hwm=np.int64(50), passes=np.int64(1))
    assert list(flow) == list(numbers(3))
    sending.end()


def test_only_a_flow_is_sent():
    with pytest.raises(TypeError, match="send_dataflow_zmq sends .* a DataFlow, but got a list"):
        send_dataflow_zmq([1], "tcp://127.0.0.1:1")


def test_an_address_that_is_in_use_is_named(receive):
    addr = receive().endpoints[0]
    with pytest.raises(OSError, match=f"Cannot bind to {addr}: .* end the program"):
        receive(addr)


def test_a_socket_of_the_users_own_is_bound_as_the_flow_is_made():
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        RemoteDataZMQ(ANY_PORT).bind_or_connect(socket, ANY_PORT)
        assert socket.last_endpoint.startswith(b"tcp://127.0.0.1:")
        with pytest.raises(ValueError, match="needs a key"):
            RemoteDataZMQ(ANY_PORT).bind_or_connect(socket, "tcp://*:8877")
