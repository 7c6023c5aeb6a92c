"""A channel for objects between two processes: an end to send, and an end to receive.

A large object is written into one of a fixed number of *slots* of shared memory, each as large as
the largest object that was in it, and announced by a record in a pipe; a small one is in the pipe
itself. The receiver gives out arrays that view the slot. When the last of them is gone, it gives
the slot back, by one byte in another pipe; one more byte says that an object was taken. A consumer
that keeps many arrays gets copies, so that slots are free.
"""

import contextlib
import os
import struct
import weakref
from collections import deque
from multiprocessing import util
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils._tracebacks import add_note

from .pickled import Packed, pack, unpack, write
from .shared_memory import Descriptor, SharedFile, poll_of

TAGS = 1 << 32  # what counts objects in a tag; the rest of it is their pass
_RECORD = struct.Struct("<BQQQQ")  # slot, size of the slot, begin and end of the pickle, tag
_NO_SLOT = 255  # in place of a slot: the object is in the pipe, or the receiver has taken one
_TAKEN = bytes([_NO_SLOT])
_PIPE_BUF = 4096  # bytes that are written at once, or not at all
_SMALL_BYTES = _PIPE_BUF - _RECORD.size
_STEP = 1 << 16  # bytes; sizes of slots are multiples of it
_CHUNK = 1 << 17  # more than a pipe holds
_NOTHING = np.empty(0, np.uint8)
_MOST_ITEMS = 1000
_MOST_SLOTS = 16
_SLOTS_OF_ALL = 64  # a slot takes two descriptors, of 1024 that a process usually may have


