"""A channel for objects between two processes: an end to send, and an end to receive.

A large object is written into one of a fixed number of *slots* of shared memory, each as large as
the largest object that was in it, and announced by a record in a pipe; a small one is in the pipe
itself. The receiver yields arrays that view the slot. When the last of them is gone, it returns
the slot, by one byte in another pipe; one more byte says that an object was taken. A consumer that
keeps many arrays gets copies, so that slots are free.
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
from tensorpack.utils.packing.packed_arrays import aligned_empty

from .pickled import Packed, unpack
from .shared_memory import Descriptor, SharedFile, poll_of

TAGS = 1 << 32  # what counts objects in a tag; the rest of it is their pass
_RECORD = struct.Struct("<BQQQQ")  # slot, size of the slot, begin and end of the pickle, tag
_NO_SLOT = 255  # in place of a slot: the object is in the pipe, or the receiver has taken one
_TAKEN = bytes([_NO_SLOT])
_PIPE_BUF = 4096  # bytes that are written at once, or not at all
_SMALL_BYTES = _PIPE_BUF - _RECORD.size
_STEP = 1 << 16  # bytes; sizes of slots are multiples of it
_CHUNK = 1 << 17  # more than a pipe holds
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


class _End:
    """One end of a channel: the pipe that it reads, the pipe that it writes to, and the slots.

    Workers that are forked later close it: an open copy would keep memory allocated, and who reads
    a pipe would not see its end.
    """

    def __init__(
        self, reads: Descriptor, writes: Descriptor, files: Sequence[SharedFile], limits: Limits
    ) -> None:
        self.reads, self._writes, self._files, self._limits = reads, writes, files, limits
        self._memory: List[Any] = [b""] * len(files)  # what is mapped of each slot

    def attach(self, blocks: bool = False) -> Any:
        """Prepares the end that this process uses, once, and returns it; see `Sender`."""
        for descriptor in (self.reads, self._writes):
            os.set_blocking(descriptor.fd, blocks)
        self._poll = poll_of(self.reads.fd)
        util.register_after_fork(self, _End.close)
        return self

    def close(self) -> None:
        """Closes the pipes and the memory; arrays that view it stay valid."""
        self._memory = []
        for descriptor in (self.reads, self._writes, *self._files):
            descriptor.close()


class Sender(_End):
    """Sends objects; used by one thread. `reads` can be read when there may be more room.

    If it blocks, a full pipe is waited for; else there is no room.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._free = list(range(len(self._files)))  # the one that was used last is used next
        self._waiting = 0  # objects that the receiver has not taken yet

    def send(self, obj: Any, tag: int = 0) -> None:
        """Sends an object and a number from 0 to 2**64 - 1; waits for room if it must.

        Raises what `Packed` raises, `BrokenPipeError` if the receiver is closed, and `OSError` if
        there is not enough shared memory.
        """
        self.offer(Packed(obj), tag, -1)

    def offer(self, packed: Packed, tag: int = 0, timeout: int = 0) -> bool:
        """Sends an object if there is room; returns whether it did.

        Where there is none, it waits so many milliseconds for something to be returned.
        """
        if packed.nbytes > _STEP:  # it takes the slot that was returned last
            self._receive(0)
        while not self._write(packed, tag):
            if not self._receive(timeout):
                return False
        return True

    def _receive(self, timeout: int) -> bool:
        if not self._poll.poll(timeout):
            return False
        data = os.read(self.reads.fd, _CHUNK)
        if not data:
            raise BrokenPipeError("the receiver is closed")
        self._waiting -= data.count(_NO_SLOT)
        self._free += data.replace(_TAKEN, b"")
        return True

    def _write(self, packed: Packed, tag: int) -> bool:
        if self._waiting >= self._limits.items:
            return False
        slot = -1
        if not packed.arrays and packed.nbytes <= _SMALL_BYTES:
            data = _RECORD.pack(_NO_SLOT, 0, 0, packed.nbytes, tag) + packed.pickle
        elif not self._free:
            return False
        else:
            slot = self._free[-1]
            if packed.nbytes > len(self._memory[slot]) and not self._grow(slot, packed.nbytes):
                return False
            memory = self._memory[slot]
            packed.write(memory)
            data = _RECORD.pack(slot, len(memory), packed.begin, packed.nbytes, tag)
        try:
            os.write(self._writes.fd, data)
        except BlockingIOError:
            return False
        self._waiting += 1
        if slot >= 0:
            self._free.pop()
        return True

    def _grow(self, slot: int, nbytes: int) -> bool:
        """Makes a free slot large enough if the bound permits it; returns whether it does.

        It does not hold while nothing waits: the receiver may keep other objects for ever.
        """
        nbytes = -(-nbytes // _STEP) * _STEP
        excess = sum(map(len, self._memory)) + nbytes - len(self._memory[slot])
        excess -= self._limits.nbytes
        for other in self._free[:-1]:
            if excess > 0:
                excess -= len(self._memory[other])
                self._memory[other] = b""
                self._files[other].resize(0)
        if excess > 0 and self._waiting:
            return False
        self._memory[slot] = b""
        self._files[slot].resize(nbytes)
        self._memory[slot] = np.frombuffer(self._files[slot].view(nbytes, True), np.uint8)
        return True


class _View(weakref.ref):
    """Refers to the memory of a slot that is here."""

    slot: int


class Receiver(_End):
    """Receives objects; used by one thread, while their arrays may go to any. `reads` can be read
    when something has been sent, or the sender is gone. It does not block.

    When the last view of a slot is gone, a deque notes it, without any Python code: an exception
    that a signal handler raises within a finalizer, such as a KeyboardInterrupt, would be lost. The
    slot is returned with a later call of a method.
    """

    sender = "The program"  # in messages

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._data, self._begin = b"", 0  # that was sent, and what of it is not taken yet
        self._held: Dict[int, _View] = {}
        self._held_bytes = 0
        # The rest are to be where objects come in while a consumer keeps these.
        self._most_held = max(self._limits.slots - 2, self._limits.slots // 2)
        self._freed: Deque[_View] = deque()  # filled by any thread, in the midst of anything
        self._taken = 0  # objects of which the sender does not know yet

    def is_ready(self, timeout: int = 0) -> bool:
        """Waits up to so many milliseconds, or for ever if it is -1, until `take` or `receive` has
        something to return; returns whether it has.
        """
        return self._begin < len(self._data) or bool(self._poll.poll(timeout))

    def receive(self) -> Optional[bool]:
        """Looks for what has been sent; returns whether there was something, None at the end."""
        try:
            data = os.read(self.reads.fd, _CHUNK)
        except BlockingIOError:
            return False
        self._data, self._begin = self._data[self._begin :] + data, 0
        return True if data else None

    def take(self) -> Optional[Tuple[int, Any]]:
        """Returns what came next, as its tag and object; None if nothing is there yet."""
        # Small slots are returned several at a time: it takes a system call.
        are_many = self._held_bytes > self._limits.slots * _STEP // 4
        if (self._freed and are_many) or self._taken > self._limits.items // 4:
            self.return_slots()
        if self._begin == len(self._data):
            return None
        slot, size, start, end, tag = _RECORD.unpack_from(self._data, self._begin)
        self._begin += _RECORD.size
        self._taken += 1
        memory: Any = None
        if slot == _NO_SLOT:
            start, self._begin = self._begin, self._begin + end
            data = self._data[start : self._begin]
        else:
            copies = len(self._held) >= self._most_held or (
                0 < self._held_bytes > self._limits.nbytes // 2 - size
            )
            if len(self._memory[slot]) != size:
                self._memory[slot] = self._files[slot].view(size, writable=False)
            memory = np.frombuffer(self._memory[slot], np.uint8)
            # Views of views hold `memory` itself, so it lives as long as the last of them.
            view = self._held[slot] = _View(memory, self._freed.append)
            view.slot = slot
            self._held_bytes += size
            memory = _copy_of(memory[:end]) if copies else memory
            data = memory[start:end]
        try:
            return tag, unpack(data, memory)
        except Exception as error:
            add_note(error, f"{self.sender} sent it as number {tag % TAGS}, counted from 0.")
            raise

    def return_slots(self) -> None:
        """Tells the sender what was taken, and which slots are no longer viewed."""
        words, self._taken = _TAKEN * self._taken, 0
        while self._freed:
            view = self._freed.popleft()
            del self._held[view.slot]
            self._held_bytes -= len(self._memory[view.slot])
            words += bytes([view.slot])
        if words:
            with contextlib.suppress(BrokenPipeError):  # it has ended; its owner reports how
                os.write(self._writes.fd, words)


def _copy_of(memory: np.ndarray) -> np.ndarray:
    """A copy that is read-only for good, as shared memory is."""
    copy = aligned_empty(memory.shape, np.uint8)
    np.copyto(copy, memory)
    for array in (copy.base, copy):
        array.setflags(write=False)
    return copy


def make_channels(*limits: Limits) -> List[Tuple[Sender, Receiver]]:
    """Makes both ends of channels: one to `attach` here, one for a worker, then to close here."""
    with contextlib.ExitStack() as stack:

        def closed_on_error(descriptor: Any) -> Any:
            stack.callback(descriptor.close)
            return descriptor

        channels = []
        for limit in limits:
            fds = [*os.pipe(), *os.pipe()]
            records, announced, returned, back = [closed_on_error(Descriptor(fd)) for fd in fds]
            files = [closed_on_error(SharedFile()) for _ in range(limit.slots)]
            copies = [closed_on_error(SharedFile(os.dup(file.fd))) for file in files]
            sender = Sender(returned, announced, copies, limit)
            channels.append((sender, Receiver(records, back, files, limit)))
        stack.pop_all()
        return channels
