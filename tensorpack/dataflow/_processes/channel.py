"""A channel for objects between two processes: an end to send, and an end to receive.

A large object is written into one of a fixed number of *slots* of shared memory, each as large as
the largest object that was in it, and announced by a record in a pipe; a small one is in the pipe
itself. The receiver gives out arrays that view the slot. When the last of them is gone, it gives
the slot back, by one byte in another pipe. A consumer that keeps many arrays gets copies, so that
slots are free.
"""

import contextlib
import os
import struct
import weakref
from collections import deque
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tensorpack.utils._tracebacks import add_note

from .pickled import Packed, aligned, pack, unpack, write
from .shared_memory import SharedFile, ToClose, close_after_fork, poll_of

OBJECT = 0  # the kind of a record
FIRST_EVENT = 16  # kinds from here on are defined by the caller
_RECORD = struct.Struct("<BBQQQ")  # kind, slot, bytes of the pickle, size of the slot, tag
_IN_PIPE = 254  # in place of a slot
_HUNGRY = 255  # in place of a slot that is given back: the consumer waits, and keeps some
_PIPE_BUF = 4096  # bytes that are written at once, or not at all
_SMALL_BYTES = _PIPE_BUF - _RECORD.size
_STEP = 1 << 16  # bytes; sizes of slots are multiples of it
_CHUNK = 1 << 17  # more than a pipe holds
_MOST_ITEMS = 1000
_MOST_SLOTS = 16
_SLOTS_OF_ALL = 128  # a slot takes two descriptors, of 1024 that a process usually may have