class Limits(NamedTuple):
    """How many `items` may wait in a channel, of which `slots` are large.

    `nbytes` bounds the memory of all slots; a single object may be larger.
    """

    slots: int
    items: int
    nbytes: int

    @classmethod
    def of(cls, items: int, nbytes: int, workers: int = 1) -> "Limits":
        """Divides about `items` objects and `nbytes` bytes between workers, one object or more."""
        items = min(-(-items // workers), _MOST_ITEMS)
        most_slots = max(1, min(_MOST_SLOTS, _SLOTS_OF_ALL // workers))
        return cls(min(items, most_slots), items, nbytes // workers)


class Interrupted(Exception):
    """There is a new input, so nothing is sent for the present one."""


class _End:
    """One end of a channel: the pipe of records, that of what is given back, and the slots.

    Workers that are forked later close it: an open copy would keep memory allocated, and who reads
    a pipe would not see its end.
    """

    def __init__(
        self, records: Descriptor, returned: Descriptor, files: Sequence[SharedFile], limits: Limits
    ) -> None:
        self.records, self._returned = records, returned
        self._files, self._limits = list(files), limits

    def close(self) -> None:
        """Closes the pipes and the memory; arrays that were given out stay valid."""
        for each in (self.records, self._returned, *self._files):
            each.close()


class Sender(_End):
    """Sends objects through its ends of both pipes and the slots; used by one thread."""

    def attach(self, blocks: bool = True, interrupt: Optional[int] = None) -> "Sender":
        """Prepares the end that this process uses.

        While the descriptor `interrupt` can be read, `Interrupted` is raised and nothing sent. A
        full pipe is waited for if it `blocks`; else there is no room.
        """
        self.waits_for = self._returned.fd  # it can be read when there may be more room
        self._interrupt = interrupt
        self._poll = poll_of(self.waits_for, *[] if interrupt is None else [interrupt])
        self._memory = [_NOTHING] * len(self._files)
        self._free = list(range(len(self._files)))  # the one that was used last is used next
        self._waiting = 0  # objects that the receiver has not taken yet
        os.set_blocking(self.records.fd, blocks)
        util.register_after_fork(self, _End.close)
        return self

    def send(self, obj: Any, tag: int = 0) -> None:
        """Sends an object and a number from 0 to 2**64 - 1; waits for room if it must.

        Raises `Interrupted`, what `pack` raises, `BrokenPipeError` if the receiver is closed, and
        `OSError` if there is not enough shared memory.
        """
        packed = pack(obj)
        while not self.offer(packed, tag):
            self._take_back(None)

    def offer(self, packed: Packed, tag: int = 0) -> bool:
        """Sends an object if there is room; returns whether it did."""
        self._take_back(0)
        in_pipe = not packed.arrays and packed.nbytes <= _SMALL_BYTES
        if self._waiting >= self._limits.items or not (in_pipe or self._has_room(packed.nbytes)):
            return False
        if in_pipe:
            data = _RECORD.pack(_NO_SLOT, 0, 0, packed.nbytes, tag) + packed.pickle
        else:
            memory = self._memory[self._free[-1]]
            write(packed, memory)
            data = _RECORD.pack(self._free[-1], len(memory), packed.begin, packed.nbytes, tag)
        try:
            os.write(self.records.fd, data)
        except BlockingIOError:
            return False
        self._waiting += 1
        if not in_pipe:
            self._free.pop()
        return True

    def _has_room(self, nbytes: int) -> bool:
        """Makes the free slot that comes next large enough; returns whether it is.

        The bound does not hold while nothing waits: the receiver may keep other objects for ever.
        """
        if not self._free:
            return False
        slot = self._free[-1]
        old = len(self._memory[slot])
        if nbytes <= old:
            return True
        new = -(-nbytes // _STEP) * _STEP
        excess = sum(map(len, self._memory)) + new - old - self._limits.nbytes
        for other in self._free[:-1]:
            if excess > 0:
                excess -= len(self._memory[other])
                self._resize(other, 0)
        if excess > 0 and self._waiting:
            return False
        self._resize(slot, new)
        return True

    def _resize(self, slot: int, nbytes: int) -> None:
        self._memory[slot] = _NOTHING
        self._files[slot].resize(nbytes)
        if nbytes:
            self._memory[slot] = self._files[slot].view(nbytes, writable=True)

    def _take_back(self, timeout: Optional[int]) -> None:
        """Takes what the receiver has given back; waits for it at most so many milliseconds."""
        ready = dict(self._poll.poll(timeout))
        if self._interrupt in ready:
            raise Interrupted
        if not ready:
            return
        data = os.read(self._returned.fd, _CHUNK)
        if not data:
            raise BrokenPipeError("the receiver is closed")
        self._waiting -= data.count(_NO_SLOT)
        self._free += data.replace(_TAKEN, b"")


class _View(weakref.ref):
    """Refers to the memory of a slot that is here."""

    slot: int
    nbytes: int


class Receiver(_End):
    """Receives objects; used by one thread, while their arrays may go to any. `records` can be read
    when something has been sent, or the sender is gone.

    When the last view of a slot is gone, a deque notes it, without any Python code: an exception
    that a signal handler raises within a finalizer, such as a KeyboardInterrupt, would be lost. The
    slot goes back with the next call of a method.
    """

    sender = "The program"  # in messages

    def attach(self) -> "Receiver":
        """Prepares the end that this process uses; called once."""
        self._data, self._begin = b"", 0  # that was sent, and what of it is not taken yet
        self._held: Dict[int, _View] = {}
        self._freed: Deque[_View] = deque()  # filled by any thread, in the midst of anything
        self._taken = 0  # objects of which the sender does not know yet
        os.set_blocking(self.records.fd, False)
        util.register_after_fork(self, _End.close)
        return self

    def receive(self) -> Optional[bool]:
        """Looks for what has been sent; returns whether there was something, None at the end."""
        try:
            data = os.read(self.records.fd, _CHUNK)
        except BlockingIOError:
            return False
        self._data, self._begin = self._data[self._begin :] + data, 0
        return True if data else None

    def take(self) -> Optional[Tuple[int, Any]]:
        """Returns what came next, as its tag and object; None if nothing is there yet."""
        if self._freed or self._taken > self._limits.items // 4:
            self.return_slots()
        if self._begin == len(self._data):
            return None
        slot, size, start, end, tag = _RECORD.unpack_from(self._data, self._begin)
        begin = self._begin + _RECORD.size
        self._begin = begin + end if slot == _NO_SLOT else begin
        self._taken += 1
        try:
            if slot == _NO_SLOT:
                return tag, unpack(self._data[begin : self._begin])
            return tag, self._from_slot(slot, size, start, end)
        except Exception as error:
            number = f"number {tag % TAGS}, counted from 0"
            add_note(error, f"{self.sender} sent it as {number}.")
            raise

    def return_slots(self) -> None:
        """Tells the sender what was taken, and which slots are no longer viewed."""
        words, self._taken = _TAKEN * self._taken, 0
        while self._freed:
            slot = self._freed.popleft().slot
            del self._held[slot]
            words += bytes([slot])
        if words:
            with contextlib.suppress(BrokenPipeError):  # it has ended; its owner reports how
                os.write(self._returned.fd, words)

    def _from_slot(self, slot: int, size: int, begin: int, end: int) -> Any:
        kept = sum([view.nbytes for view in self._held.values()])
        # The rest are to be where objects come in while a consumer keeps these.
        most = max(self._limits.slots - 2, self._limits.slots // 2)
        copies = len(self._held) >= most or 0 < kept > self._limits.nbytes // 2 - size
        memory = self._files[slot].view(size, writable=False)
        # Views of views hold `memory` itself, so it lives as long as the last of them.
        view = self._held[slot] = _View(memory, self._freed.append)
        view.slot, view.nbytes = slot, size
        return unpack(memory[begin:end], memory, copies)


def make_channels(*limits: Limits) -> List[Tuple[Sender, Receiver]]:
    """Makes both ends of channels: one to `attach` here, one for a worker, then to close here."""
    made: List[Any] = []
    channels = []
    try:
        for limit in limits:
            first = len(made)
            for _ in range(2):
                made += map(Descriptor, os.pipe())
            for _ in range(limit.slots):
                made.append(SharedFile())
                made.append(SharedFile(os.dup(made[-1].fd)))
            records, announced, returned, back, *files = made[first:]
            sender = Sender(announced, returned, files[1::2], limit)
            channels.append((sender, Receiver(records, back, files[::2], limit)))
        return channels
    except BaseException:
        for each in made:
            each.close()
        raise
