"""Datapoints come over real sockets as they were sent, and waits end with an error."""

import itertools
import os
import signal
import stat
import threading
import time

import numpy as np
import pytest

from tensorpack.dataflow import DataFlowTerminated, DataFromGenerator, MapData
from tensorpack.dataflow.remote import RemoteDataZMQ, send_dataflow_zmq
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow.flows import ResetsCounted, consumer_of, flow_of, numbers
from tests.dataflow.remote_peers import ANY_PORT, SECONDS, Sending, free_address

zmq = pytest.importorskip("zmq")
pytest.importorskip("msgpack")


def endless():
    """Returns an event, and a flow of the numbers from 0 on that ends when the event is set."""

    def source():
        for number in itertools.count():
            yield [number]
            if stop.is_set():
                return

    stop = threading.Event()
    return stop, DataFromGenerator(source)


def finish(flow, stop, sending):
    """Takes what is left of a sender of `endless`."""
    datapoints = iter(flow)
    next(datapoints)  # the sender has seen this receiver
    stop.set()
    list(datapoints)
    sending.end()


class Tracked(RemoteDataZMQ):
    """Remembers who is connected, copies that came through a pickle among them."""

    connected = []

    def bind_or_connect(self, socket, addr):
        self.connected.append(self)
        super().bind_or_connect(socket, addr)


class TestRemoteDataZMQ(DataFlowContract):
    has_len = False
    deterministic = False
    independent = False
    keeps_state = False

    @pytest.fixture(autouse=True)
    def sender(self, receive):
        """Sends to all flows of a test, by a socket that is bound."""
        self._addr = free_address()
        stop, source = endless()
        sending = Sending(source, self._addr, bind=True, passes=1)
        yield
        for flow in Tracked.connected:
            flow.close()
        Tracked.connected.clear()
        finish(receive(self._addr, bind=False), stop, sending)

    def make_flow(self):
        return Tracked(self._addr, bind=False, timeout=SECONDS)


def test_datapoints_come_as_they_were_sent_and_a_stream_may_have_an_end(receive, capfd):
    flow = receive(max_bytes=np.int64(10**6))
    sent = [
        [1, (2.5, "text", b"bytes"), None],
        {"image": np.arange(1000, dtype=">u2").reshape(10, 100), "label": np.float32(3)},
        (np.zeros((0, 4)), [np.array(["a", "bc"])]),
    ]
    sending = Sending(flow_of(sent), flow.endpoints[0], passes=2)
    datapoints = list(flow)
    sending.end()
    assert_same(datapoints, 2 * sent)
    datapoints[1]["image"][:] = 0
    captured = capfd.readouterr()
    assert f"Serving data to {flow.endpoints[0]} ..." in captured.out
    assert "6/6" in captured.err


@pytest.mark.parametrize("arguments", [(10, 5, "zmq_op"), (10, "zmq_ops", False), ("10", None, 0)])
def test_the_arguments_of_both_releases(arguments, receive):
    flow = receive()
    sending = Sending(numbers(3), flow.endpoints[0], *arguments, passes=1)
    assert list(flow) == list(numbers(3))
    sending.end()


@pytest.mark.parametrize("kind", ["tcp", "ipc"])
def test_a_slow_receiver_gets_all_of_a_sender_that_has_ended_and_then_the_next_pass(
    receive, kind, tmp_path
):
    addr = ANY_PORT if kind == "tcp" else f"ipc://{tmp_path}/socket"
    flow = receive(addr)
    for count in 200, 3:
        sending = Sending(numbers(count), flow.endpoints[0], passes=1)
        time.sleep(1 if count == 200 else 0)  # by then all of it is in the buffers
        assert list(flow) == list(numbers(count))
        sending.end()
    if kind == "ipc":
        assert stat.S_IMODE(os.stat(f"{tmp_path}/socket").st_mode) == 0o600
        flow.close()
        assert receive(addr).endpoints == [addr]  # the socket file that is left is replaced


def test_several_senders_at_two_addresses(receive):
    flow = receive(ANY_PORT, ANY_PORT, senders=3)
    assert len(set(flow.endpoints)) == 2
    sources = [[[name, i] for i in range(20)] for name in "abc"]
    addresses = itertools.cycle(flow.endpoints)
    sendings = [Sending(flow_of(source), next(addresses), passes=1) for source in sources]
    found = list(flow)
    for sending in sendings:
        sending.end()
    assert len(found) == 60
    for source in sources:
        assert [datapoint for datapoint in found if datapoint[0] == source[0][0]] == source


