"""The end of a channel that objects go in at: into shared memory, announced through a pipe.

A sender writes objects one after another into a *slot* of shared memory and announces each by a
record of fixed size. The receiver (`receiver.py`) gives out arrays that view the slot. When the
last of these arrays is gone, the receiver sends the slot back. A consumer that keeps many arrays
gets copies, so that a slot is always free.
"""

import os
import struct
from collections import deque
from multiprocessing.connection import Connection
from typing import Any, Callable, Deque, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.packing.packed import Packed, write
from tensorpack.utils.packing.packed_layouts import LayoutWriter

from .shared_memory import SharedFile, ToClose, close_after_fork, poll_of

# Kinds of records: an object, the last object of its slot, and the end of a slot.
OBJECT, LAST_OBJECT, SLOT_ENDS = 0, 1, 2
FIRST_EVENT = 16  # kinds from here on are defined by the caller
# Kind, layout, slot, structure, start, end, size of the slot, tag.
RECORD = struct.Struct("<BBHIQQQQ")
RETURN = struct.Struct("<I")  # a slot; or, with HUNGRY, how many slots a waiting consumer keeps
HUNGRY = 1 << 31
_STEP = 1 << 16  # bytes; sizes of slots are multiples of it
_MOST_OF_SEVERAL = 1 << 22  # bytes; a slot for several objects need not be larger
_CHUNK = 1 << 12
_MOST_ITEMS = 1000  # on the way in one channel; their records fit into a pipe
_MOST_SLOTS = 16
_SLOTS_OF_ALL = 128  # a slot takes two descriptors, of 1024 that a process usually may have


