"""One direction between two processes: objects through shared memory, records of them through a
pipe.

A sender writes objects one behind another into a *slot* of shared memory and announces each by a
record of fixed size. The receiver gives out arrays that view the slot. When it was told that
nothing more comes into it, and when the last of these arrays is gone, wherever they have gone
meanwhile, it sends the slot back as soon as it is asked for more. A consumer that keeps many
arrays gets copies, so that there is always a slot to go on with.

The sender is in `sender.py`, the receiver in `receiver.py`; here is what both agree on.
"""

import contextlib
import struct
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import List, NamedTuple, Tuple

from .descriptor import SharedFile

__all__ = [
    "FIRST_EVENT",
    "HUNGRY",
    "LAST_OBJECT",
    "Limits",
    "OBJECT",
    "RECORD",
    "RETURN",
    "SLOT_ENDS",
    "channel_parts",
]

# Kinds of records: an object, one behind which nothing comes into its slot, and the latter alone.
OBJECT, LAST_OBJECT, SLOT_ENDS = 0, 1, 2
FIRST_EVENT = 16  # from here on kinds are up to whoever sends them
RECORD = struct.Struct("<BxHIQQQQ")  # kind, slot, structure, start, end, size of the slot, tag
RETURN = struct.Struct("<I")  # a slot; or how many are kept by a consumer that waits
HUNGRY = 1 << 31
_Parts = Tuple[Connection, Connection, List[SharedFile]]
_MOST_ITEMS = 1000  # on the way in one channel; their records fit into a pipe
_MOST_SLOTS = 16
_SLOTS_OF_ALL = 128  # a slot takes two descriptors, of 1024 that a process usually may have


class Limits(NamedTuple):
    """How much may be on the way.

    Attributes:
      slots: in how many pieces of memory.
      items: objects in a slot.
      nbytes: of all slots; a single object may be larger.
    """

    slots: int
    items: int
    nbytes: int

    @property
    def descriptors(self) -> int:
        """How many a channel takes in each process, at most."""
        return 2 * self.slots + 2

    @classmethod
    def of(cls, items: int, nbytes: int, channels: int = 1, others: int = 0) -> "Limits":
        """Divides what may be on the way between equal channels.

        Args:
          items: about how many objects, in all channels together; at least one in each.
          nbytes: how many bytes.
          channels: how many there are.
          others: how many there are besides, which take descriptors as well.
        """
        items = min(-(-items // channels), _MOST_ITEMS)
        most_slots = max(1, min(_MOST_SLOTS, _SLOTS_OF_ALL // (channels + others)))
        in_slot = -(-items // most_slots)
        return cls(-(-items // in_slot), in_slot, nbytes // channels)


def channel_parts(slots: int) -> Tuple[_Parts, _Parts]:
    """Makes what the two ends of a channel hold: two connections and the slots, each.

    Raises:
      OSError: there are not so many descriptors.
    """
    with contextlib.ExitStack() as on_error:
        records, announced = Pipe(duplex=False)
        returned, back = Pipe(duplex=False)
        files: List[SharedFile] = []
        copies: List[SharedFile] = []
        for _ in range(slots):
            files.append(SharedFile())
            on_error.callback(files[-1].close)
            copies.append(files[-1].copy())
            on_error.callback(copies[-1].close)
        on_error.pop_all()
    return (announced, returned, copies), (records, back, files)
