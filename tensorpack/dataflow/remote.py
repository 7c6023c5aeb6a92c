"""A flow whose datapoints come over a socket from other processes, here or on other machines.

The programs that make the data call `send_dataflow_zmq`, and the one that uses it iterates a
`RemoteDataZMQ`. Reading what comes never runs code. Without a key both stay on this machine.
"""

import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.checks import check_integers
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import MAX_BYTES, FrameError

from ._length import endless, length_or_none
from ._remote.address import Address, parse_address
from ._remote.key import load_key, make_remote_key
from ._remote.message import DATA, Message, Senders, decode
from ._remote.sender import Sender
from ._remote.socket import Hub, Part, Receiver, attach
from .base import DataFlow
from .repeat import RepeatedData

__all__ = ["RemoteDataZMQ", "make_remote_key", "send_dataflow_zmq"]

_SEND = "send_dataflow_zmq"
_LOG_EVERY = 1000  # malformed messages


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
    """Sends the datapoints of a flow to a `RemoteDataZMQ`; goes through the flow for ever.

    It waits for the receiver, and whenever that has enough. A receiver that is started again gets
    what was not under way. Ctrl-C ends it: what was sent has a second to leave, and the flow is
    closed. Several senders may send to one receiver. If it is the sender that binds, its datapoints
    are dealt out to all receivers that connect, and only one of them hears that there is no more:
    the others need a `timeout`.

    The positions of 2017, `(df, addr, hwm, print_interval, format)`, are understood too.

    Args:
      df: the flow; it is reset first and closed at the end.
      addr: such as `tcp://127.0.0.1:5555` or `ipc:///home/me/run/data`. One that leaves the
        machine needs a key.
      hwm: how many datapoints may wait on this side.
      format: None; there is one format.
      bind: whether to bind to the address and not to connect to it. The other side does the other.
      print_interval: the progress bar is drawn after so many datapoints at the earliest.
      passes: how often to go through the flow. After them the receiver, or one of several, is told
        that there is no more, and the function returns when all has left. None for ever. Not over
        `ipc://`, where what the receiver has not read yet would be lost when the sender ends.
      key: path of a file that `make_remote_key` wrote; the receiver needs the same.
      timeout: for how many seconds nobody may take a datapoint; and, behind the last of `passes`,
        how many seconds there are in all for what still waits then, which may be as many datapoints
        as `hwm` here. What was not taken is lost. None to wait as long as it takes.

    Raises:
      DataFlowTerminated: nobody took a datapoint within the timeout, or not all of them were taken
        within that time of the end.
      ImportError: pyzmq or msgpack is not installed.
      OSError: the address cannot be bound, or the key not be read.
      TypeError: there is something in a datapoint that cannot be sent; says where. Or `df` is no
        flow, or an argument of a wrong type.
      ValueError: an argument is out of range, the address leaves the machine without a key, or
        `passes` are given for `ipc://`.
    """
    format, bind, print_interval = _either_order(format, bind, print_interval)
    _check_format(format)
    passes_or_none = 0 if passes is None else passes
    check_integers(_SEND, hwm=hwm, passes=passes_or_none)
    _check_positive(hwm=hwm, print_interval=print_interval, passes=passes, timeout=timeout)
    _check_end(parse_address(addr, bind, key is not None), passes)
    _check_flow(df)
    flow = RepeatedData(df, -1 if passes is None else passes)
    require("msgpack")
    with Sender(addr, hwm, bind, key, timeout) as sender:
        logger.info(f"Serving data to {addr} ...")
        try:
            _send_all(flow, sender, print_interval)
        except KeyboardInterrupt:
            logger.warning(f"Interrupted after {sender.count} datapoints were sent to {addr}.")
            raise
        finally:
            flow.close()


def _send_all(flow: RepeatedData, sender: Sender, print_interval: int) -> None:
    flow.reset_state()
    sender.hello()
    with get_tqdm(total=length_or_none(flow), miniters=print_interval) as bar:
        for datapoint in flow:
            sender.send(datapoint)
            bar.update()
    sender.end()


