"""The end of a channel that objects go in at; see `channel.py`."""

import os
import select
from collections import deque
from multiprocessing.connection import Connection
from typing import Any, Callable, Deque, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.packed import Packed, write

from .channel import HUNGRY, LAST_OBJECT, OBJECT, RECORD, RETURN, SLOT_ENDS, Limits
from .descriptor import SharedFile, closed_after_fork
from .layouts import Packing

__all__ = ["Interrupted", "Sender"]

_STEP = 1 << 16  # bytes; sizes of slots are multiples of it
_MOST_OF_SEVERAL = 1 << 22  # bytes; a slot for several objects need not be larger
_CHUNK = 1 << 12


class Interrupted(Exception):
    """A sender was to send something, and something else came first."""


class Sender:
    """Sends objects; used by one thread.

    Args:
      records: write end.
      returned: read end.
      files: the slots.
      limits: see there.
    """

    def __init__(
        self, records: Connection, returned: Connection, files: Sequence[SharedFile], limits: Limits
    ) -> None:
        self._records, self._returned = records, returned
        self._files, self._limits = list(files), limits
        self._sizes = [0] * len(files)
        self._free: Deque[int] = deque(range(len(files)))
        self._kept = 0  # slots that a waiting consumer keeps
        self._slot, self._start, self._items = -1, 0, 0
        self._memory = np.empty(0, np.uint8)
        self._pack = Packing()
        self._interrupt = -1
        self._poll: Any = None

    def stays(self, interrupt: Optional[int] = None) -> "Sender":
        """To be called once on the end that is used in this process.

        Args:
          interrupt: a descriptor; nothing is sent by `send` while that can be read.
        """
        self._poll = select.poll()
        self._poll.register(self.waits_for, select.POLLIN)
        if interrupt is not None:
            self._interrupt = interrupt
            self._poll.register(interrupt, select.POLLIN)
        closed_after_fork(self)
        return self

    def send(self, obj: Any, tag: int = 0) -> None:
        """Sends an object; waits for room if it must.

        Args:
          obj: see `utils.packed.pack`.
          tag: a number to send along, from 0 to 2**64 - 1.

        Raises:
          Interrupted: see `stays`; nothing was sent.
          TypeError, ValueError: the object cannot be sent; see `pack`.
          BrokenPipeError: nobody is there to receive.
          OSError: there is not so much shared memory.
        """
        packed = self._pack(obj)
        if self._interrupt >= 0:
            self._take_back(0)
        while not self._has_room(packed.nbytes):
            self._take_back(None)
        self._put(packed, tag)

    def offer(self, packed: Packed, tag: int = 0) -> bool:
        """Sends an object if there is room; returns whether it did.

        Raises:
          BrokenPipeError, OSError: as `send` does.
        """
        if not self._has_room(packed.nbytes):
            return False
        self._put(packed, tag)
        return True

    def event(self, kind: int, tag: int = 0) -> None:
        """Sends a record without an object, in order with the objects."""
        self._write(kind, 0, 0, 0, 0, 0, tag)

    @property
    def waits_for(self) -> int:
        """A descriptor that can be read when there may be more room."""
        return self._returned.fileno()

    def close(self) -> None:
        """Lets the pipes and the memory go; may be called more than once."""
        self._memory = np.empty(0, np.uint8)
        self._records.close()
        self._returned.close()
        for each in self._files:
            each.close()

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return Sender, (self._records, self._returned, self._files, self._limits)

    def _put(self, packed: Packed, tag: int) -> None:
        start, size = self._start, len(self._memory)
        write(packed, self._memory, start)
        end = self._start = start + packed.nbytes
        self._items += 1
        kind, slot = OBJECT, self._slot
        if self._items >= self._limits.items:
            kind, self._slot = LAST_OBJECT, -1
        self._write(kind, slot, len(packed.structure), start, end, size, tag)

    def _write(self, *record: int) -> None:
        os.write(self._records.fileno(), RECORD.pack(*record))

    def _has_room(self, nbytes: int) -> bool:
        """Sees to it that so many bytes can be put into the present slot, if that can be."""
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
            self._write(SLOT_ENDS, slot, 0, 0, 0, 0, 0)
        elif slot >= 0:  # nobody has heard of it
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
        """Whether a free slot is so large or can be made so; shrinks others for that."""
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
        ready = self._poll.poll(timeout)
        if not ready:
            return
        descriptors = [fd for fd, _ in ready]
        if self._interrupt in descriptors:
            raise Interrupted
        data = os.read(self.waits_for, _CHUNK)
        if not data:
            raise BrokenPipeError("nobody is there to receive")
        for (word,) in RETURN.iter_unpack(data):
            if word & HUNGRY:
                self._kept = word ^ HUNGRY
            else:
                self._kept = max(0, self._kept - 1)
                self._free.append(word)
