"""Datapoints that come over a socket from other processes, on this machine or on others.

A message is the id of its sender, its kind, and the datapoint as `dumps` packs it, so reading it
never runs code. Only `_END` is answered, because ZeroMQ drops what waits in a socket file (`ipc://`)
when its sender closes it.
"""

import math
import os
import socket as socket_module
import stat
import threading
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, Callable, Iterator, List, Optional, Sequence, Set, Tuple

from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.checks import as_count, as_positive
from tensorpack.utils.cluster import is_loopback
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import MAX_BYTES, FrameError, dumps, load_frame

from ._flow import ProcessLocal, call_optional
from ._length import endless, length_or_none
from .base import DataFlow, DataFlowTerminated
from .repeat import RepeatedData

_DATA, _END = b"tp1 data", b"tp1 end"
_PART_BYTES = 1 << 16  # of a message with a key; of a peer without the key, no more is read
_POLL_MS = 100  # until a wait hears a signal, or that it was closed
_LAST_MS = 60000  # for a receiver to read that the flow has failed
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
      hwm: how many datapoints may wait on this side.
      format: None; 'zmq_op' and 'zmq_ops', of earlier years, mean the same.
      bind: whether to bind to the address; the other side connects to it, or the other way round.
      print_interval: the progress bar is drawn at most once for so many datapoints.
      passes: how often to go through the flow; None to repeat it forever.
      key: path of a file that `make_remote_key` wrote; the receiver needs the same.
      timeout: seconds of waiting until a `DataFlowTerminated` is raised; None for ever.
    """
    if isinstance(format, int):  # the order of 2017
        print_interval, format, bind = format, bind or None, False  # type: ignore[assignment]
    if format not in (None, "zmq_op", "zmq_ops"):
        raise ValueError(f"There is no format {format!r} here: leave it out.")
    name, flow = "send_dataflow_zmq", RepeatedData(df, -1 if passes is None else passes)
    hwm = as_count(name, "hwm", hwm)
    wait = -1 if timeout is None else int(1000 * as_positive(name, "timeout", timeout))
    connection = _Connection("DEALER", [addr], hwm, key, partial(_attach, bind=bind, key=key))
    try:
        logger.info(f"Serving data to {addr} ...")
        flow.reset_state()
        total = length_or_none(flow)
        with get_tqdm(total=total, miniters=print_interval, desc="Sending") as bar:
            for number, datapoint in enumerate(flow):
                try:
                    frame = dumps(datapoint)
                except (TypeError, ValueError) as error:
                    kind = TypeError if isinstance(error, TypeError) else ValueError
                    raise kind(f"Datapoint {number} cannot be sent: {error}") from error
                connection.send(_DATA, frame, wait)
                bar.update()
        connection.send(_END, dumps(None), wait)
    except _NothingTaken:
        raise
    except Exception as error:
        text = f"its flow failed with {type(error).__name__}: {error}"
        failure = text.encode("utf-8", "replace").decode("utf-8")  # without surrogates
        logger.error(f"Telling the receiver at {addr}: {failure}")
        frame = dumps(failure)
        with suppress(_NothingTaken):  # the receiver is away
            connection.send(_END, frame, _LAST_MS if wait < 0 else min(wait, _LAST_MS))
        raise
    finally:
        connection.close(linger=1000)
        flow.close()


class RemoteDataZMQ(DataFlow):
    """Yields the datapoints that one or several `send_dataflow_zmq` send, in the order they come.

    A pass ends when all senders of a datapoint have said that there is no more; what comes after
    that is another pass. A sender that is killed says nothing: use a `timeout`.

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
          senders: a pass does not end before so many senders have said that there is no more.
          max_bytes: how large the message of a datapoint may be.
        """
        self._addresses = [_checked(addr, key) for addr in (addr1, addr2) if addr is not None]
        self._hwm, self._bind, self._key = as_count(self, "hwm", hwm), bind, key
        self._timeout = None if timeout is None else as_positive(self, "timeout", timeout)
        self._senders = as_count(self, "senders", senders)
        self._max_bytes = as_count(self, "max_bytes", max_bytes)
        self._connection: ProcessLocal[_Connection] = ProcessLocal(_connect)

    @property
    def endpoints(self) -> List[str]:
        """The addresses with their true ports; empty while there is no connection."""
        connection = self._connection.current()
        return [] if connection is None else connection.endpoints

    def __len__(self) -> int:
        raise endless(self)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises:
          DataFlowTerminated: `close` was called, nothing came within the timeout, or the flow of a
            sender has failed.
          FrameError: a message is not from `send_dataflow_zmq`, or larger than `max_bytes`; a
            `ValueError`, which names the address of the peer. Another pass reads what follows.
        """
        return self._pass(self._connection.get(self))

    def reset_state(self) -> None:
        """Connects if this process has no connection; keeps what waits in one."""
        self._connection.get(self)

    def close(self) -> None:
        """Closes the connection, and ends a pass; what had come and was not yielded is lost."""
        call_optional(self._connection.take(), "close")

    def bind_or_connect(self, socket: Any, addr: str) -> None:
        """Binds a ZeroMQ socket of this flow to an address, or connects it."""
        _attach(socket, addr, self._bind, self._key)

    def _pass(self, connection: "_Connection") -> Iterator[Any]:
        while True:
            sender, kind, value = connection.receive(self._timeout, self._max_bytes)
            if kind == _DATA:
                connection.open.add(sender)
                yield value
                continue
            connection.open.discard(sender)
            connection.ended += 1
            over = not connection.open and connection.ended >= self._senders
            if over:
                connection.ended = 0
            if value is not None:
                raise DataFlowTerminated(f"A sender says: {value!s:.500}")
            if over:
                return


