"""The messages between senders and receivers.

A sender sends `DATA` with each datapoint, `SYNC` to be told how many have arrived, and `END` after
the last one. Each message has the sender's id, 16 random bytes, and the number of datapoints it has
sent before. It is one frame, cut into parts of at most `PART_BYTES`, because ZeroMQ limits the
size of a part, not of a message.

The receiver answers every message with an `Answer`, so a sender knows what has been taken.
"""

import struct
from typing import Any, Dict, List, NamedTuple, Optional

from tensorpack.utils.serialize import FrameError, dumps, load_frame

SYNC, DATA, END = 0, 1, 2
PART_BYTES = 1 << 16

_ID_BYTES = 16
_MAX_SENDERS = 10000
_ANSWER = struct.Struct("<B16sQQQ")


class Message(NamedTuple):
    """A message of a sender."""

    kind: int  # SYNC, DATA or END
    sender: bytes  # its id
    number: int  # how many datapoints it has sent before this message
    datapoint: Any = None  # of DATA; with END, why datapoints are missing, or None


class Answer(NamedTuple):
    """The answer of a receiver to a message."""

    kind: int  # of the message
    receiver: bytes  # its id
    taken: int  # how many datapoints of this sender it has taken
    max_bytes: int  # the largest message it takes
    refused: int = 0  # the bytes of the message if it was too large

    def encode(self) -> bytes:
        return _ANSWER.pack(*self)

    @classmethod
    def decode(cls, data: bytes) -> Optional["Answer"]:
        """Reads what `encode` returned; None if it is something else."""
        return cls(*_ANSWER.unpack(data)) if len(data) == _ANSWER.size else None


def encode(message: Message) -> bytes:
    """Returns a message as a frame; an error names the place of what cannot be sent."""
    try:
        return dumps(list(message))
    except (TypeError, ValueError):
        dumps(message.datapoint)  # fails too, and counts places from the datapoint
        raise


def split(frame: bytes) -> List[Any]:
    """Returns the parts of a frame, as ZeroMQ sends them."""
    if len(frame) <= PART_BYTES:
        return [frame]
    view = memoryview(frame)
    return [view[begin : begin + PART_BYTES] for begin in range(0, len(view), PART_BYTES)]


def decode(data: Any, max_bytes: int) -> Message:
    """Reads a message from a buffer, or raises FrameError; its arrays are copies."""
    fields = load_frame(data, max_bytes)
    if type(fields) is not list or len(fields) != len(Message._fields):
        raise FrameError(f"A frame with a {type(fields).__name__} is not a message.")
    message = Message(*fields)
    types = tuple(map(type, message[:3]))
    if types != (int, bytes, int) or not SYNC <= message.kind <= END or message.number < 0:
        raise FrameError("A message of an unknown kind, or without a number.")
    if len(message.sender) != _ID_BYTES:
        raise FrameError("A message without a sender.")
    return message


class Senders:
    """The senders of a stream, and how many of their datapoints have arrived.

    A sender counts from its first datapoint or its end: a connection alone, or a SYNC, proves
    nothing and does not keep a pass open. At least `least` senders must end before the stream does.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._ended: Dict[bytes, int] = {}  # how often each has ended, of at most `least`
        # Of those that have sent a datapoint and not END: id -> number of datapoints.
        self.open: Dict[bytes, int] = {}

    def note(self, message: Message) -> int:
        """Counts a message; returns how many datapoints its sender has sent here."""
        taken = self.open.get(message.sender, 0)
        if message.kind == DATA:
            if not taken and len(self.open) >= _MAX_SENDERS:
                raise FrameError(f"A datapoint of one more sender than {_MAX_SENDERS}.")
            taken = self.open[message.sender] = taken + 1
        elif message.kind == END:
            self.open.pop(message.sender, None)
            if message.sender in self._ended or len(self._ended) < self._least:
                self._ended[message.sender] = self._ended.get(message.sender, 0) + 1
        return taken

    def take_end(self) -> bool:
        """Returns whether all senders have ended; if so, a new stream begins."""
        if self.open or len(self._ended) < self._least:
            return False
        self._ended = {each: count - 1 for each, count in self._ended.items() if count > 1}
        return True
