"""Datapoints come over real sockets as they were sent, and waits end with an error."""

import itertools
import multiprocessing
import os
import shutil
import stat
import tempfile
import threading

import numpy as np
import pytest

from tensorpack.dataflow import DataFlowTerminated, DataFromGenerator, MapData
from tensorpack.dataflow._remote import ends
from tensorpack.dataflow._remote.message import DATA, END, SYNC, Message, decode, encode
from tensorpack.dataflow.remote import RemoteDataZMQ, RemoteSender, send_dataflow_zmq
from tensorpack.utils.serialize import MAX_BYTES
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow.flows import ResetsCounted, consumer_of, flow_of, numbers
from tests.dataflow.remote_peers import ANY_PORT, SECONDS, A, B, Sending, Until, drain, free_address
from tests.processes import wait_until

zmq = pytest.importorskip("zmq")
pytest.importorskip("msgpack")


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
    def sender(self, raw):
        """Sends to all flows of a test, by a socket that is bound."""
        self._addr = free_address()
        source = Until()
        sending = Sending(DataFromGenerator(source), self._addr, bind=True, passes=1)
        yield
        for flow in Tracked.connected:
            flow.close()
        Tracked.connected.clear()
        source.stop.set()
        drain(raw(zmq.ROUTER, self._addr), sending)

    def make_flow(self):
        return Tracked(self._addr, bind=False, timeout=SECONDS)


def test_a_program_sends_datapoints_as_it_makes_them(receive):
    flow = receive()
    found = []
    with RemoteSender(flow.endpoints[0], timeout=SECONDS) as sender:
        for number in range(3):
            sender.send([number])
            found.append(next(iter(flow)))
        assert sender.count == 3
        ending = threading.Thread(target=sender.end)
        ending.start()
        assert list(flow) == []
        ending.join()
    assert found == [[0], [1], [2]]
    with pytest.raises(ValueError, match="RemoteSender: hwm must be a whole number"):
        RemoteSender(flow.endpoints[0], hwm=0)
    with pytest.raises(ValueError, match="needs a key"):
        RemoteSender("tcp://10.0.0.1:5000")


def test_datapoints_come_as_they_were_sent_and_a_stream_may_have_an_end(receive, capfd):
    flow = receive()
    sent = [
        [1, (2.5, "text", b"bytes"), None],
        {"image": np.arange(1000, dtype=">u2").reshape(10, 100), "label": np.float32(3)},
        (np.zeros((0, 4)), [np.array(["a", "bc"])]),
    ]
    sending = Sending(flow_of(sent), flow.endpoints[0], passes=2)
    found = list(flow)
    sending.end()
    assert_same(found, 2 * sent)
    found[1]["image"][:] = 0
    assert (flow.cnt1, flow.cnt2, flow.malformed) == (6, 0, 0)
    captured = capfd.readouterr()
    assert f"Serving data to {flow.endpoints[0]} ..." in captured.out
    assert "6/6" in captured.err


def test_a_program_may_go_on_after_its_end(receive):
    flow = receive()
    found = []
    taking = threading.Thread(target=lambda: found.extend(list(flow) for _ in range(3)))
    taking.start()
    with RemoteSender(flow.endpoints[0], timeout=SECONDS) as sender:
        for count in 3, 0, 2:
            for number in range(count):
                sender.send([number])
            sender.end()
        assert sender.count == 5
    taking.join()
    assert found == [[[0], [1], [2]], [], [[0], [1]]]


def test_what_follows_the_end_is_another_pass(receive, tmp_path):
    flow = receive(f"ipc://{tmp_path}/socket")
    for count in 3, 5:
        sending = Sending(numbers(count), flow.endpoints[0], passes=1)
        assert list(flow) == list(numbers(count))
        sending.end()
    assert flow.cnt1 == 8


def test_a_pass_is_over_when_all_of_its_senders_have_ended(receive, raw):
    flow = receive()
    first, second = (raw(zmq.DEALER, flow.endpoints[0]) for _ in range(2))
    datapoints = iter(flow)
    for peer, name, datapoint in (first, A, ["a"]), (second, B, ["b"]):
        peer.send(encode(Message(SYNC, name, 0)))
        peer.send(encode(Message(DATA, name, 0, datapoint)))
        assert next(datapoints) == datapoint
    first.send(encode(Message(END, A, 1)))
    second.send(encode(Message(DATA, B, 1, ["c"])))
    assert next(datapoints) == ["c"]
    second.send(encode(Message(END, B, 2)))
    assert list(datapoints) == []