def _connect(flow: RemoteDataZMQ) -> "_Connection":
    return _Connection("ROUTER", flow._addresses, flow._hwm, flow._key, flow.bind_or_connect)


class _Connection:
    """A ZeroMQ socket of one end; one thread at a time may use it, and any may close it."""

    def __init__(
        self,
        kind: str,
        addresses: Sequence[str],
        hwm: int,
        key: Optional[str],
        attach: Callable[[Any, str], None],
    ) -> None:
        zmq = require("zmq")
        self._zmq, self._context, self._guard = zmq, zmq.Context(), None
        self._socket = self._context.socket(getattr(zmq, kind))
        # Reentrant: a signal handler may close it within a call.
        self._lock, self._closed, self._id = threading.RLock(), False, os.urandom(16)
        self._part_bytes = 2 * MAX_BYTES if key is None else _PART_BYTES
        self.open: Set[bytes] = set()  # senders of a datapoint that have not ended
        self.ended = 0  # senders that have
        self.endpoints: List[str] = []
        try:
            if key is not None:  # where it binds, this thread refuses peers without the key
                public_key = _load_key(key)[2]
                allowed = SimpleNamespace(callback=lambda domain, public: public == public_key)
                self._guard = require("zmq.auth.thread").ThreadAuthenticator(self._context)
                self._guard.start()
                self._guard.configure_curve_callback("*", allowed)
            self._socket.sndhwm = self._socket.rcvhwm = hwm
            self._socket.maxmsgsize = self._part_bytes + 1024  # what encryption may add
            self._socket.tcp_keepalive = 1
            for addr in addresses:
                attach(self._socket, addr)
                self.endpoints.append(self._socket.last_endpoint.rstrip(b"\0").decode("utf-8"))
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

    def send(self, kind: bytes, frame: bytes, wait: int) -> None:
        """Sends a message; waits `wait` milliseconds, or for ever if -1, also for an answer."""
        parts = range(0, len(frame), self._part_bytes)
        message = [self._id, kind, *(frame[i : i + self._part_bytes] for i in parts)]
        self._until(self._zmq.POLLOUT, wait, self._socket.send_multipart, message)
        if kind == _END:
            self._until(self._zmq.POLLIN, wait, self._socket.recv)

    def _until(self, event: int, wait: int, call: Callable[..., Any], *args: Any) -> None:
        """Calls again and again; a call that blocked would not hear a signal just before it."""
        end = time.monotonic() + (wait / 1000 if wait >= 0 else math.inf)
        while True:
            try:
                call(*args, flags=self._zmq.NOBLOCK)
                return
            except self._zmq.Again as error:
                if time.monotonic() > end:
                    raise _NothingTaken(
                        f"Nothing was taken at {self.endpoints[0]} for {wait / 1000} s: start the "
                        "receiver, or give a longer timeout."
                    ) from error
            self._socket.poll(_POLL_MS, event)

    def receive(self, timeout: Optional[float], max_bytes: int) -> Tuple[bytes, bytes, Any]:
        """Waits for a message; returns the id of its sender, its kind, and what was sent."""
        names, since = ", ".join(self.endpoints), time.monotonic()
        with self._lock:
            while not self._closed:
                try:
                    ready = self._socket.poll(_POLL_MS)
                except self._zmq.ZMQError:
                    if self._closed:
                        break
                    raise
                if ready and not self._closed:
                    peer, *frames = self._socket.recv_multipart(copy=False)
                    message = _read(frames, max_bytes)
                    if message[1] == _END:
                        self._socket.send_multipart([peer, b""])
                    return message
                if timeout is not None and time.monotonic() - since > timeout:
                    raise DataFlowTerminated(
                        f"Nothing came to {names} for {timeout} s. Of those that have sent "
                        f"datapoints, {len(self.open)} have not said that there is no more."
                    )
        raise DataFlowTerminated(f"The connection at {names} was closed.")


