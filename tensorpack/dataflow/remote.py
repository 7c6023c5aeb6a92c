"""Datapoints that come over a socket from other processes, on this machine or on others.

A message is its kind and the datapoint as `dumps` packs it, so reading it never runs code. Only
`_END` is answered, because ZeroMQ drops what waits in a socket file (`ipc://`) when its sender
closes it.
"""

import math
import os
import socket as socket_module
import threading
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, Callable, Iterator, List, Optional, Tuple

from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.checks import as_count
from tensorpack.utils.cluster import is_loopback
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import MAX_BYTES, FrameError, dumps, load_frame

from ._flow import ProcessLocal, call_optional, endless, length_or_none
from .base import DataFlow, DataFlowTerminated
from .repeat import RepeatedData

_DATA, _END = b"tp2 data", b"tp2 end"
_PART_BYTES = 1 << 16  # of a message with a key; of a peer without the key, no more is read
_POLL_MS = 100  # until a wait hears a signal, or that it was closed
_FAILURE_SECONDS = 60.0  # for a receiver to read that the flow has failed
_KEY_TITLE = "tensorpack remote key 1"


def send_dataflow_zmq(
    df: DataFlow,
    addr: str,
    hwm: int = 50,
    format: Optional[str] = None,
    bind: bool = False,
    print_interval: int = 100,
    *,
    passes: Optional[int] = None,
    key: Optional[str] = None,
    timeout: Optional[float] = None,
) -> None:
    """Sends the datapoints of a flow to a `RemoteDataZMQ`, or deals them out to several.

    It waits for a receiver that is away, or whose buffer is full; what was under way to one that is
    closed is lost. With `passes` it returns when a receiver has read the end of the data; other
    receivers need a `timeout`. If the flow fails, so does the pass of the receiver. The positions
    of 2017, `(df, addr, hwm, print_interval, format)`, are understood, too.

    Args:
      df: the flow; it is reset first and closed at the end.
      addr: such as `tcp://127.0.0.1:5555` or `ipc:///home/me/run/data`. One that leaves the
        machine needs a key.
      hwm: how many datapoints may wait on this side; 0 is no limit.
      format: of earlier years; it has no meaning.
      bind: whether to bind to the address; the other side connects to it, or the other way round.
      print_interval: the progress bar is drawn at most once for so many datapoints.
      passes: how often to go through the flow; None to repeat it forever.
      key: path of a file that `make_remote_key` wrote; the receiver needs the same.
      timeout: seconds of waiting until a `DataFlowTerminated` is raised; None for ever.
    """
    if isinstance(format, int):  # the order of 2017
        print_interval, format, bind = format, bind or None, False  # type: ignore[assignment]
    flow = RepeatedData(df, -1 if passes is None else passes)
    attach = partial(_attach, bind=bind, key=key)
    connection = _Connection("DEALER", attach, [addr], hwm, key, timeout)
    try:
        logger.info(f"Serving data to {addr} ...")
        flow.reset_state()
        total = length_or_none(flow)
        with get_tqdm(total=total, miniters=print_interval, desc="Sending") as bar:
            for datapoint in flow:
                connection.send(_DATA, datapoint)
                bar.update()
        connection.send(_END, None)
    except _TimedOut:
        raise
    except Exception as error:
        connection.seconds = min(connection.seconds, _FAILURE_SECONDS)
        with suppress(_TimedOut):  # the receiver is away
            connection.send(_END, f"its flow failed with {type(error).__name__}: {error}")
        raise
    finally:
        connection.close(linger=1000)
        flow.close()