class RemoteDataZMQ(DataFlow):
    """Yields the datapoints that one or several `send_dataflow_zmq` send, in the order they come.

    A pass has no end, unless senders go through their flows a given number of times: it is over
    when all that have sent anything have said that there is no more. What follows is another pass.
    A sender that is killed says nothing, and the pass goes on with the others, and with one that
    takes its place; `timeout` is for those who do not want to wait for it.

    All passes share one connection: what one of them yields, the others do not. It is opened by
    `reset_state`, or by the first pass, stays open between passes, and is opened anew after
    `close`, and in a process that was forked. No state is kept: the data is made elsewhere.

    A message that is not from `send_dataflow_zmq` is dropped, counted and logged; too many of them
    are an error.

    Attributes:
      cnt1: how many datapoints came to the first address.
      cnt2: how many came to the second one.
      malformed: how many messages were dropped.
    """

    _receiver: Optional[Receiver] = None

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
        max_errors: int = 100,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """
        Args:
          addr1: where the datapoints come to, as in `send_dataflow_zmq`. The port may be `*` for
            any that is free, see `endpoints`.
          addr2: a second address, such as that of another network; both are read in turn.
          hwm: how many datapoints of each sender may wait on this side.
          bind: whether to bind to the addresses and not to connect to them.
          key: path of a file that `make_remote_key` wrote; the senders need the same.
          timeout: for how many seconds nothing may come. None to wait as long as it takes. Where
            several receivers connect to one sender, only one of them hears its end, and the others
            need this.
          senders: a pass is not over before so many senders have said that there is no more.
          max_errors: how many malformed messages are dropped before there is an error.
          max_bytes: how large a message may be. Whoever sends a larger one is cut off.

        Raises:
          OSError: the key cannot be read.
          TypeError: an address is no string, or a number has a wrong type.
          ValueError: an argument is out of range, or an address leaves the machine without a key.
        """
        check_integers(self, hwm=hwm, max_bytes=max_bytes)
        _check_positive(hwm=hwm, timeout=timeout, senders=senders, max_bytes=max_bytes)
        if max_errors < 0:
            raise ValueError(f"max_errors is a count of messages, but got {max_errors}.")
        if key is not None:
            load_key(key)  # what is wrong with it is said here, and not in the middle of a run
        self._addresses = [addr1] if addr2 is None else [addr1, addr2]
        for addr in self._addresses:
            parse_address(addr, bind, key is not None)
        self._hwm, self._bind, self._key, self._timeout = hwm, bind, key, timeout
        self._least, self._max_errors, self._max_bytes = senders, max_errors, max_bytes
        self._inherited: List[Receiver] = []
        self.cnt1 = self.cnt2 = self.malformed = 0

    @property
    def endpoints(self) -> List[str]:
        """The addresses with their true ports; empty while there is no connection."""
        return [] if self._receiver is None else list(self._receiver.endpoints)

    @property
    def seeded(self) -> bool:
        """False: the senders do not begin again with us."""
        return False

    def __len__(self) -> int:
        """Never returns.

        Raises:
          UnknownLength: the senders decide how much there is.
        """
        raise endless(self)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          DataFlowTerminated: `close` was called, or nothing came within the timeout.
          FrameError: there were more malformed messages than allowed; a `ValueError`.

        Raises:
          ImportError: pyzmq or msgpack is not installed.
          OSError: an address cannot be bound, or the key not be read.
        """
        return self._pass(self._connected())

    def reset_state(self) -> None:
        """Connects, if this process has no connection yet; else what waits in it stays there."""
        self._connected()

    def close(self) -> None:
        """Closes the connection. What had come and was not yielded is lost."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None and receiver.pid == os.getpid():
            receiver.close()

    def bind_or_connect(self, socket: Any, addr: str) -> None:
        """Binds a ZeroMQ socket of this flow to an address, or connects it, as the flow is made.

        Raises:
          OSError: that is not possible, or the key cannot be read.
        """
        attach(socket, addr, self._bind, self._loaded_key())

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_receiver": None, "_inherited": []}

    def _loaded_key(self) -> Any:
        return None if self._key is None else load_key(self._key)

    def _connected(self) -> Receiver:
        receiver = self._receiver
        if receiver is not None and receiver.pid != os.getpid():
            # It is the parent's. Kept, for the end of such an object is not free of side effects.
            self._inherited.append(receiver)
            receiver = None
        if receiver is None or receiver.closed:
            require("msgpack")
            hub = Hub(self._loaded_key(), self._bind)
            receiver = self._receiver = Receiver(
                self._addresses,
                self._hwm,
                self._max_bytes,
                hub,
                self.bind_or_connect,
                Senders(self._least),
            )
        return receiver

    def _pass(self, receiver: Receiver) -> Iterator[Any]:
        while True:
            part = receiver.receive(self._timeout)
            message = self._message(part, receiver.senders)
            if message is None:
                continue
            if message.kind == DATA:
                self._count(part.address)
                yield message.datapoint
            elif receiver.senders.take_end():
                return

    def _message(self, part: Part, senders: Senders) -> Optional[Message]:
        """Reads a message; None if there is something wrong with it."""
        try:
            if part.parts != 1:
                raise FrameError(f"A message of {part.parts} parts, and each has one.")
            message = decode(part.data, self._max_bytes)
            senders.note(message)
            return message
        except FrameError as error:
            self._drop(self._addresses[part.address], error)
            return None

    def _drop(self, addr: str, error: FrameError) -> None:
        self.malformed += 1
        if self.malformed > self._max_errors:
            raise FrameError(
                f"{self.malformed} malformed messages came, the last one to {addr}, and "
                f"max_errors={self._max_errors} are allowed: {error}"
            ) from error
        if self.malformed % _LOG_EVERY == 1:
            logger.warning(
                f"Dropped a malformed message that came to {addr} ({self.malformed} so far): "
                f"{error}"
            )

    def _count(self, index: int) -> None:
        if index == 0:
            self.cnt1 += 1
        else:
            self.cnt2 += 1


