"""Both ends of a connection: what programs and `send_dataflow_zmq` send by, and what receives."""

import functools
import os
import threading
import time
from contextlib import suppress
from typing import Any, Callable, ContextManager, Dict, Optional, Sequence, Tuple, Union

from tensorpack.utils import logger
from tensorpack.utils.checks import as_count, as_positive
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import MAX_BYTES, FrameError

from ..base import DataFlowTerminated
from .guard import load_key, parse_address
from .hub import Hub, attach
from .message import DATA, END, PART_BYTES, SYNC, Answer, Message, Senders, decode, encode, split

_LAST_SECONDS = 1.0  # for what was sent to leave, where the sender fails or is interrupted
_MOST_SECONDS = 60.0  # for the receiver to read how the datapoints ended
_FIRST_PAUSE = 1.0  # seconds until the receiver is asked again; each pause is twice the one before
_MOST_CHARACTERS = 500  # of a reason; the receiver shows no more
_UNASKED_BYTES = 1 << 20  # a larger datapoint is sent only when the receiver has told its limit


class RemoteSender(ContextManager["RemoteSender"]):
    """Sends datapoints to a `RemoteDataZMQ` one by one, as a program makes them.

    For what is no flow, such as a simulator that waits for answers::

        with RemoteSender("tcp://127.0.0.1:5555") as sender:
            sender.send(datapoint)  # as often as needed
            sender.end()            # waits until all have been taken

    Without `end` or `fail` the receiver is not told that there is no more. Use it in one thread at
    a time.

    Attributes:
      count: how many datapoints were sent.
    """

    def __init__(
        self,
        addr: str,
        hwm: int = 50,
        *,
        bind: bool = False,
        key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> None:
        """Connects, or binds; does not wait for the receiver.

        The arguments, and what is raised, are as in `send_dataflow_zmq`.
        """
        hwm = as_count(self, "hwm", hwm)
        timeout = None if timeout is None else as_positive(self, "timeout", timeout)
        parse_address(addr, bind, key is not None)
        require("msgpack")
        self._zmq = require("zmq")
        self._addr, self._bind = addr, bind
        self._timeout = float("inf") if timeout is None else timeout
        self._id = os.urandom(16)
        self.count = 0
        self._taken: Dict[bytes, int] = {}  # id of a receiver -> datapoints since the last END
        self._settled = 0  # datapoints before the last END
        self._late = 0  # how many answers to earlier SYNCs may still come
        self._limit = MAX_BYTES
        self._answered = -1  # kind of the message that was answered last
        self._told = False  # END was sent, or nothing is taken, and no datapoint was sent since
        loaded = None if key is None else load_key(key)
        self._hub = Hub(loaded, bind)
        try:
            join = functools.partial(attach, bind=bind, key=loaded)
            self._socket = self._hub.socket(self._zmq.DEALER, addr, join, sndhwm=hwm)
        except BaseException:
            self._hub.close()
            raise

    def __exit__(self, *exc_info: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; what was sent has a second to leave."""
        self._hub.close(_LAST_SECONDS)

    def send(self, datapoint: Any) -> None:
        """Sends a datapoint; waits only where `hwm` of them wait already.

        A datapoint of more than a megabyte may be refused, so the first of them waits for the
        receiver. The errors are those of `send_dataflow_zmq`.
        """
        self._told = False
        try:
            frame = encode(Message(DATA, self._id, self.count, datapoint))
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"Datapoint {self.count} cannot be sent: {error}") from error
        if len(frame) > _UNASKED_BYTES and not self._taken:
            self._ask()
        if len(frame) > self._limit:
            self._refuse(len(frame))
        self._send(frame)
        self.count += 1
        while self._socket.get(self._zmq.EVENTS) & self._zmq.POLLIN:
            self._read()

    def end(self) -> None:
        """Waits until every datapoint has been taken, and tells the receiver that this was all.

        It waits for a minute at most for a receiver that has taken all, but does not read on.
        """
        self._told = False
        self._ask(lambda: bool(self._taken) and self._total >= self.count)
        while self._late and self._total < self.count:  # it may have been one of these
            self._late -= 1
            self._ask()
        if self._bind:  # other receivers, which were not asked, may have the rest
            self._wait(lambda: self._total >= self.count)
        if self._total < self.count:
            lost = (
                f"{self.count - self._total} of {self.count} datapoints sent to {self._addr} were "
                "lost: the connection broke, or a receiver was closed before it took them."
            )
            self.fail(lost)
            raise DataFlowTerminated(f"{lost} Send them again.")
        if not self._end(None):
            logger.warning(
                f"All {self.count} datapoints sent to {self._addr} have been taken, but the "
                f"receiver has not read on for {min(self._timeout, _MOST_SECONDS):g} s."
            )

    def fail(self, reason: str) -> None:
        """Tells the receiver why there is no more, for its pass to raise an error with that text.

        It waits for a minute at most, and does nothing if the receiver has been told of an end.
        """
        if not self._told:
            # Surrogates, as of odd file names, cannot be sent.
            told = reason[:_MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
            logger.error(f"Telling the receiver at {self._addr}: {told}")
            self._end(told)

    @property
    def _total(self) -> int:
        return self._settled + sum(self._taken.values())

    def _ask(self, enough: Callable[[], bool] = lambda: False) -> None:
        """Waits for the answer to a SYNC, which comes after those to all messages before it, or
        until it is not needed.
        """
        self._answered = -1
        self._send(encode(Message(SYNC, self._id, self.count)))
        self._wait(lambda: self._answered == SYNC or enough())
        self._late += self._answered != SYNC

    def _end(self, missing: Optional[str]) -> bool:
        """Sends END, and waits until a receiver whose buffer is full has read it, too; but for a
        minute at most. Returns whether it has.
        """
        self._told, self._answered = True, -1
        timeout, self._timeout = self._timeout, min(self._timeout, _MOST_SECONDS)
        try:
            self._send(encode(Message(END, self._id, self.count, missing)))
            self._wait(lambda: self._answered == END)
        except DataFlowTerminated:
            return False
        finally:
            self._timeout = timeout
        self._settled += self.count - self._total  # what was lost is not missed again
        return True

    def _refuse(self, nbytes: int) -> None:
        refusal = (
            f"a datapoint of {nbytes} bytes was not taken at {self._addr}, where the receiver "
            f"takes at most max_bytes={self._limit}"
        )
        self.fail(refusal)
        raise ValueError(
            f"Of {self.count} datapoints or the next one, {refusal}. Give the receiver a larger "
            "max_bytes, or send smaller datapoints."
        )

    def _send(self, frame: bytes) -> None:
        if self._socket.closed:
            raise RuntimeError(f"The connection to {self._addr} was closed: make another one.")
        parts = split(frame)
        self._socket.sndtimeo = -1 if self._timeout == float("inf") else int(1000 * self._timeout)
        try:
            for part in parts[:-1]:
                self._socket.send(part, self._zmq.SNDMORE)
            self._socket.send(parts[-1])
        except self._zmq.Again as error:
            raise self._nothing_taken() from error

    def _wait(self, condition: Callable[[], bool]) -> None:
        """Reads answers until the condition holds.

        Asks again in longer and longer intervals, because a receiver that was just closed has not
        read what it was asked.
        """
        pause, since = _FIRST_PAUSE, time.monotonic()
        while not condition():
            left = since + self._timeout - time.monotonic()
            if self._socket.poll(max(0, int(1000 * min(pause, left)))):
                before = self._total
                self._read()
                since = since if self._total == before else time.monotonic()
            elif left <= pause:
                raise self._nothing_taken()
            else:
                pause *= 2
                self._late += 1
                with suppress(self._zmq.Again):
                    question = encode(Message(SYNC, self._id, self.count))
                    self._socket.send(question, self._zmq.NOBLOCK)

    def _read(self) -> None:
        answer = Answer.decode(self._socket.recv())
        if answer is None:
            return
        self._taken[answer.receiver] = max(self._taken.get(answer.receiver, 0), answer.taken)
        self._limit = min(self._limit, answer.max_bytes)
        self._answered = answer.kind
        if answer.kind == END:  # it counts from there
            self._settled += self._taken.pop(answer.receiver)
        if answer.refused and not self._told:
            self._refuse(answer.refused)

    def _nothing_taken(self) -> DataFlowTerminated:
        self._told = True
        return DataFlowTerminated(
            f"Nothing was taken at {self._addr} for {self._timeout} s: {self._total} of "
            f"{self.count} datapoints have been taken, the others may be lost. Start the receiver, "
            "or give a longer timeout."
        )


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
        self._hub, self._max_bytes = hub, max_bytes
        self._id = os.urandom(16)
        self._lock = threading.Lock()  # held while the sockets are used
        self._end_lock = threading.Lock()
        self._turn = 0
        self.senders, self.closed = senders, False
        self._addresses = ", ".join(addresses)
        try:
            self._waker, self._wake = hub.pair()
            self._sockets = [
                hub.socket(self._zmq.ROUTER, addr, attach, rcvhwm=hwm) for addr in addresses
            ]
            found = [each.last_endpoint.rstrip(b"\0").decode("utf-8") for each in self._sockets]
            pairs = zip(addresses, found)  # a socket file was moved after it was bound
            self.endpoints = [old if old.startswith("ipc:") else new for old, new in pairs]
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
            message = decode(self._read(socket, peer), self._max_bytes)
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