def test_several_senders(receive):
    flow = receive(senders=3)
    sources = [[[name, i] for i in range(20)] for name in "abc"]
    sendings = [Sending(flow_of(source), flow.endpoints[0], passes=1) for source in sources]
    found = list(flow)
    for sending in sendings:
        sending.end()
    assert len(found) == 60
    for source in sources:
        assert [datapoint for datapoint in found if datapoint[0] == source[0][0]] == source


def test_two_addresses(receive):
    flow = receive(ANY_PORT, ANY_PORT, senders=2)
    assert len(set(flow.endpoints)) == 2
    sendings = [
        Sending(numbers(count), addr, passes=1) for count, addr in zip((4, 7), flow.endpoints)
    ]
    assert sorted(flow) == sorted([*numbers(4), *numbers(7)])
    for sending in sendings:
        sending.end()
    assert (flow.cnt1, flow.cnt2) == (4, 7)


def test_a_sender_that_binds_continues_with_another_receiver(receive, raw):
    folder = tempfile.mkdtemp(prefix="tp-")
    addr = f"ipc://{folder}/new/socket"
    sending = Sending(DataFromGenerator(Until()), addr, bind=True, timeout=1)
    try:
        first = receive(addr, bind=False)
        assert next(iter(first)) == [0]
        assert stat.S_IMODE(os.stat(f"{folder}/new").st_mode) == 0o700
        assert stat.S_IMODE(os.stat(f"{folder}/new/socket").st_mode) == 0o600
        first.close()
        second = receive(addr, bind=False)
        datapoints = iter(second)
        assert next(datapoints)[0] > 0
        second.close()
        with pytest.raises(DataFlowTerminated, match="Nothing was taken at ipc.* for 1.0 s: "):
            sending.end()
        assert os.listdir(f"{folder}/new") == []
    finally:
        shutil.rmtree(folder)


def test_a_sender_asks_again_when_the_one_that_it_asked_has_gone(raw):
    addr = free_address()
    sending = Sending(numbers(1), addr, bind=True, passes=1)
    first = raw(zmq.ROUTER, addr)
    kinds = [decode(first.recv_multipart()[1], MAX_BYTES).kind for _ in range(2)]
    assert kinds == [DATA, SYNC]
    first.close()
    drain(raw(zmq.ROUTER, addr), sending)


def test_a_sender_continues_when_the_receiver_is_started_again_and_says_what_was_lost(receive):
    source = Until()
    first = receive()
    addr = first.endpoints[0]
    sending = Sending(DataFromGenerator(source), addr, passes=1, hwm=2)
    assert next(iter(first)) == [0]
    wait_until(lambda: source.count > 20)  # of which 2 may wait at the sender
    first.close()
    second = receive(addr)
    datapoints = iter(second)
    begin = next(datapoints)[0]
    assert begin > 1
    assert next(datapoints) == [begin + 1]
    source.stop.set()
    rest = []
    lost = rf"{begin - 1} of [0-9]+ datapoints sent to {addr} were lost"
    with pytest.raises(DataFlowTerminated, match=f"A sender says: {lost}"):
        rest.extend(datapoints)
    assert rest == [[i] for i in range(begin + 2, source.count + 1)]
    with pytest.raises(DataFlowTerminated, match=lost):
        sending.end()


def test_a_sender_waits_when_the_receiver_has_enough(receive):
    flow = receive(hwm=2)
    taken = []

    def large():
        for i in itertools.count():
            taken.append(i)
            yield [np.zeros(1 << 19, np.uint8)]

    sending = Sending(DataFromGenerator(large), flow.endpoints[0], hwm=2, timeout=0.5)
    with pytest.raises(DataFlowTerminated, match="Nothing was taken at tcp.* for 0.5 s: 0 of"):
        sending.end()
    assert 4 <= len(taken) <= 60  # two on each side, and what the kernel holds


def test_closing_waits_until_all_has_left(receive):
    flow = receive(hwm=1, timeout=20)
    done = threading.Event()

    def source():
        for i in range(300):
            yield [i, np.zeros(1 << 16, np.uint8)]  # together more than the kernel holds
        done.set()

    sending = Sending(DataFromGenerator(source), flow.endpoints[0], passes=1, hwm=1000)
    assert done.wait(SECONDS)
    assert [number for number, _ in flow] == list(range(300))
    sending.end()


@pytest.mark.parametrize("bind", [True, False])
def test_a_sender_without_a_receiver_gives_up_when_asked_to(bind):
    addr = ANY_PORT if bind else "tcp://127.0.0.1:1"
    with pytest.raises(DataFlowTerminated, match="Nothing was taken at tcp.* for 0.1 s: 0 of"):
        send_dataflow_zmq(numbers(3), addr, bind=bind, passes=1, timeout=0.1)


