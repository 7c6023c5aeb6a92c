"""Datapoints come over real sockets, whatever becomes of who sends them, and nothing else does."""

import contextlib
import itertools
import multiprocessing
import os
import pickle
import shutil
import signal
import stat
import tempfile
import threading
from socket import socket as Socket

import numpy as np
import pytest

from tensorpack.dataflow import DataFlowTerminated, DataFromGenerator, DataFromList
from tensorpack.dataflow._remote.message import DATA, END, HELLO, Message, encode
from tensorpack.dataflow.remote import RemoteDataZMQ, make_remote_key, send_dataflow_zmq
from tensorpack.utils.serialize import FrameError, dumps
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.harness import Child

zmq = pytest.importorskip("zmq")
pytest.importorskip("msgpack")
needs_curve = pytest.mark.skipif(not zmq.has("curve"), reason="this ZeroMQ cannot encrypt")

A, B = b"a" * 16, b"b" * 16
SECONDS = 60  # what is awaited comes at once; this is for machines that stand still
ANY_PORT = "tcp://127.0.0.1:*"


def numbers(count):
    return DataFromList([[i] for i in range(count)], shuffle=False)


class Sending(threading.Thread):
    """Runs `send_dataflow_zmq` in a thread; `end` waits for it and raises its error."""

    def __init__(self, flow, addr, **options):
        super().__init__(daemon=True)
        self._arguments, self._options = (flow, addr), {"timeout": SECONDS, **options}
        self._error = None
        self.start()

    def run(self):
        try:
            send_dataflow_zmq(*self._arguments, **self._options)
        except BaseException as error:
            self._error = error

    def end(self):
        self.join(SECONDS)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error


class Until:
    """Makes numbers until it is told to stop."""

    def __init__(self):
        self.stop = threading.Event()
        self.count = 0

    def __call__(self):
        for self.count in itertools.count():
            yield [self.count]
            if self.stop.is_set():
                return


@pytest.fixture
def receive():
    """Makes a receiver that is connected; it is closed at the end."""
    flows = []

    def make(addr=ANY_PORT, *args, **options):
        flow = RemoteDataZMQ(addr, *args, **{"timeout": SECONDS, **options})
        flows.append(flow)
        flow.reset_state()
        return flow

    yield make
    for flow in flows:
        flow.close()


class Raw:
    """Makes bare sockets of a kind, connected to an address."""

    def __init__(self):
        self._context = zmq.Context()
        self._sockets = []

    def __call__(self, kind, addr, **options):
        return self.monitored(kind, addr, **options)[0]

    def monitored(self, kind, addr, **options):
        """Returns the socket, and one that tells what happens to its connection."""
        socket = self._context.socket(kind)
        for name, value in options.items():
            setattr(socket, name, value)
        socket.sndtimeo = socket.rcvtimeo = 1000 * SECONDS
        monitor = socket.get_monitor_socket()
        self._sockets += [socket, monitor]
        socket.connect(addr)
        return socket, monitor

    def close(self):
        for socket in self._sockets:
            socket.close(0)
        self._context.term()


@pytest.fixture
def raw():
    made = Raw()
    yield made
    made.close()


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


@pytest.fixture
def key(tmp_path):
    path = str(tmp_path / "remote.key")
    make_remote_key(path)
    return path


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


