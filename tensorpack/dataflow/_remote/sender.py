"""The end of a connection that sends: one socket, and what it has sent so far."""

import os
import time
from typing import Any, Optional

from tensorpack.utils.optional import require
from tensorpack.utils.serialize import MAX_BYTES

from ..base import DataFlowTerminated
from .key import load_key
from .message import DATA, END, HELLO, Message, encode
from .socket import Hub, attach

__all__ = ["Sender"]

_HURRY_SECONDS = 1.0  # for what was sent to leave, where the sender fails or is interrupted


class Sender:
    """A context within which datapoints are sent; at its end it waits until they have left.

    Args:
      addr: where to.
      hwm: how many messages wait at most.
      bind: whether to bind to the address; else it is connected.
      key: path of the key, or None.
      timeout: for how many seconds nobody may take anything, and how long what waits at the end
        may take in all; None if that does not matter.
    """

    def __init__(
        self, addr: str, hwm: int, bind: bool, key: Optional[str], timeout: Optional[float]
    ) -> None:
        self._zmq = require("zmq")
        self._addr = addr
        self._timeout = timeout
        self._id = os.urandom(16)
        self.count = 0
        loaded = None if key is None else load_key(key)
        self._hub = Hub(loaded, bind)
        try:
            self._socket = self._hub.socket(self._zmq.PUSH, hwm, MAX_BYTES)
            self._socket.sndtimeo = -1 if timeout is None else int(1000 * timeout)
            attach(self._socket, addr, bind, loaded)
        except BaseException:
            self._hub.close()
            raise

    def __enter__(self) -> "Sender":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self._hub.close(_HURRY_SECONDS)
            return
        begin = time.monotonic()
        self._hub.close(self._timeout)
        # ZeroMQ does not say whether all has left; its clock is coarser than ours.
        if self._timeout is not None and time.monotonic() - begin >= 0.9 * self._timeout:
            raise DataFlowTerminated(
                f"The last datapoints for {self._addr} were not taken within {self._timeout} s of "
                f"the end, so some of {self.count} may be lost. Raise the timeout, or take them "
                "faster, if a receiver is there at all."
            )

    def hello(self) -> None:
        """Makes the sender known; waits until somebody could take it.

        Raises:
          DataFlowTerminated: nobody did in time, as in the other methods.
        """
        self._send(Message(HELLO, self._id, 0))

    def send(self, datapoint: Any) -> None:
        """Sends a datapoint.

        Raises:
          TypeError, ValueError: it cannot be sent; says where in it.
        """
        message = Message(DATA, self._id, self.count, datapoint)
        try:
            frame = encode(message)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"Datapoint {self.count} cannot be sent: {error}") from error
        self._send(message, frame)
        self.count += 1

    def end(self) -> None:
        """Says that there is no more."""
        self._send(Message(END, self._id, self.count))

    def _send(self, message: Message, frame: Optional[bytes] = None) -> None:
        try:
            self._socket.send(encode(message) if frame is None else frame)
        except self._zmq.Again as error:
            raise self._nobody() from error

    def _nobody(self) -> DataFlowTerminated:
        return DataFlowTerminated(
            f"Nobody took the datapoints at {self._addr} for {self._timeout} s, so the last of "
            f"{self.count} may be lost. Start the receiver, or give a longer timeout."
        )
