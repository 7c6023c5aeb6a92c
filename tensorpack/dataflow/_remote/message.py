"""What a sender of datapoints says, each time in one frame, and who has said what.

A sender says `HELLO`, then `DATA` with a datapoint as often as it likes, and `END` if it has sent
all that there is. Each message has the sender's id, 16 random bytes, and how many datapoints it
has sent before.
"""

from typing import Any, Dict, NamedTuple

from tensorpack.utils import logger
from tensorpack.utils.serialize import FrameError, dumps, loads

__all__ = ["DATA", "END", "HELLO", "Message", "Senders", "decode", "encode"]

HELLO, DATA, END = 0, 1, 2

_ID_BYTES = 16
_MAX_SENDERS = 10000


class Message(NamedTuple):
    """A message.

    Attributes:
      kind: HELLO, DATA or END.
      sender: its id.
      number: how many datapoints it has sent before this message.
      datapoint: None unless this is DATA.
    """

    kind: int
    sender: bytes
    number: int
    datapoint: Any = None


def encode(message: Message) -> bytes:
    """Returns a message as a frame.

    Raises:
      TypeError, ValueError: the datapoint cannot be sent; says where in it.
    """
    try:
        return dumps(list(message))
    except (TypeError, ValueError):
        dumps(message.datapoint)  # it fails too, and says where without counting the message in
        raise


def decode(data: Any, max_bytes: int) -> Message:
    """Reads a message; its arrays are copies.

    Args:
      data: a buffer.
      max_bytes: as in `loads`.

    Raises:
      FrameError: it is none.
    """
    fields = loads(data, max_bytes)
    if type(fields) is not list or len(fields) != len(Message._fields):
        raise FrameError(f"A frame with a {type(fields).__name__}, which is no message.")
    message = Message(*fields)
    if type(message.kind) is not int or message.kind not in (HELLO, DATA, END):
        raise FrameError("A message of no known kind.")
    if type(message.sender) is not bytes or len(message.sender) != _ID_BYTES:
        raise FrameError("A message without a sender.")
    if type(message.number) is not int or message.number < 0:
        raise FrameError("A message without a number.")
    return message


class Senders:
    """Who sends, and who has said that there is no more.

    Args:
      least: how many have to come to their end before there is no more from anybody.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._ended = 0
        self._open: Dict[bytes, int] = {}  # id -> how many of its datapoints came here

    @property
    def open(self) -> int:
        """How many have sent something, and have not said END."""
        return len(self._open)

    def note(self, message: Message) -> None:
        """Takes notice of a message.

        Raises:
          FrameError: it is one of too many senders.
        """
        if message.kind == END:
            self._end(message)
            return
        if message.sender not in self._open and len(self._open) >= _MAX_SENDERS:
            raise FrameError(f"A message of one more sender, where {_MAX_SENDERS} are known.")
        came = self._open.get(message.sender, 0)
        self._open[message.sender] = came + (message.kind == DATA)

    def take_end(self) -> bool:
        """Whether all have come to their end; if so, a new stream begins."""
        if self._open or self._ended < self._least:
            return False
        self._ended = 0
        return True

    def _end(self, message: Message) -> None:
        came = self._open.pop(message.sender, 0)
        self._ended += 1
        if came != message.number:
            logger.warning(
                f"A sender says that it has sent {message.number} datapoints, and {came} of them "
                "came here. The others went to another receiver, or were lost with a connection."
            )