def free_address():
    """Of a port that nobody has taken, for a sender that binds."""
    with contextlib.closing(Socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{taken.getsockname()[1]}"


def drain(pull, sending):
    """Takes what a sender that binds still has, so that it comes to its end."""
    while sending.is_alive():
        if pull.poll(20):
            pull.recv()
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
        drain(raw(zmq.PULL, self._addr), sending)

    def make_flow(self):
        return Tracked(self._addr, bind=False, timeout=SECONDS)


def test_datapoints_come_as_they_were_sent_and_a_stream_may_have_an_end(receive, capfd):
    flow = receive()
    sent = [
        [1, (2.5, "text", b"bytes"), None],
        {"image": np.arange(1000, dtype=">u2").reshape(10, 100), "label": np.float32(3)},
        (np.zeros((0, 4)), [np.array(["a", "bc"])]),
    ]
    sending = Sending(DataFromList(sent, shuffle=False), flow.endpoints[0], passes=2)
    found = list(flow)
    sending.end()
    assert_same(found, 2 * sent)
    found[1]["image"][:] = 0
    assert (flow.cnt1, flow.cnt2, flow.malformed) == (6, 0, 0)
    captured = capfd.readouterr()
    assert f"Serving data to {flow.endpoints[0]} ..." in captured.out
    assert "6/6" in captured.err


def test_what_follows_the_end_is_another_pass(receive):
    flow = receive()
    for count in 3, 5:
        sending = Sending(numbers(count), flow.endpoints[0], passes=1)
        assert list(flow) == list(numbers(count))
        sending.end()
    assert flow.cnt1 == 8


def test_a_pass_is_over_when_all_who_began_are_at_their_end(receive, raw):
    flow = receive()
    first, second = (raw(zmq.PUSH, flow.endpoints[0]) for _ in range(2))
    datapoints = iter(flow)
    first.send(encode(Message(HELLO, A, 0)))
    first.send(encode(Message(DATA, A, 0, ["a"])))
    assert next(datapoints) == ["a"]
    second.send(encode(Message(HELLO, B, 0)))
    second.send(encode(Message(DATA, B, 0, ["b"])))
    assert next(datapoints) == ["b"]
    first.send(encode(Message(END, A, 1)))
    second.send(encode(Message(DATA, B, 1, ["c"])))
    assert next(datapoints) == ["c"]
    second.send(encode(Message(END, B, 2)))
    assert list(datapoints) == []


def test_several_senders(receive):
    flow = receive(senders=3)
    sources = [[[name, i] for i in range(20)] for name in "abc"]
    sendings = [
        Sending(DataFromList(source, shuffle=False), flow.endpoints[0], passes=1)
        for source in sources
    ]
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


def test_a_sender_that_binds_goes_on_with_another_receiver(receive, raw):
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
        with pytest.raises(DataFlowTerminated, match="Nobody took the datapoints"):
            sending.end()
    finally:
        shutil.rmtree(folder)


def test_a_sender_goes_on_when_the_receiver_is_started_again(receive):
    source = Until()
    first = receive()
    addr = first.endpoints[0]
    sending = Sending(DataFromGenerator(source), addr, passes=1, hwm=2)
    assert next(iter(first)) == [0]
    first.close()
    second = receive(addr)
    datapoints = iter(second)
    begin = next(datapoints)[0]
    assert begin > 0
    assert next(datapoints) == [begin + 1]
    source.stop.set()
    rest = list(datapoints)
    assert rest == [[i] for i in range(begin + 2, source.count + 1)]
    sending.end()


def test_a_sender_waits_when_the_receiver_has_enough(receive):
    flow = receive(hwm=2)
    taken = []

    def large():
        for i in itertools.count():
            taken.append(i)
            yield [np.zeros(1 << 20, np.uint8)]

    sending = Sending(DataFromGenerator(large), flow.endpoints[0], hwm=2, timeout=0.5)
    with pytest.raises(DataFlowTerminated, match="Nobody took the datapoints at tcp.* for 0.5 s"):
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


def test_a_sender_without_a_receiver_gives_up_when_asked_to():
    for bind in True, False:
        addr = ANY_PORT if bind else "tcp://127.0.0.1:1"
        with pytest.raises(DataFlowTerminated, match="Nobody took the datapoints"):
            send_dataflow_zmq(numbers(3), addr, bind=bind, passes=1, timeout=0.1)


def test_a_receiver_without_senders_gives_up_when_asked_to(receive, raw):
    flow = receive(timeout=0.05)
    with pytest.raises(DataFlowTerminated, match="Nothing came to tcp.* for 0.05 s.* 0 have not"):
        next(iter(flow))
    flow = receive(timeout=2)
    raw(zmq.PUSH, flow.endpoints[0]).send(encode(Message(HELLO, A, 0)))
    with pytest.raises(DataFlowTerminated, match="sent something, 1 have not said"):
        next(iter(flow))


def test_close_ends_a_pass_that_waits_and_the_flow_can_be_used_again(receive, raw):
    flow = receive(timeout=None)
    begun, errors = threading.Event(), []

    def consume():
        try:
            for _ in flow:
                begun.set()
        except DataFlowTerminated as error:
            errors.append(str(error))

    thread = threading.Thread(target=consume)
    thread.start()
    raw(zmq.PUSH, flow.endpoints[0]).send(encode(Message(DATA, A, 0, ["first"])))
    assert begun.wait(SECONDS)
    flow.close()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert errors == [f"The connection at {ANY_PORT} was closed."]
    assert flow.endpoints == []
    flow.close()
    flow.reset_state()
    sending = Sending(numbers(3), flow.endpoints[0], passes=1)
    assert list(flow) == list(numbers(3))
    sending.end()


def test_a_pass_that_does_not_wait_ends_too(receive, raw):
    flow = receive()
    socket = raw(zmq.PUSH, flow.endpoints[0])
    for i in range(3):
        socket.send(encode(Message(DATA, A, i, [i])))
    datapoints = iter(flow)
    assert next(datapoints) == [0]
    flow.close()
    with pytest.raises(DataFlowTerminated, match="was closed"):
        next(datapoints)


def test_reset_state_keeps_the_connection_and_what_waits_in_it(receive, raw):
    flow = receive()
    endpoints = flow.endpoints
    socket = raw(zmq.PUSH, endpoints[0])
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


def test_many_small_datapoints(receive):
    flow = receive()
    sending = Sending(numbers(20000), flow.endpoints[0], passes=1)
    assert [number for (number,) in flow] == list(range(20000))
    sending.end()


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


def wait_for_the_end(monitor):
    """Waits until a connection has failed, whenever in its life."""
    from zmq.utils.monitor import recv_monitor_message

    ends = {zmq.EVENT_DISCONNECTED, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL}
    ends |= {zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_AUTH}
    while True:
        assert monitor.poll(1000 * SECONDS)
        if recv_monitor_message(monitor)["event"] in ends:
            return


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
        socket, monitor = raw.monitored(zmq.PUSH, flow.endpoints[0], **options)
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
    pairs = [raw.monitored(zmq.PULL, addr, **options) for options in strangers(key)]
    for _, monitor in pairs:
        wait_for_the_end(monitor)
    flow = receive(addr, bind=False, key=key)
    assert list(flow) == list(numbers(5))
    sending.end()
    assert not any(pull.poll(0) for pull, _ in pairs)


def test_a_stream_with_an_end_does_not_go_through_a_socket_file(tmp_path):
    with pytest.raises(ValueError, match="passes=2 at ipc://.* Use tcp://127.0.0.1:PORT"):
        send_dataflow_zmq(numbers(3), f"ipc://{tmp_path}/socket", passes=2)
    assert os.listdir(tmp_path) == []


@needs_curve
def test_nothing_is_sent_to_a_receiver_without_the_key(receive, key):
    flow = receive(timeout=1)
    sending = Sending(numbers(200), flow.endpoints[0], key=key, hwm=2, timeout=0.5)
    with pytest.raises(DataFlowTerminated, match="Nobody took"):
        sending.end()
    with pytest.raises(DataFlowTerminated, match="Nothing came"):
        next(iter(flow))


@needs_curve
def test_a_key_is_for_its_owner_alone(key, tmp_path):
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    with pytest.raises(FileExistsError):
        make_remote_key(key)
    os.chmod(key, 0o640)
    with pytest.raises(PermissionError, match=f"chmod 600 {key}"):
        RemoteDataZMQ(ANY_PORT, key=key)
    with pytest.raises(FileNotFoundError):
        RemoteDataZMQ(ANY_PORT, key=str(tmp_path / "none"))


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
        with pytest.raises(ValueError, match="no key that|damaged"):
            RemoteDataZMQ(ANY_PORT, key=key)


def test_without_curve_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(zmq, "has", lambda name: False)
    with pytest.raises(RuntimeError, match="cannot encrypt"):
        make_remote_key(str(tmp_path / "key"))
    assert not (tmp_path / "key").exists()


class Watched(DataFromList):
    """Counts how often it was reset and closed."""

    resets = closes = 0

    def reset_state(self):
        super().reset_state()
        self.resets += 1

    def close(self):
        self.closes += 1


def test_the_flow_is_reset_first_and_closed_at_the_end(receive):
    flow = receive()
    source = Watched([[1]])
    sending = Sending(source, flow.endpoints[0], passes=2)
    assert list(flow) == [[1], [1]]
    sending.end()
    assert (source.resets, source.closes) == (1, 1)


def test_an_error_of_the_flow_comes_out_and_what_was_sent_arrives(receive):
    flow = receive()

    def broken():
        yield [1]
        raise KeyError("broken")

    sending = Sending(DataFromGenerator(broken), flow.endpoints[0])
    assert next(iter(flow)) == [1]
    with pytest.raises(KeyError, match="broken"):
        sending.end()


@pytest.mark.parametrize(
    "bad, kind, says",
    [
        ([{"x": {1}}], TypeError, r"Datapoint 1 cannot be sent: \[0\]\['x'\]: a set"),
        ([np.array([None])], TypeError, r"Datapoint 1 cannot be sent: \[0\]: an array of object"),
        (["\ud800"], ValueError, "Datapoint 1 cannot be sent: "),
    ],
)
def test_what_cannot_be_sent_is_named(bad, kind, says, receive):
    flow = receive()
    source = Watched([[0], bad], shuffle=False)
    sending = Sending(source, flow.endpoints[0])
    with pytest.raises(kind, match=says):
        sending.end()
    assert source.closes == 1


def test_a_flow_without_datapoints_is_an_error(receive):
    flow = receive()
    with pytest.raises(RuntimeError, match="yielded nothing"):
        send_dataflow_zmq(numbers(0), flow.endpoints[0])


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


def test_other_machines_need_a_key():
    for bind in True, False:
        with pytest.raises(ValueError, match=r"needs a key.*make_remote_key\("):
            RemoteDataZMQ("tcp://0.0.0.0:8877", bind=bind)
        with pytest.raises(ValueError, match=r"needs a key.*make_remote_key\("):
            RemoteDataZMQ("tcp://127.0.0.1:8877", "tcp://10.0.0.1:8877", bind=bind)
        with pytest.raises(ValueError, match=r"needs a key.*make_remote_key\("):
            send_dataflow_zmq(numbers(1), "tcp://0.0.0.0:8877", bind=bind)


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