class RemoteDataZMQ(DataFlow):
    """Yields the datapoints that one or several `send_dataflow_zmq` send, in the order they come.

    A pass ends when as many `senders` have said that there is no more; what comes after that is
    another pass. A sender that is killed says nothing: use a `timeout`. A `DataFlowTerminated` says
    that nothing came within it, that the flow of a sender has failed, or that `close` was called; a
    `ValueError` that a message is not from `send_dataflow_zmq`, or too large. It names the address
    of the peer, and another pass reads what follows.

    All passes share one connection: what one of them yields, the others do not. It is opened by
    `reset_state`, or by the first pass, and again after `close`, and in a forked process. No state
    is kept, because the data is made elsewhere.

    Without a key any program of this machine can send, to `ipc://` any program of the same user.
    """

    seeded = False  # the senders do not start again with this process

    def __init__(
        self,
        addr1: str,
        addr2: Optional[str] = None,
        hwm: int = 50,
        bind: bool = True,
        *,
        key: Optional[str] = None,
        timeout: Optional[float] = None,
        senders: int = 1,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """
        Args:
          addr1: as in `send_dataflow_zmq`; the port may be `*` for a free one, see `endpoints`.
          addr2: a second address, such as that of another network.
          hwm: how many datapoints of each sender may wait on this side.
          bind, key, timeout: as in `send_dataflow_zmq`.
          senders: a pass ends when so many senders have said that there is no more.
          max_bytes: how large the message of a datapoint may be.
        """
        self._addresses = [_check_address(addr, key) for addr in (addr1, addr2) if addr is not None]
        self._hwm, self._bind, self._key, self._timeout = hwm, bind, key, timeout
        self._senders = as_count(self, "senders", senders)
        self._max_bytes = as_count(self, "max_bytes", max_bytes)
        self._connection: ProcessLocal[_Connection] = ProcessLocal(_Connection)

    @property
    def endpoints(self) -> List[str]:
        """The addresses with their true ports; empty while there is no connection."""
        connection = self._connection.current()
        return [] if connection is None else connection.endpoints

    def __len__(self) -> int:
        raise endless(self)

    def __iter__(self) -> Iterator[Any]:
        return self._pass(self._connect())

    def reset_state(self) -> None:
        """Connects if this process has no connection; keeps what waits in one."""
        self._connect()

    def close(self) -> None:
        """Closes the connection, and ends a pass; what had come and was not yielded is lost."""
        call_optional(self._connection.take(), "close")

    def bind_or_connect(self, socket: Any, addr: str) -> None:
        """Binds a ZeroMQ socket of this flow to an address, or connects it."""
        _attach(socket, addr, self._bind, self._key)

    def _connect(self) -> "_Connection":
        options = self._addresses, self._hwm, self._key, self._timeout
        return self._connection.get("ROUTER", self.bind_or_connect, *options)

    def _pass(self, connection: "_Connection") -> Iterator[Any]:
        while True:
            kind, value = connection.receive(self._max_bytes)
            if kind == _DATA:
                yield value
                continue
            connection.ended = (connection.ended + 1) % self._senders
            if value is not None:
                raise DataFlowTerminated(f"A sender says: {value!s:.500}")
            if connection.ended == 0:
                return


class _TimedOut(DataFlowTerminated):
    """The other side is away, or the receiver has no room."""


class _Connection:
    """A ZeroMQ socket of one end; one thread at a time may use it, and any may close it."""

    ended = 0  # how many senders have said, in this pass, that there is no more

    def __init__(
        self,
        kind: str,
        attach: Callable[[Any, str], None],
        addresses: List[str],
        hwm: int,
        key: Optional[str],
        timeout: Optional[float],
    ) -> None:
        self.seconds = math.inf if timeout is None else timeout
        self._zmq = zmq = require("zmq")
        self._context, self._guard = zmq.Context(), None
        self._socket = socket = self._context.socket(getattr(zmq, kind))
        self._lock = threading.RLock()  # a signal handler may close it within a call
        self._closed = False
        self._part_bytes = 2 * MAX_BYTES if key is None else _PART_BYTES
        self.endpoints: List[str] = []
        try:
            if key is not None:  # where it binds, this thread refuses peers without the key
                public_key = _load_key(key)[2]
                allowed = SimpleNamespace(callback=lambda domain, public: public == public_key)
                self._guard = require("zmq.auth.thread").ThreadAuthenticator(self._context)
                self._guard.start()
                self._guard.configure_curve_callback("*", allowed)
            socket.sndhwm = socket.rcvhwm = int(hwm)
            socket.sndtimeo = socket.rcvtimeo = _POLL_MS
            socket.maxmsgsize = self._part_bytes + 1024  # what encryption may add
            socket.tcp_keepalive = 1
            for addr in addresses:
                attach(socket, addr)
                self.endpoints.append(socket.last_endpoint.rstrip(b"\0").decode("utf-8"))
        except BaseException:
            self.close()
            raise

    def close(self, linger: int = 0) -> None:
        """Ends a `receive` that is under way; what was sent has `linger` milliseconds to leave."""
        self._closed = True
        with self._lock:
            self._socket.close(linger)
            if self._guard is not None:
                self._guard.stop()
            self._context.destroy(0)

    def send(self, kind: bytes, value: Any) -> None:
        """Waits for room, and sends a message; after `_END` it waits for the answer as well."""
        frame = dumps(value)
        parts = range(0, len(frame), self._part_bytes)
        message = [kind, *(frame[i : i + self._part_bytes] for i in parts)]
        self._wait("was taken at", self._socket.send_multipart, message)
        if kind == _END:
            self._wait("was taken at", self._socket.recv)

    def receive(self, max_bytes: int) -> Tuple[bytes, Any]:
        """Waits for a message; returns its kind, and what was sent."""
        route, *frames = self._wait("came to", self._socket.recv_multipart, copy=False)
        kind, *parts = (frame.buffer for frame in frames)
        try:
            if kind not in (_DATA, _END):
                raise FrameError("It is not from a send_dataflow_zmq of this version.")
            value = load_frame(parts[0] if len(parts) == 1 else b"".join(parts), max_bytes)
        except FrameError as error:
            peer = frames[-1].get("Peer-Address")
            raise FrameError(f"A message of {peer} was not taken: {error}") from error
        if kind == _END:
            self._wait("was taken at", self._socket.send_multipart, [route, b""])
        return bytes(kind), value

    def _wait(self, what: str, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Calls again and again; one long call would not hear a signal just before it."""
        end, names = time.monotonic() + self.seconds, ", ".join(self.endpoints)
        with self._lock:
            while not self._closed:
                try:
                    return call(*args, **options)
                except self._zmq.Again as error:
                    if time.monotonic() > end:
                        raise _TimedOut(
                            f"Nothing {what} {names} for {self.seconds} s: start the other side, "
                            "or give a longer timeout."
                        ) from error
                except self._zmq.ZMQError:
                    if not self._closed:
                        raise
        raise DataFlowTerminated(f"The connection at {names} was closed.")


def _attach(socket: Any, addr: str, bind: bool, key: Optional[str]) -> None:
    addr = _check_address(addr, key)
    socket.ipv6 = "[" in addr
    if key is not None:
        keys = _load_key(key)
        if bind:
            socket.curve_server = True
        else:
            socket.curve_serverkey = keys[0]
        socket.curve_publickey, socket.curve_secretkey = keys[:2] if bind else keys[2:]
    kind, _, path = addr.partition("://")
    is_file = bind and kind == "ipc" and path[:1] not in "@*"
    if is_file:
        with socket_module.socket(socket_module.AF_UNIX) as probe:
            if probe.connect_ex(path) == 0:  # ZeroMQ would take it over
                raise FileExistsError(f"{path} is in use: give another address.")
    (socket.bind if bind else socket.connect)(addr)
    if is_file:
        os.chmod(path, 0o600)


def _check_address(addr: str, key: Optional[str]) -> str:
    """Returns an address for ZeroMQ; a ValueError if it leaves the machine without a key."""
    kind, _, rest = addr.partition("://")
    if kind not in ("tcp", "ipc"):
        raise ValueError(f"The address {addr!r} must be tcp://HOST:PORT or ipc://PATH.")
    if kind == "tcp" and key is None and not is_loopback(rest.rpartition(":")[0]):
        raise ValueError(
            f"{addr} needs a key, because others could read or send datapoints there: make one by "
            "tensorpack.dataflow.make_remote_key('remote.key'), copy the file to the other machine "
            "and give key='remote.key' on both. On one machine use tcp://127.0.0.1:PORT or ipc://."
        )
    return addr.replace("tcp://localhost:", "tcp://127.0.0.1:")  # sockets are bound to numbers


def make_remote_key(path: str) -> None:
    """Makes a key for `send_dataflow_zmq` and `RemoteDataZMQ`, in a new file for you alone.

    Copy the file to the other machine in a safe way, such as `scp`, and give its path as `key=` on
    both sides. Anyone who has it can send datapoints to you, and receive yours.
    """
    zmq = require("zmq")
    keys = [key.decode("ascii") for key in (*zmq.curve_keypair(), *zmq.curve_keypair())]
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("\n".join([_KEY_TITLE, *keys]) + "\n")


def _load_key(path: str) -> List[bytes]:
    """Returns two CURVE pairs, public and secret: of the end that binds, and of the other one."""
    with open(path, "rb") as file:
        title, *keys = file.read().splitlines() or [b""]
    if title != _KEY_TITLE.encode("ascii") or list(map(len, keys)) != [40] * 4:
        raise ValueError(f"{path} is not a key that make_remote_key() made.")
    return keys