def test_a_receiver_without_senders_gives_up_when_asked_to(receive, raw):
    flow = receive(timeout=0.3)
    with pytest.raises(DataFlowTerminated, match="Nothing came to tcp.* for 0.3 s.* 0 have not"):
        next(iter(flow))
    raw(zmq.DEALER, flow.endpoints[0]).send(encode(Message(DATA, A, 0, ["a"])))
    datapoints = iter(flow)
    assert next(datapoints) == ["a"]
    with pytest.raises(DataFlowTerminated, match="sent datapoints, 1 have not said"):
        next(datapoints)


def test_close_ends_a_pass_that_waits_and_the_flow_can_be_used_again(receive, raw):
    flow = receive(timeout=None)
    thread, outcome, begun = consumer_of(flow)
    raw(zmq.DEALER, flow.endpoints[0]).send(encode(Message(DATA, A, 0, ["first"])))
    assert begun.wait(SECONDS)
    flow.close()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert outcome == [["first"], f"The connection at {ANY_PORT} was closed."]
    assert flow.endpoints == []
    flow.close()
    flow.reset_state()
    sending = Sending(numbers(3), flow.endpoints[0], passes=1)
    assert list(flow) == list(numbers(3))
    sending.end()


def test_reset_state_keeps_the_connection_and_what_waits_in_it(receive, raw):
    flow = receive()
    endpoints = flow.endpoints
    socket = raw(zmq.DEALER, endpoints[0])
    for i in range(3):
        socket.send(encode(Message(DATA, A, i, [i])))
    assert next(iter(flow)) == [0]
    flow.reset_state()
    assert flow.endpoints == endpoints
    assert next(iter(flow)) == [1]
    assert not flow.seeded


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_a_connection_of_its_own(receive):
    flow = receive()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def child():
        flow.reset_state()
        theirs.send(flow.endpoints)
        theirs.send(list(flow))
        flow.close()

    process = context.Process(target=child)
    process.start()
    try:
        endpoints = ours.recv()
        assert endpoints != flow.endpoints
        for addr, found in [(endpoints[0], ours.recv), (flow.endpoints[0], lambda: list(flow))]:
            sending = Sending(numbers(4), addr, passes=1)
            assert found() == list(numbers(4))
            sending.end()
        process.join(SECONDS)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()
        ours.close()
        theirs.close()


def fail_at_text(datapoint):
    if datapoint == ["fail"]:
        raise ValueError("broken \udc80")
    return datapoint


@pytest.mark.parametrize(
    "datapoints, error, message",
    [
        ([[0], ["fail"]], ValueError, "broken "),
        ([], RuntimeError, "MapData yielded nothing in pass 1"),
        ([[0], [{"x": {1}}]], TypeError, r"Datapoint 1 cannot be sent: \[0\]\['x'\]: a set"),
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


def test_a_receiver_that_reads_nothing_is_told_for_a_minute_at_most(receive, monkeypatch, capsys):
    monkeypatch.setattr(ends, "_MOST_SECONDS", 0.2)
    flow = receive()
    datapoints = iter(flow)
    with RemoteSender(flow.endpoints[0]) as sender:
        sender.send([0])
        assert next(datapoints) == [0]
        sender.end()  # the receiver has all, and reads on later
        assert "All 1 datapoints sent to tcp" in capsys.readouterr().out
        sender.send([1])
        sender.fail("no more orders")
        sender.fail("not told twice")
    assert list(datapoints) == []
    assert next(iter(flow)) == [1]
    with pytest.raises(DataFlowTerminated, match="A sender says: no more orders$"):
        next(iter(flow))
    for call in (lambda: sender.send([2]), sender.end, lambda: sender.fail("why")):
        with pytest.raises(RuntimeError, match="The connection to tcp.* was closed"):
            call()


def test_two_receivers_share_the_datapoints_of_a_sender_that_binds(receive):
    addr = free_address()
    flows = [receive(addr, bind=False, timeout=5) for _ in range(2)]
    consumers = [consumer_of(flow) for flow in flows]
    sending = Sending(numbers(2000), addr, bind=True, passes=1, hwm=5)
    sending.end()
    flows[0].close(), flows[1].close()
    found = []
    for thread, outcome, _ in consumers:
        thread.join(SECONDS)
        found += [each for each in outcome if isinstance(each, list)]
    assert sorted(found) == list(numbers(2000))