class Limits(NamedTuple):
    """How much may be on the way in a channel: so many `items`, of which `slots` are large.

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
        return cls(min(items, most_slots), items, nbytes // channels)


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
        self._free = list(range(len(files)))  # the one that was used last is used next
        self._in_pipe = 0  # small objects that are on the way
        self._hungry = False
        self._interrupt = -1
        self._poll: Any = None

    def attach(self, interrupt: Optional[int] = None, blocks: bool = True) -> "Sender":
        """Prepares the end that this process uses.

        Args:
          interrupt: a descriptor; while it can be read, `Interrupted` is raised and nothing sent.
          blocks: whether a full pipe is waited for; else there is no room.
        """
        self._interrupt = -1 if interrupt is None else interrupt
        self._poll = poll_of(self.waits_for, *[] if interrupt is None else [interrupt])
        os.set_blocking(self._records.fileno(), blocks)
        close_after_fork(self)
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
        nbytes, in_pickle = packed.nbytes, len(packed.pickle)
        in_pipe = nbytes == in_pickle <= _SMALL_BYTES
        busy = len(self._files) - len(self._free) + self._in_pipe
        if busy >= self._limits.items or not (in_pipe or self._has_room(nbytes)):
            return False
        try:
            if in_pipe:
                self._write(OBJECT, _IN_PIPE, in_pickle, 0, tag, data=packed.pickle)
                self._in_pipe += 1
                return True
            slot = self._free[-1]
            write(packed, self._files[slot].view(self._sizes[slot], writable=True))
            self._write(OBJECT, slot, in_pickle, self._sizes[slot], tag)
        except BlockingIOError:
            return False
        self._free.pop()
        self._hungry = False
        return True

    def event(self, kind: int, tag: int = 0) -> None:
        """Sends a record without an object, in order with the objects."""
        self._write(kind, 0, 0, 0, tag)

    @property
    def waits_for(self) -> int:
        """A descriptor that can be read when there may be more room."""
        return self._returned.fileno()

    def close(self) -> None:
        self._to_close.close()

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return Sender, (self._records, self._returned, self._files, self._limits)

    def _write(self, kind: int, slot: int, *numbers: int, data: bytes = b"") -> None:
        os.write(self._records.fileno(), _RECORD.pack(kind, slot, *numbers) + data)

    def _has_room(self, nbytes: int) -> bool:
        """Makes the free slot that comes next large enough; returns whether it is."""
        if not self._free:
            return False
        slot = self._free[-1]
        growth = -(-nbytes // _STEP) * _STEP - self._sizes[slot]
        if growth <= 0:
            return True
        for other in self._free[:-1]:
            if sum(self._sizes) + growth > self._limits.nbytes:
                self._resize(other, 0)
        is_alone = len(self._free) == len(self._files)
        if sum(self._sizes) + growth > self._limits.nbytes and not (is_alone or self._hungry):
            return False
        self._resize(slot, self._sizes[slot] + growth)
        return True

    def _resize(self, slot: int, nbytes: int) -> None:
        self._sizes[slot] = 0
        self._files[slot].resize(nbytes)
        self._sizes[slot] = nbytes

    def _take_back(self, timeout: Optional[int]) -> None:
        """Takes what the receiver has given back; waits for it at most so many milliseconds."""
        descriptors = [fd for fd, _ in self._poll.poll(timeout)]
        if not descriptors:
            return
        if self._interrupt in descriptors:
            raise Interrupted
        data = os.read(self.waits_for, _CHUNK)
        if not data:
            raise BrokenPipeError("the receiver is closed")
        for slot in data:
            if slot == _HUNGRY:
                self._hungry = True
            elif slot == _IN_PIPE:
                self._in_pipe -= 1
            else:
                self._free.append(slot)


class _View(weakref.ref):
    """Refers to the memory of a slot that is here; knows which one, and its size in bytes."""

    __slots__ = ("nbytes", "slot")

    slot: int
    nbytes: int


class Receiver:
    """Receives objects; used by one thread, while their arrays may go to any.

    When the last view of a slot is gone, a deque notes it, without any Python code: an exception
    that a signal handler raises within a finalizer, such as a KeyboardInterrupt, would be lost. The
    slot goes back with the next call of a method.
    """

    def __init__(
        self, records: Connection, back: Connection, files: Sequence[SharedFile], limits: Limits
    ) -> None:
        self._records, self._back = records, back
        self._files, self._limits = list(files), limits
        self._to_close = ToClose(records, back, *files)
        self._data, self._begin = b"", 0  # that was sent, and what of it is not taken yet
        self._held: Dict[int, _View] = {}
        self._freed: Deque[_View] = deque()  # filled by any thread, in the midst of anything
        self._taken = 0  # small objects that are not given back yet
        self._is_hungry = self._ended = False
        self.sender = "The program"  # in messages

    def attach(self) -> "Receiver":
        """Prepares the end that this process uses; called once."""
        os.set_blocking(self._records.fileno(), False)
        close_after_fork(self)
        return self

    def fileno(self) -> int:
        """A descriptor that can be read when something has been sent, or the sender is gone."""
        return self._records.fileno()

    @property
    def ended(self) -> bool:
        """Whether the sender is gone and nothing is left of what it sent."""
        return self._ended and self._begin == len(self._data)

    def receive(self) -> bool:
        """Looks for what has been sent; returns whether there was something."""
        try:
            data = os.read(self._records.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        self._ended = not data
        self._data, self._begin = self._data[self._begin :] + data, 0
        return bool(data)

    def take(self) -> Optional[Tuple[int, int, Any]]:
        """Returns what came next, as its kind, tag and object; None if nothing is there yet."""
        if self._freed or self._taken > self._limits.items // 4:
            self.return_slots()
        if self._begin == len(self._data):
            return None
        kind, slot, in_pickle, nbytes, tag = _RECORD.unpack_from(self._data, self._begin)
        begin = self._begin + _RECORD.size
        self._begin = begin + in_pickle if kind == OBJECT and slot == _IN_PIPE else begin
        if kind != OBJECT:
            return kind, tag, None
        self._is_hungry = False
        try:
            if slot != _IN_PIPE:
                return kind, tag, self._from_slot(slot, in_pickle, nbytes)
            self._taken += 1
            return kind, tag, unpack(self._data[begin : self._begin])
        except Exception as error:
            add_note(error, f"{self.sender} sent it as number {tag}, counted from 0.")
            raise

    def return_slots(self) -> None:
        """Gives back the slots that are no longer viewed; called from time to time."""
        words, self._taken = [_IN_PIPE] * self._taken, 0
        while self._freed:
            slot = self._freed.popleft().slot
            del self._held[slot]
            words.append(slot)
        if words:
            self._give_back(*words)

    def is_waiting(self) -> None:
        """Tells the sender that this end waits for it, with all slots that it has given out."""
        self.return_slots()
        if self._held and not self._is_hungry:  # once: a sender that is busy does not listen
            self._is_hungry = True
            self._give_back(_HUNGRY)

    def close(self) -> None:
        """Closes the pipes and the memory; arrays that were given out stay valid."""
        self._to_close.close()
        self._data = b""

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return Receiver, (self._records, self._back, self._files, self._limits)

    def _from_slot(self, slot: int, in_pickle: int, nbytes: int) -> Any:
        kept = sum(view.nbytes for view in self._held.values())
        # The rest are to be where objects come in while a consumer keeps these.
        most = max(self._limits.slots - 2, self._limits.slots // 2)
        copies = len(self._held) >= most or 0 < kept > self._limits.nbytes // 2 - nbytes
        memory = self._files[slot].view(nbytes, writable=False)
        # Views of views hold `memory` itself, so it lives as long as the last of them.
        view = self._held[slot] = _View(memory, self._freed.append)
        view.slot, view.nbytes = slot, nbytes
        return unpack(memory[:in_pickle], memory, aligned(in_pickle), copies)

    def _give_back(self, *words: int) -> None:
        with contextlib.suppress(BrokenPipeError):  # the sender has ended; its owner reports how
            os.write(self._back.fileno(), bytes(words))


def make_channel(limits: Limits) -> Tuple[Sender, Receiver]:
    """Makes both ends: one to `attach` here, one to give to a worker and then to close here."""
    with contextlib.ExitStack() as on_error:
        records, announced = Pipe(duplex=False)
        returned, back = Pipe(duplex=False)
        files: List[SharedFile] = []
        copies: List[SharedFile] = []
        for _ in range(limits.slots):
            files.append(SharedFile())
            on_error.callback(files[-1].close)
            copies.append(files[-1].copy())
            on_error.callback(copies[-1].close)
        on_error.pop_all()
    return Sender(announced, returned, copies, limits), Receiver(records, back, files, limits)
