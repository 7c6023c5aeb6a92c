"""Sockets of ZeroMQ: how they are made, bound or connected, and closed."""

import os
from contextlib import suppress
from typing import Any, Callable, List, Optional

from tensorpack.utils.optional import require

from .guard import RemoteKey, bind_file, parse_address
from .message import PART_BYTES

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
        self._guard: Any = None
        self._context = require("zmq").Context()
        if key is not None and bind:
            # A thread that refuses peers without the clients' key, before sockets are bound.
            self._guard = require("zmq.auth.thread").ThreadAuthenticator(self._context)
            try:
                self._guard.start()
                self._guard.configure_curve_callback("*", key)
            except BaseException:
                self._guard.stop()
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
        socket.sndhwm, socket.rcvhwm = sndhwm, rcvhwm
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
