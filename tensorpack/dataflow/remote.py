"""Datapoints that come over a socket from other processes, on this machine or on others.

The programs that make the data call `send_dataflow_zmq`, or use a `RemoteSender`; the one that uses
the data iterates a `RemoteDataZMQ`. Reading what comes never runs code. Without a key all of them
stay on this machine.
"""

from typing import Any, Iterator, List, Optional, Tuple

from tensorpack.utils import get_tqdm, logger
from tensorpack.utils.checks import as_count, as_positive
from tensorpack.utils.optional import require
from tensorpack.utils.serialize import MAX_BYTES, FrameError

from ._flow import ProcessLocal, call_optional, is_flow, what_instead
from ._length import endless, length_or_none
from ._remote.ends import RemoteReceiver, RemoteSender
from ._remote.guard import load_key, make_remote_key, parse_address  # noqa: F401
from ._remote.hub import Hub, attach
from ._remote.message import DATA, END, Senders
from .base import DataFlow, DataFlowTerminated
from .repeat import RepeatedData

_SEND = "send_dataflow_zmq"
_FORMATS = (None, "zmq_op", "zmq_ops")
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
    """Sends the datapoints of a flow to a `RemoteDataZMQ`, pass after pass.

    It waits for the receiver at the start, and whenever the receiver's buffer is full. Several
    senders may send to one receiver. A receiver that is started again gets the datapoints that were
    not yet under way. Ctrl-C ends the function: what was sent has a second to leave.

    The receiver answers each datapoint. With `passes` the function returns only when all of them
    have been taken, and raises an error if some were lost; the receiver gets an error, too, as it
    does if the flow fails.

    A sender that binds deals its datapoints out to all receivers that connect. Only one of them is
    told that there is no more; the others need a `timeout`.

    The positions of 2017, `(df, addr, hwm, print_interval, format)`, are understood too.

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
      timeout: seconds without a datapoint that is taken until an error is raised; None for ever.

    Raises:
      DataFlowTerminated: nothing was taken within the timeout, or datapoints were lost.
      ValueError: a datapoint is larger than the receiver's `max_bytes`; or the address leaves the
        machine without a key.
    """
    bind, print_interval = _either_order(format, bind, print_interval)
    print_interval = as_count(_SEND, "print_interval", print_interval)
    passes = None if passes is None else as_count(_SEND, "passes", passes)
    hwm = as_count(_SEND, "hwm", hwm)
    timeout = None if timeout is None else as_positive(_SEND, "timeout", timeout)
    if not is_flow(df):
        raise TypeError(f"{_SEND} sends the datapoints of a DataFlow, but got {what_instead(df)}")
    flow = RepeatedData(df, -1 if passes is None else passes)
    with RemoteSender(addr, hwm, bind=bind, key=key, timeout=timeout) as sender:
        logger.info(f"Serving data to {addr} ...")
        try:
            flow.reset_state()
            total = length_or_none(flow)
            with get_tqdm(total=total, miniters=print_interval, desc="Sending") as bar:
                for datapoint in flow:
                    sender.send(datapoint)
                    bar.update()
            sender.end()
        except KeyboardInterrupt:
            logger.warning(f"Interrupted after {sender.count} datapoints were sent to {addr}.")
            raise
        except Exception as error:
            sender.fail(f"its flow failed with {type(error).__name__}: {error}")
            raise
        finally:
            flow.close()