class _NothingTaken(DataFlowTerminated):
    """A receiver is away, or has no room."""


def _read(frames: List[Any], max_bytes: int) -> Tuple[bytes, bytes, Any]:
    """Returns the id of a sender, the kind of its message, and what it sent."""
    head, parts = [bytes(frame) for frame in frames[:2]], [frame.buffer for frame in frames[2:]]
    try:
        if len(head) < 2 or head[1] not in (_DATA, _END):
            raise FrameError("It is not from a send_dataflow_zmq of this version.")
        frame = parts[0] if len(parts) == 1 else b"".join(parts)
        return head[0], head[1], load_frame(frame, max_bytes)
    except FrameError as error:
        peer = frames[-1].get("Peer-Address")
        raise FrameError(f"A message of {peer} was not taken: {error}") from error


def _attach(socket: Any, addr: str, bind: bool, key: Optional[str]) -> None:
    addr = _checked(addr, key)
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
        _check_free(path)
    (socket.bind if bind else socket.connect)(addr)
    if is_file:
        os.chmod(path, 0o600)


def _check_free(path: str) -> None:
    """Raises FileExistsError for what ZeroMQ would remove: a file, or a socket that is in use."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise FileExistsError(f"{path} is a file and no socket: give another address.")
    with socket_module.socket(socket_module.AF_UNIX) as probe:
        if probe.connect_ex(path) == 0:
            raise FileExistsError(f"A program listens at {path}: end it, or give another address.")


def _checked(addr: str, key: Optional[str]) -> str:
    """Returns an address for ZeroMQ; a ValueError if it leaves the machine without a key."""
    kind, _, rest = addr.partition("://")
    if kind not in ("tcp", "ipc"):
        raise ValueError(f"The address {addr!r} must be tcp://HOST:PORT or ipc://PATH.")
    if kind == "tcp" and key is None and not is_loopback(rest.rpartition(":")[0]):
        raise ValueError(
            f"{addr} needs a key, because every machine on the way could read the datapoints or "
            "send others. Make one by tensorpack.dataflow.make_remote_key('remote.key'), copy the "
            "file to the other machine, and give key='remote.key' on both sides. Or stay on this "
            "machine: tcp://127.0.0.1:PORT or ipc://PATH."
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
