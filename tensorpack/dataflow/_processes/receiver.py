"""The end of a channel that objects come out of; see `channel.py`."""

import os
import weakref
from collections import deque
from multiprocessing.connection import Connection
from typing import Any, Callable, Deque, Dict, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.aligned import aligned_empty

from .channel import (
    FIRST_EVENT,
    HUNGRY,
    LAST_OBJECT,
    OBJECT,
    RECORD,
    RETURN,
    SLOT_ENDS,
    Limits,
    channel_parts,
)
from .descriptor import SharedFile, closed_after_fork
from .layouts import Unpacking
from .sender import Sender

__all__ = ["Receiver", "make_channel"]

_CHUNK = RECORD.size << 11  # more than a pipe holds, so that a read ends at the end of a record


class _View(weakref.ref):
    """Refers to the memory of a slot that is here; knows which one, and its size in bytes."""

    __slots__ = ("size", "slot")

    slot: int
    size: int


class Receiver:
    """Receives objects; used by one thread, while their arrays may go to any.

    When nobody views a slot any more, that is only noted, by a deque and so without any Python
    code: what a signal handler raises in the midst of a finalizer, such as a KeyboardInterrupt,
    would be lost. The slot goes back when somebody next looks for objects.

    Args:
      records: read end.
      back: write end.
      files: the slots.
      limits: see there.
    """

    def __init__(
        self, records: Connection, back: Connection, files: Sequence[SharedFile], limits: Limits
    ) -> None:
        self._records, self._back = records, back
        self._files, self._limits = list(files), limits
        self._pending: Deque[Tuple[int, ...]] = deque()
        self._filling: Dict[int, Tuple[np.ndarray, bool]] = {}
        self._unpack = Unpacking()
        self._held: Dict[int, _View] = {}
        self._freed: Deque[_View] = deque()  # filled by any thread, in the midst of anything
        self._told = 0  # how many slots the sender believes to be kept by us while we wait
        self._ended = False

    def stays(self) -> "Receiver":
        """To be called once on the end that is used in this process."""
        os.set_blocking(self._records.fileno(), False)
        closed_after_fork(self)
        return self

    def fileno(self) -> int:
        """A descriptor that can be read when something has been sent, or the sender is gone."""
        return self._records.fileno()

    @property
    def ended(self) -> bool:
        """Whether the sender is gone and nothing is left of what it sent."""
        return self._ended and not self._pending

    def receive(self) -> bool:
        """Looks for what has been sent; returns whether there was something."""
        try:
            data = os.read(self._records.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        self._ended = not data
        self._pending.extend(RECORD.iter_unpack(data))
        return bool(data)

    def take(self) -> Optional[Tuple[int, int, Any]]:
        """Returns what came next, as its kind, tag and object; None if nothing is there yet."""
        self.return_slots()
        while self._pending:
            kind, slot, structure, start, end, size, tag = self._pending.popleft()
            if kind >= FIRST_EVENT:
                return kind, tag, None
            if kind == SLOT_ENDS:
                del self._filling[slot]
                continue
            try:
                return OBJECT, tag, self._object(slot, structure, start, end, size)
            finally:
                if kind == LAST_OBJECT:
                    self._filling.pop(slot, None)
        return None

    def return_slots(self) -> None:
        """Gives those back that nobody views any more. To be called now and then."""
        if not self._freed:
            return
        words = []
        while self._freed:
            slot = self._freed.popleft().slot
            del self._held[slot]
            self._told = max(0, self._told - 1)
            words.append(slot)
        self._send_back(*words)

    def is_waiting(self) -> None:
        """Tells the sender that this end waits for it, with all slots that it has given out."""
        self.return_slots()
        if len(self._held) != self._told:  # once: a sender that is busy does not listen
            self._told = len(self._held)
            self._send_back(HUNGRY | self._told)

    def close(self) -> None:
        """Lets the pipes and the memory go; arrays that were given out stay valid."""
        self._records.close()
        self._back.close()
        for each in self._files:
            each.close()
        self._pending.clear()
        self._filling.clear()

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return Receiver, (self._records, self._back, self._files, self._limits)

    def _object(self, slot: int, structure: int, start: int, end: int, size: int) -> Any:
        if slot not in self._filling:
            self._filling[slot] = self._opened(slot, size)
        memory, copied = self._filling[slot]
        return self._unpack(memory, structure, start, end, _private if copied else None)

    def _opened(self, slot: int, size: int) -> Tuple[np.ndarray, bool]:
        memory = self._files[slot].view(size, writable=False)
        # The rest are to be where objects come in while a consumer keeps these.
        most = max(self._limits.slots - 2, self._limits.slots // 2)
        kept = sum(view.size for view in self._held.values())
        copied = len(self._held) >= most or 0 < kept > self._limits.nbytes // 2 - size
        # views of views hold `memory` itself, so it lives as long as the last of them
        view = self._held[slot] = _View(memory, self._freed.append)
        view.slot, view.size = slot, size
        return memory, copied

    def _send_back(self, *words: int) -> None:
        try:
            os.write(self._back.fileno(), b"".join(RETURN.pack(word) for word in words))
        except BrokenPipeError:
            pass  # the sender has ended; whoever waits for it hears how


def make_channel(limits: Limits) -> Tuple[Sender, Receiver]:
    """Makes both ends. Call `stays` on the one that is used here; give the other one to a process,
    and close it here when that has started.

    Raises:
      OSError: there are not enough descriptors.
    """
    sending, receiving = channel_parts(limits.slots)
    return Sender(*sending, limits), Receiver(*receiving, limits)


def _private(array: np.ndarray) -> np.ndarray:
    """A copy that is read-only for good, as what is in the slot is."""
    copy = aligned_empty(array.shape, array.dtype)
    np.copyto(copy, array)
    for each in (copy.base, copy):
        if each is not None:
            each.setflags(write=False)
    return copy
