"""Both ends of a connection for the tests of `remote`, and bare sockets beside them."""

import contextlib
import itertools
import threading
from socket import socket as Socket

from tensorpack.dataflow._remote.message import Answer, decode
from tensorpack.dataflow.remote import send_dataflow_zmq
from tensorpack.utils.serialize import MAX_BYTES

A, B = b"a" * 16, b"b" * 16
SECONDS = 60  # what is awaited comes at once; this is for machines that stand still
ANY_PORT = "tcp://127.0.0.1:*"


class Sending(threading.Thread):
    """Runs `send_dataflow_zmq` in a thread; `end` waits for it and raises its error."""

    def __init__(self, *arguments, **options):
        super().__init__(daemon=True)
        self._arguments, self._options = arguments, {"timeout": SECONDS, **options}
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


class Raw:
    """Makes bare sockets of a kind, connected to an address."""

    def __init__(self):
        import zmq

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


def free_address():
    """The address of a free port, for a sender that binds."""
    with contextlib.closing(Socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{taken.getsockname()[1]}"


def drain(router, sending):
    """Takes the rest of a sender that binds, and answers that all has been taken."""
    while sending.is_alive():
        if router.poll(20):
            peer, *parts = router.recv_multipart()
            kind = decode(b"".join(parts), MAX_BYTES).kind
            router.send_multipart([peer, Answer(kind, A, 1 << 40, MAX_BYTES).encode()])
    sending.end()


def wait_for_the_end(monitor):
    """Waits until a connection has failed, whenever in its life."""
    import zmq
    from zmq.utils.monitor import recv_monitor_message

    ends = {zmq.EVENT_DISCONNECTED, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL}
    ends |= {zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_AUTH}
    while True:
        assert monitor.poll(1000 * SECONDS)
        if recv_monitor_message(monitor)["event"] in ends:
            return
