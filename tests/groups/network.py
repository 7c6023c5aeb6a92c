"""A network between the processes of a group that can stall."""

import contextlib
import socket
import struct
import threading
import time

_CHUNK = 1 << 16
_RETRY_SECONDS = 0.05


class Network:
    """A context that leads the connections of one `Group` through this process.

    Each ordered pair of processes has a way of its own. It serves all connections of a pair.
    """

    def __init__(self):
        self._ways = {}

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        for way in self._ways.values():
            way.close()

    def way(self, source, target, address):
        """The address at which `source` reaches `target`, which listens at `address`."""
        if (source, target) not in self._ways:
            self._ways[source, target] = _Way(address)
        return self._ways[source, target].address

    def stall(self, *names):
        """Lets nothing through any more from or to these processes; connections stay open."""
        for way in self._of(names):
            way.gate.clear()

    def _of(self, names):
        return [way for pair, way in self._ways.items() if set(pair) & set(names)]


class _Way:
    """Accepts connections and passes on what comes."""

    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self.gate = threading.Event()
        self.gate.set()
        self._is_closed = False
        self._has_listened = False
        self._sockets = []
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = []
        self._run(self._accept)

    def close(self):
        self._is_closed = True
        for each in list(self._sockets):
            _reset(each)
        self.gate.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _run(self, target, *args):
        thread = threading.Thread(target=target, args=args, name="Way", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                self._own(near)
                self._run(self._serve, near)

    def _serve(self, near):
        far = self._connect()
        if far is None:
            _reset(near)
            return
        self._own(far)
        self._run(self._pass_on, far, near)
        self._pass_on(near, far)

    def _connect(self):
        """Connects to the target; waits for one that does not listen yet, but not once it did."""
        while True:
            self.gate.wait()
            if self._is_closed:
                return None
            try:
                far = socket.create_connection(self._target)
                self._has_listened = True
                return far
            except OSError:
                if self._has_listened:
                    return None
                time.sleep(_RETRY_SECONDS)

    def _own(self, connection):
        self._sockets.append(connection)
        if self._is_closed:
            _reset(connection)

    def _pass_on(self, source, target):
        with contextlib.suppress(OSError):
            for data in iter(lambda: source.recv(_CHUNK), b""):
                self.gate.wait()
                target.sendall(data)
            if not self._is_closed:
                target.shutdown(socket.SHUT_WR)


def _reset(connection):
    """Ends a connection so that the other side is told of an error."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RD)  # wakes the thread that reads, says nothing to the peer
    connection.close()
