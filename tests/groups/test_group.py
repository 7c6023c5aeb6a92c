"""The group of processes that the tests of this folder use, on TensorFlow's real servers."""

import contextlib
import signal
import socket
import threading
import time

import pytest

from .group import Group
from .network import Network

PROGRAM = "tests.groups.serving"


@contextlib.contextmanager
def echo():
    """A server that sends back what it is sent; yields its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(4)

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        data = b"."
                        while data:
                            data = connection.recv(100)
                            connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def connect(address):
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def test_a_network_passes_on_stalls_resumes_and_cuts():
    with echo() as target, Network() as network:
        client = connect(network.way("a", "b", target))
        with client:
            client.sendall(b"first")
            assert client.recv(100) == b"first"
            assert network.sent("a", "b") == 10 and network.sent("b", "a") == 0
            network.stall("b")
            client.sendall(b"second")
            client.settimeout(0.2)
            with pytest.raises(socket.timeout):
                client.recv(100)
            client.settimeout(10)
            network.stall("c")
            network.resume("a")
            assert client.recv(100) == b"second"
            network.cut("a")
            with pytest.raises(ConnectionResetError):
                client.recv(100)
        with pytest.raises(ConnectionResetError):
            with connect(network.way("a", "b", target)) as client:
                client.recv(100)


@pytest.mark.slow
def test_a_group_whose_network_stalls_for_a_second(zygote):
    with Network() as network:
        with Group(PROGRAM, 50, workers=2, ps=1, zygote=zygote, network=network) as group:
            group.wait_for("stepping", "worker 1")
            network.stall("ps 0")
            time.sleep(1)
            assert all(group[name].process.poll() is None for name in group.names)
            network.resume("ps 0")
            assert group.end_all(60) == [0, 0], group.outputs
            assert network.sent("worker 1", "worker 0") > 100
            group.kill("ps 0")
            assert group.end("ps 0", 1) == -signal.SIGKILL


@pytest.mark.slow
def test_who_is_left_is_killed(zygote):
    with Group(PROGRAM, 10000, workers=2, ps=1, zygote=zygote) as group:
        group.wait_for("serving", *group.names)
        group.send(signal.SIGSTOP, "worker 0")
        processes = [group[name].process for name in group.names]
    assert [process.poll() for process in processes] == [-signal.SIGKILL] * 3
