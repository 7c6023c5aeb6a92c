"""Sockets of ZeroMQ: how they are made, waited for and closed; and the receiving end of a flow."""

import operator
import os
import threading
from contextlib import suppress
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from tensorpack.utils.optional import require
from tensorpack.utils.serialize import FrameError

from ..base import DataFlowTerminated
from .address import bind_file, parse_address
from .key import RemoteKey
from .message import DATA, PART_BYTES, Answer, Message, Senders, decode

_MAX_ANSWERS = 1000  # that may wait on either side
_ENVELOPE_BYTES = 1024  # what encryption may add to a part
_OPTIONS = {
    "linger": 0,  # unless Hub.close() says otherwise
    "handshake_ivl": 10000,  # milliseconds until a peer that has not shown its key is dropped
    # A peer that sends a larger part, also before it has shown its key, is disconnected.
    "maxmsgsize": PART_BYTES + _ENVELOPE_BYTES,
    # Heartbeats of ZeroMQ would end the connection to a slow receiver, which stops reading when
    # its buffer is full. The kernel answers for it.
    "tcp_keepalive": 1,
    "tcp_keepalive_idle": 60,
    "tcp_keepalive_intvl": 10,
    "tcp_keepalive_cnt": 6,
}


class Hub:
    """A ZeroMQ context and its sockets, all bound or all connected; peers need the key if given."""

    def __init__(self, key: Optional[RemoteKey], bind: bool) -> None:
        self._bind = bind
        self._sockets: List[Any] = []
        self._files: List[Any] = []  # paths of socket files, and what was there at first
        self._guard = None
        self._context = require("zmq").Context()
        if key is not None and bind:
            try:
                self._guard = key.start_guard(self._context)
            except BaseException:
                self._context.destroy(0)  # a socket of the guard, too
                raise

    def socket(
        self,
        kind: int,
        addr: str,
        attach: Callable[[Any, str], None],
        sndhwm: int = _MAX_ANSWERS,
        rcvhwm: int = _MAX_ANSWERS,
    ) -> Any:
        """Makes a socket, which `attach` binds or connects.

        So many messages of each peer may wait to be sent, or to be read.
        """
        socket = self._context.socket(kind)
        self._sockets.append(socket)
        for name, value in _OPTIONS.items():
            setattr(socket, name, value)
        # pyzmq does not take integers of numpy.
        socket.sndhwm, socket.rcvhwm = operator.index(sndhwm), operator.index(rcvhwm)
        attach(socket, addr)
        path = parse_address(addr, self._bind, keyed=True).path
        if self._bind and path:
            self._files.append((path, os.lstat(path)))
        return socket

    def pair(self) -> Any:
        """Makes two sockets that are connected to one another, within the process."""
        kind, name = require("zmq").PAIR, "inproc://pair"
        first, second = self._context.socket(kind), self._context.socket(kind)
        self._sockets += [first, second]
        first.bind(name)
        second.connect(name)
        return first, second

    def close(self, seconds: float = 0.0) -> None:
        """Closes everything; messages have so many seconds to leave."""
        for socket in self._sockets:
            socket.close(int(1000 * seconds))
        if self._guard is not None:
            self._guard.stop()
        self._context.term()
        for path, made in self._files:
            with suppress(OSError):
                if os.path.samestat(made, os.lstat(path)):  # not that of another program
                    os.unlink(path)


def attach(socket: Any, addr: str, bind: bool, key: Optional[RemoteKey]) -> None:
    """Binds a socket to an address that `parse_address` allows, or connects it."""
    address = parse_address(addr, bind, key is not None)
    socket.ipv6 = address.ipv6
    if key is not None:
        key.secure(socket, bind)
    zmq = require("zmq")
    try:
        if bind and address.path:
            bind_file(socket, address.path)
        else:
            (socket.bind if bind else socket.connect)(address.text)
    except zmq.ZMQError as error:
        raise OSError(
            error.errno,
            f"Cannot {'bind' if bind else 'connect'} to {addr}: {zmq.strerror(error.errno)}. "
            "Give another address, or end the program that uses this one.",
        ) from error


def _endpoint_of(socket: Any, addr: str) -> str:
    """Returns the address of a socket, with the port that was found for `*`."""
    if addr.startswith("ipc:"):
        return addr  # the socket has that from before its file was moved
    return socket.last_endpoint.rstrip(b"\0").decode("utf-8")


class RemoteReceiver:
    """ROUTER sockets that are read and answered by one thread at a time, and closed by any.

    `attach` binds or connects each socket. The hub is closed with them, also on an error.
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
        self._max_bytes = operator.index(max_bytes)
        self._id = os.urandom(16)
        self._lock = threading.Lock()  # held while the sockets are used
        self._end_lock = threading.Lock()
        self._turn = 0
        self.senders = senders
        self.closed = False
        self._addresses = ", ".join(addresses)
        try:
            self._waker, self._wake = hub.pair()
            self._sockets = [
                hub.socket(self._zmq.ROUTER, addr, attach, rcvhwm=hwm) for addr in addresses
            ]
            self.endpoints = [_endpoint_of(*pair) for pair in zip(self._sockets, addresses)]
        except BaseException:
            hub.close()
            raise
        self._poller = self._zmq.Poller()
        for socket in (self._wake, *self._sockets):
            self._poller.register(socket, self._zmq.POLLIN)

    def receive(self, seconds: Optional[float] = None) -> Tuple[int, Union[Message, FrameError]]:
        """Waits for a message and answers it; takes from all addresses in turn.

        Returns the index of its address, and the message, or what is wrong with it. Raises
        DataFlowTerminated if nothing came for so many seconds, or `close` was called.
        """
        with self._lock:
            while not self.closed:
                for _ in self._sockets:
                    self._turn = (self._turn + 1) % len(self._sockets)
                    message = self._receive_at(self._sockets[self._turn])
                    if message is not None:
                        return self._turn, message
                if not self._poller.poll(None if seconds is None else int(1000 * seconds)):
                    raise DataFlowTerminated(
                        f"Nothing came to {self._addresses} for {seconds} s. Of those that have "
                        f"sent datapoints, {len(self.senders.open)} have not said that there is no "
                        "more."
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

    def _receive_at(self, socket: Any) -> Union[None, Message, FrameError]:
        """Returns the next message of a socket and answers it; None if there is no message."""
        try:
            peer = socket.recv(self._zmq.NOBLOCK)
        except self._zmq.Again:
            return None
        try:
            data = self._read(socket, peer)
            message = decode(data, self._max_bytes)
            taken = self.senders.note(message)
        except FrameError as error:
            return error
        self._answer(socket, peer, Answer(message.kind, self._id, taken, self._max_bytes))
        return message

    def _read(self, socket: Any, peer: bytes) -> Any:
        """Returns the frame of a message. ZeroMQ has all of its parts already."""
        parts = [part.buffer for part in socket.recv_multipart(copy=False)]
        nbytes = sum(map(len, parts))
        if nbytes > self._max_bytes:
            self._answer(socket, peer, Answer(DATA, self._id, 0, self._max_bytes, nbytes))
            raise FrameError(f"A message of {nbytes} bytes; max_bytes={self._max_bytes}.")
        if len(parts) > max(1, -(-nbytes // PART_BYTES)):
            raise FrameError(f"A message of {nbytes} bytes in {len(parts)} parts.")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _answer(self, socket: Any, peer: bytes, answer: Answer) -> None:
        # A ROUTER drops what a peer does not read, so this never waits, and bounds the memory.
        with suppress(self._zmq.ZMQError):
            socket.send_multipart([peer, answer.encode()], self._zmq.NOBLOCK)
