"""Sockets of ZeroMQ: how they are set up, waited for, and closed."""

import operator
import os
import threading
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from tensorpack.utils.optional import require

from ..base import DataFlowTerminated
from .address import parse_address, prepare_ipc
from .key import RemoteKey
from .message import Senders

__all__ = ["Hub", "Part", "Receiver", "attach", "endpoint_of"]

_ENVELOPE_BYTES = 1024  # what encryption may add to a message
_OPTIONS = {
    "linger": 0,  # unless Hub.close() says otherwise
    "handshake_ivl": 10000,  # milliseconds until a peer that says nothing is dropped
    # Heartbeats of ZeroMQ would end the connection to a slow receiver, which reads no more
    # when it has enough. The kernel answers for it.
    "tcp_keepalive": 1,
    "tcp_keepalive_idle": 60,
    "tcp_keepalive_intvl": 10,
    "tcp_keepalive_cnt": 6,
}


class Hub:
    """A ZeroMQ context and its sockets.

    Args:
      key: what peers have to show, or None.
      bind: whether the sockets will be bound.
    """

    def __init__(self, key: Optional[RemoteKey], bind: bool) -> None:
        self._sockets: List[Any] = []
        self._guard = None
        self._context = require("zmq").Context()
        if key is not None and bind:
            try:
                self._guard = key.start_guard(self._context)
            except BaseException:
                self.close()
                raise

    def socket(self, kind: int, hwm: int, max_bytes: int) -> Any:
        """Makes a socket; see `attach`.

        Args:
          kind: such as `zmq.PULL`.
          hwm: how many messages wait at most, for each peer.
          max_bytes: a peer that sends a larger message is cut off.
        """
        socket = self._context.socket(kind)
        self._sockets.append(socket)
        for name, value in _OPTIONS.items():
            setattr(socket, name, value)
        # pyzmq takes no integers of numpy.
        socket.sndhwm = socket.rcvhwm = operator.index(hwm)
        socket.maxmsgsize = operator.index(max_bytes) + _ENVELOPE_BYTES
        return socket

    def pair(self) -> Any:
        """Makes two sockets that are connected to one another, within the process."""
        kind, name = require("zmq").PAIR, "inproc://pair"
        first, second = self._context.socket(kind), self._context.socket(kind)
        self._sockets += [first, second]
        first.bind(name)
        second.connect(name)
        return first, second

    def close(self, seconds: Optional[float] = 0.0) -> None:
        """Closes everything.

        Args:
          seconds: how long to wait until what was sent has left; None as long as it takes.
        """
        linger = -1 if seconds is None else int(1000 * seconds)
        for socket in self._sockets:
            socket.close(linger)
        if self._guard is not None:
            self._guard.stop()
        self._context.term()


def attach(socket: Any, addr: str, bind: bool, key: Optional[RemoteKey]) -> None:
    """Binds a socket to an address, or connects it.

    Raises:
      OSError: that is not possible.
      ValueError: it is not allowed, see `parse_address`.
    """
    address = parse_address(addr, bind, key is not None)
    socket.ipv6 = address.ipv6
    if key is not None:
        key.secure(socket, bind)
    if bind and address.path:
        prepare_ipc(address.path)
    zmq = require("zmq")
    try:
        (socket.bind if bind else socket.connect)(address.text)
    except zmq.ZMQError as error:
        raise OSError(
            error.errno,
            f"Cannot {'bind' if bind else 'connect'} to {addr}: {zmq.strerror(error.errno)}. "
            "Give another address, or end the program that uses this one.",
        ) from error
    if bind and address.path:
        os.chmod(address.path, 0o600)


def endpoint_of(socket: Any) -> str:
    """The address of a socket, with the port that was found for `*`."""
    return socket.last_endpoint.rstrip(b"\0").decode("utf-8")


class Part(NamedTuple):
    """A message as it came.

    Attributes:
      address: the index of the address that it came to.
      data: its first part, as a buffer.
      parts: how many parts it has.
    """

    address: int
    data: Any
    parts: int


class Receiver:
    """PULL sockets that are read by one thread at a time, and closed by any.

    Args:
      addresses: one for each socket.
      hwm: as in `Hub.socket`.
      max_bytes: as in `Hub.socket`.
      hub: makes the sockets; is closed with them, also if this fails.
      attach: called with each socket and its address, binds or connects it.
      senders: for those who read, to note who sends.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        hwm: int,
        max_bytes: int,
        hub: Hub,
        attach: Callable[[Any, str], None],
        senders: Senders,
    ) -> None:
        self._zmq = require("zmq")
        self._hub = hub
        self._lock = threading.Lock()  # held by whoever uses the sockets
        self._end_lock = threading.Lock()
        self._turn = 0
        self.senders = senders
        self.closed = False
        self.pid = os.getpid()
        self._addresses = ", ".join(addresses)
        try:
            self._waker, self._wake = hub.pair()
            self._sockets = [hub.socket(self._zmq.PULL, hwm, max_bytes) for _ in addresses]
            for socket, addr in zip(self._sockets, addresses):
                attach(socket, addr)
            self.endpoints = [endpoint_of(socket) for socket in self._sockets]
        except BaseException:
            hub.close()
            raise
        self._poller = self._zmq.Poller()
        for socket in (self._wake, *self._sockets):
            self._poller.register(socket, self._zmq.POLLIN)

    def receive(self, seconds: Optional[float] = None) -> Part:
        """Waits for a message; takes from all addresses in turn.

        Args:
          seconds: how long to wait; None as long as it takes.

        Raises:
          DataFlowTerminated: nothing came for so long, or `close` was called.
        """
        with self._lock:
            while not self.closed:
                for _ in self._sockets:
                    self._turn = (self._turn + 1) % len(self._sockets)
                    part = self._part(self._turn)
                    if part is not None:
                        return part
                if not self._poller.poll(None if seconds is None else int(1000 * seconds)):
                    raise DataFlowTerminated(
                        f"Nothing came to {self._addresses} for {seconds} s. Of those that had "
                        f"sent something, {self.senders.open} have not said that there is no more."
                    )
        raise DataFlowTerminated(f"The connection at {self._addresses} was closed.")

    def close(self) -> None:
        """Ends a `receive` that is under way, and closes the sockets; may be called again."""
        with self._end_lock:
            if self.closed:
                return
            self.closed = True
            self._waker.send(b"")
            with self._lock:
                self._hub.close()

    def _part(self, index: int) -> Optional[Part]:
        """The next message of a socket, if there is one."""
        socket = self._sockets[index]
        try:
            first = frame = socket.recv(self._zmq.NOBLOCK, copy=False)
        except self._zmq.Again:
            return None
        count = 1
        while frame.more:  # they are all there: messages come as a whole
            frame = socket.recv(copy=False)
            count += 1
        return Part(index, first.buffer, count)