class RemoteDataZMQ(DataFlow):
    """Yields the datapoints that one or several `send_dataflow_zmq` send, in the order they come.

    A pass has no end, unless senders go through their flows a given number of times: it ends when
    all senders of a datapoint have said that there is no more. What they send after that is another
    pass. A sender that is killed says nothing, and the pass continues with the others, and with a
    sender that takes its place; use `timeout` to limit the wait.

    All passes share one connection: what one of them yields, the others do not. It is opened by
    `reset_state`, or by the first pass, stays open between passes, and is opened again after
    `close`, and in a forked process. No state is kept, because the data is made elsewhere.

    A message that is not from `send_dataflow_zmq`, or larger than `max_bytes`, is dropped, counted
    and logged. A sender whose datapoint was too large, or was lost otherwise, raises an error, and
    so does the pass.

    Memory: at most `hwm` messages of each sender wait, and each has at most `max_bytes`. Before a
    peer has shown the key, ZeroMQ reads at most 65 KiB of it. A peer that has the key, or, without
    a key, any program that can connect, is trusted not to send a message of endless parts, which
    ZeroMQ collects before it can be refused. Use a key, or `ipc://` in a folder of your own, where
    other users of the machine are not trusted.

    Attributes:
      cnt1, cnt2: how many datapoints came to the first address and to the second one.
      malformed: how many messages were dropped.
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
        max_errors: int = 100,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """
        Args:
          addr1: where the datapoints come to, as in `send_dataflow_zmq`. The port may be `*` for
            any free one, see `endpoints`.
          addr2: a second address, such as that of another network; both are read in turn.
          hwm: how many datapoints of each sender may wait on this side.
          bind, key: as in `send_dataflow_zmq`.
          timeout: seconds without a message until an error is raised; None for ever.
          senders: a pass does not end before so many senders have said that there is no more.
          max_errors: how many malformed messages are dropped before there is an error.
          max_bytes: how large the message of a datapoint may be.
        """
        self._hwm = as_count(self, "hwm", hwm)
        self._max_bytes = as_count(self, "max_bytes", max_bytes)
        self._least = as_count(self, "senders", senders)
        self._max_errors = as_count(self, "max_errors", max_errors, least=0)
        self._timeout = None if timeout is None else as_positive(self, "timeout", timeout)
        if key is not None:
            load_key(key)  # raises now, not in the middle of a run
        self._addresses = [addr1] if addr2 is None else [addr1, addr2]
        for addr in self._addresses:
            parse_address(addr, bind, key is not None)
        self._bind, self._key = bind, key
        self._receiver: ProcessLocal[RemoteReceiver] = ProcessLocal(_connect)
        self.cnt1 = self.cnt2 = self.malformed = 0

    @property
    def endpoints(self) -> List[str]:
        """The addresses with their true ports; empty while there is no connection."""
        receiver = self._receiver.current()
        return [] if receiver is None else list(receiver.endpoints)

    def __len__(self) -> int:
        raise endless(self)

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises:
          DataFlowTerminated: `close` was called, nothing came within the timeout, or a sender says
            that datapoints were lost.
          FrameError: there were more malformed messages than allowed; a `ValueError`.
        """
        return self._pass(self._receiver.get(self))

    def reset_state(self) -> None:
        """Connects if this process has no connection; keeps what waits in one."""
        self._receiver.get(self)

    def close(self) -> None:
        """Closes the connection. What had come and was not yielded is lost."""
        call_optional(self._receiver.take(), "close")

    def bind_or_connect(self, socket: Any, addr: str) -> None:
        """Binds a ZeroMQ socket of this flow to an address, or connects it; OSError if it fails."""
        attach(socket, addr, self._bind, self._loaded_key())

    def _loaded_key(self) -> Any:
        return None if self._key is None else load_key(self._key)

    def _pass(self, receiver: RemoteReceiver) -> Iterator[Any]:
        while True:
            index, message = receiver.receive(self._timeout)
            if isinstance(message, FrameError):
                self._drop(self._addresses[index], message)
            elif message.kind == DATA:
                self.cnt1 += index == 0
                self.cnt2 += index == 1
                yield message.datapoint
            elif message.kind == END:
                over = receiver.senders.take_end()
                if message.datapoint is not None:
                    raise DataFlowTerminated(f"A sender says: {message.datapoint!s:.500}")
                if over:
                    return

    def _drop(self, addr: str, error: FrameError) -> None:
        self.malformed += 1
        if self.malformed > self._max_errors:
            raise FrameError(
                f"{self.malformed} malformed messages came, the last one to {addr}, and "
                f"max_errors={self._max_errors} are allowed: {error}"
            ) from error
        if self.malformed % _LOG_EVERY == 1:
            count = f"{self.malformed} so far"
            logger.warning(f"Dropped a malformed message that came to {addr} ({count}): {error}")


def _connect(flow: RemoteDataZMQ) -> RemoteReceiver:
    require("msgpack")
    return RemoteReceiver(
        flow._addresses,
        flow._hwm,
        flow._max_bytes,
        Hub(flow._loaded_key(), flow._bind),
        flow.bind_or_connect,
        Senders(flow._least),
    )


def _either_order(format: Any, bind: Any, print_interval: int) -> Tuple[bool, int]:
    """Sorts arguments that came in the order of 2017: a number first, then the format."""
    if isinstance(format, int) and not isinstance(format, bool):
        format, bind, print_interval = (None if bind is False else bind), False, format
    if bind not in (False, True):
        raise TypeError(f"bind is True or False, but got {bind!r}.")
    if format not in _FORMATS:
        raise ValueError(
            f"There is no format {format!r} here: leave it out. There is one, which RemoteDataZMQ "
            "and ZMQInput read."
        )
    return bool(bind), print_interval