def _either_order(format: Any, bind: Any, print_interval: int) -> Tuple[Any, bool, int]:
    """Sorts arguments that came in the order of 2017: a number first, then the format."""
    if isinstance(format, int) and not isinstance(format, bool):
        return (None if bind is False else bind), False, format
    if not isinstance(bind, bool):
        raise TypeError(f"bind is True or False, but got {bind!r}.")
    return format, bind, print_interval


def _check_format(format: Any) -> None:
    if format is not None:
        raise ValueError(
            f"There is no format {format!r} here: leave it out. 'zmq_ops' was for receivers inside "
            "of TensorFlow graphs; use RemoteDataZMQ and an input source."
        )


def _check_flow(df: Any) -> None:
    if not hasattr(df, "__iter__") or not callable(getattr(df, "reset_state", None)):
        raise TypeError(
            f"{_SEND} sends the datapoints of a DataFlow, but got {type(df).__name__}. Wrap a list "
            "in DataFromList, any other iterable in DataFromIterable."
        )


def _check_end(address: Address, passes: Optional[int]) -> None:
    """Refuses what would lose datapoints.

    ZeroMQ ends a connection over a socket file as soon as the other side is gone, with all that
    waits in it.
    """
    if passes is not None and address.path:
        raise ValueError(
            f"passes={passes} at {address.text}: when the sender ends, what the receiver has not "
            "read yet would be lost, and with it that there is no more. Use tcp://127.0.0.1:PORT, "
            "or send for ever, without passes."
        )


def _check_positive(**numbers: Any) -> None:
    for name, number in numbers.items():
        try:
            wrong = number is not None and not number > 0
        except TypeError as error:
            raise TypeError(f"{name} must be a number, but got {number!r}.") from error
        if wrong:
            raise ValueError(f"{name} must be more than 0, but got {number}.")