class Limits(NamedTuple):
    """How much may be on the way: in `slots` pieces of memory, `items` objects in each.

    `nbytes` bounds all slots; a single object may be larger.
    """

    slots: int
    items: int
    nbytes: int

    @classmethod
    def of(cls, items: int, nbytes: int, channels: int = 1, others: int = 0) -> "Limits":
        """Divides about `items` objects and `nbytes` bytes between equal channels.

        Each has at least one object. `others` are channels that take descriptors as well.
        """
        items = min(-(-items // channels), _MOST_ITEMS)
        most_slots = max(1, min(_MOST_SLOTS, _SLOTS_OF_ALL // (channels + others)))
        in_slot = -(-items // most_slots)
        return cls(-(-items // in_slot), in_slot, nbytes // channels)


class Interrupted(Exception):
    """There is a new input, so nothing is sent for the present one."""


class Sender:
    """Sends objects through its ends of both pipes and the slots; used by one thread."""

    def __init__(
        self, records: Connection, returned: Connection, files: Sequence[SharedFile], limits: Limits
    ) -> None:
        self._records, self._returned = records, returned
        self._files, self._limits = list(files), limits
        self._to_close = ToClose(records, returned, *files)
        self._sizes = [0] * len(files)
        self._free: Deque[int] = deque(range(len(files)))
        self._kept = 0  # slots that a waiting consumer keeps
        self._slot, self._start, self._items = -1, 0, 0
        self._memory = np.empty(0, np.uint8)
        self._layouts = LayoutWriter()
        self._interrupt = -1
        self._poll: Any = None

    def attach(self, interrupt: Optional[int] = None) -> "Sender":
        """Prepares the end that this process uses.

        `send` sends nothing while the descriptor `interrupt` can be read.
        """
        self._poll = poll_of(self.waits_for)
        if interrupt is not None:
            self._interrupt = interrupt
            self._poll = poll_of(self.waits_for, interrupt)
        close_after_fork(self)
        return self

    def send(self, obj: Any, tag: int = 0) -> None:
        """Sends an object and a number from 0 to 2**64 - 1; waits for room if it must.

        Raises `Interrupted`, what `utils.packed.pack` raises, `BrokenPipeError` if the receiver is
        closed, and `OSError` if there is not enough shared memory.
        """
        packed, layout = self._layouts.pack(obj)
        if self._interrupt >= 0:
            self._take_back(0)
        while not self._has_room(packed.nbytes):
            self._take_back(None)
        self._put(packed, tag, layout)
        if self._layouts.unsent:
            self._layouts.was_sent()

    def offer(self, packed: Packed, tag: int = 0) -> bool:
        """Sends an object if there is room; returns whether it did."""
        if not self._has_room(packed.nbytes):
            return False
        self._put(packed, tag)
        return True

    def event(self, kind: int, tag: int = 0) -> None:
        """Sends a record without an object, in order with the objects."""
        self._write(kind, 0, 0, 0, 0, 0, 0, tag)

    @property
    def waits_for(self) -> int:
        """A descriptor that can be read when there may be more room."""
        return self._returned.fileno()

    def close(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._to_close.close()

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return Sender, (self._records, self._returned, self._files, self._limits)

    def _put(self, packed: Packed, tag: int, layout: int = 0) -> None:
        start, size = self._start, len(self._memory)
        write(packed, self._memory, start)
        end = self._start = start + packed.nbytes
        self._items += 1
        kind, slot = OBJECT, self._slot
        if self._items >= self._limits.items:
            kind, self._slot = LAST_OBJECT, -1
        self._write(kind, layout, slot, len(packed.structure), start, end, size, tag)

    def _write(self, *record: int) -> None:
        os.write(self._records.fileno(), RECORD.pack(*record))

    def _has_room(self, nbytes: int) -> bool:
        """Makes room for so many bytes in the present slot; returns whether there is."""
        if self._slot >= 0 and self._start + nbytes <= len(self._memory):
            return True
        self._leave_slot()
        self._take_back(0)
        if not (self._free and self._fits(nbytes)):
            return False
        self._open(nbytes)
        return True

    def _leave_slot(self) -> None:
        slot, self._slot = self._slot, -1
        if slot >= 0 and self._items:
            self._write(SLOT_ENDS, 0, slot, 0, 0, 0, 0, 0)
        elif slot >= 0:  # it was not announced
            self._free.append(slot)

    def _open(self, nbytes: int) -> None:
        """Begins a free slot with room for so many bytes."""
        slot = self._best(nbytes)
        if self._sizes[slot] < nbytes:
            wanted, self._sizes[slot] = self._wanted(nbytes), 0
            self._files[slot].resize(wanted)
            self._sizes[slot] = wanted
        self._memory = self._files[slot].view(self._sizes[slot], writable=True)
        self._free.remove(slot)
        self._slot, self._start, self._items = slot, 0, 0

    def _wanted(self, nbytes: int) -> int:
        share = min(_MOST_OF_SEVERAL, self._limits.nbytes // self._limits.slots)
        several = min(nbytes * self._limits.items, max(nbytes, share))
        return -(-several // _STEP) * _STEP

    def _best(self, nbytes: int) -> int:
        """The smallest free slot that is large enough, or else the largest."""

        def rank(slot: int) -> Tuple[bool, int]:
            enough = self._sizes[slot] >= nbytes
            return enough, -self._sizes[slot] if enough else self._sizes[slot]

        return max(self._free, key=rank)

    def _fits(self, nbytes: int) -> bool:
        """Whether a free slot is large enough or can grow; shrinks others for that."""
        slot = self._best(nbytes)
        if self._sizes[slot] >= nbytes:
            return True
        growth = self._wanted(nbytes) - self._sizes[slot]
        for other in self._free:
            if other != slot and sum(self._sizes) + growth > self._limits.nbytes:
                self._files[other].resize(0)
                self._sizes[other] = 0
        busy = len(self._files) - len(self._free)
        return sum(self._sizes) + growth <= self._limits.nbytes or busy <= self._kept

    def _take_back(self, timeout: Optional[int]) -> None:
        """Takes what the receiver has returned; waits for it at most so many milliseconds."""
        descriptors = [fd for fd, _ in self._poll.poll(timeout)]
        if not descriptors:
            return
        if self._interrupt in descriptors:
            raise Interrupted
        data = os.read(self.waits_for, _CHUNK)
        if not data:
            raise BrokenPipeError("the receiver is closed")
        for (word,) in RETURN.iter_unpack(data):
            if word & HUNGRY:
                self._kept = word ^ HUNGRY
            else:
                self._kept = max(0, self._kept - 1)
                self._free.append(word)