def test_a_sender_that_binds_may_start_first_and_deals_out_to_two_receivers(receive):
    addr = free_address()
    sending = Sending(numbers(2000), addr, bind=True, passes=1, hwm=5)
    flows = [receive(addr, bind=False, timeout=3) for _ in range(2)]
    consumers = [consumer_of(flow) for flow in flows]
    sending.end()
    found = []
    for thread, outcome, _ in consumers:  # one reads the end, the other waits for its time-out
        thread.join(SECONDS)
        found += [datapoint for datapoint in outcome if isinstance(datapoint, list)]
    assert sorted(found) == list(numbers(2000))


def test_a_socket_in_use_is_not_taken_over(receive, tmp_path):
    receive(f"ipc://{tmp_path}/socket")
    with pytest.raises(FileExistsError, match="/socket is in use"):
        receive(f"ipc://{tmp_path}/socket")


def test_a_signal_handler_may_close_a_flow_that_waits(receive):
    flow = receive(ANY_PORT)
    before = signal.signal(signal.SIGALRM, lambda *_: flow.close())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(DataFlowTerminated, match="was closed"):
            next(iter(flow))
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("bind", [True, False])
def test_a_sender_waits_for_a_receiver_and_gives_up_when_asked_to(receive, bind):
    addr = free_address()
    with pytest.raises(DataFlowTerminated, match=f"Nothing was taken at {addr} for 0.1 s"):
        send_dataflow_zmq(numbers(3), addr, bind=bind, passes=1, timeout=0.1)
    stop, source = endless()
    sending = Sending(source, addr, bind=bind, passes=1)
    for _ in range(2):  # the second one is that of a program that was started again
        flow = receive(addr, bind=not bind)
        assert next(iter(flow))[0] >= 0
        flow.close()
    finish(receive(addr, bind=not bind), stop, sending)


def test_a_sender_waits_when_the_receiver_has_enough(receive):
    flow = receive(hwm=2)
    taken = []

    def large():
        for i in itertools.count():
            taken.append(i)
            yield [np.zeros(1 << 19, np.uint8)]

    sending = Sending(DataFromGenerator(large), flow.endpoints[0], hwm=2, timeout=0.5)
    with pytest.raises(DataFlowTerminated, match="Nothing was taken at tcp.* for 0.5 s"):
        sending.end()
    assert 4 <= len(taken) <= 60  # two on each side, and what the kernel holds


def test_a_receiver_without_senders_gives_up_when_asked_to(receive):
    with pytest.raises(DataFlowTerminated, match="Nothing came to tcp.* for 0.3 s"):
        next(iter(receive(timeout=0.3)))


def test_close_ends_a_pass_that_waits_and_the_flow_can_be_used_again(receive):
    flow = receive(timeout=None)
    thread, outcome, _ = consumer_of(flow)
    flow.close()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert [text[:24] for text in outcome] == ["The connection at tcp://"]
    assert flow.endpoints == []
    flow.close()
    flow.reset_state()
    flow.reset_state()  # keeps the connection
    sending = Sending(numbers(3), flow.endpoints[0], passes=1)
    assert list(flow) == list(numbers(3))
    assert not flow.seeded
    sending.end()


def fail_at_text(datapoint):
    if datapoint == ["fail"]:
        raise ValueError("broken \udc80")
    return datapoint


@pytest.mark.parametrize(
    "datapoints, error, message",
    [
        ([[0], ["fail"]], ValueError, "broken "),
        ([], RuntimeError, "MapData yielded nothing in pass 1"),
        ([[0], [{"x": {1}}]], TypeError, r"\[0\]\['x'\]: a set cannot be sent"),
    ],
    ids=["the flow fails", "an empty flow", "what cannot be sent"],
)
def test_an_error_of_the_flow_is_raised_at_both_ends(receive, datapoints, error, message):
    flow = receive()
    source = ResetsCounted(datapoints, shuffle=False)
    sending = Sending(MapData(source, fail_at_text), flow.endpoints[0], passes=1)
    taken = []
    says = f"A sender says: its flow failed with {error.__name__}: {message}"
    with pytest.raises(DataFlowTerminated, match=says):
        taken.extend(flow)
    assert taken == datapoints[:1]
    with pytest.raises(error, match=message):
        sending.end()
    assert (source.resets, source.closes) == (1, 1)


def test_a_socket_of_the_users_own_is_bound_as_the_flow_is_made():
    with zmq.Context() as context, context.socket(zmq.ROUTER) as socket:
        RemoteDataZMQ(ANY_PORT).bind_or_connect(socket, ANY_PORT)
        assert socket.last_endpoint.startswith(b"tcp://127.0.0.1:")
        with pytest.raises(ValueError, match="needs a key"):
            RemoteDataZMQ(ANY_PORT).bind_or_connect(socket, "tcp://*:8877")
