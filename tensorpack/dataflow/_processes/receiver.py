"""The end of a channel that objects come out of; see `_channel.py`."""

import os
import threading
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


class Receiver:
    """Receives objects; used by one thread, while their arrays may go to any.

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
        self._lock = threading.Lock()  # of all below
        self._held: Dict[int, int] = {}  # bytes of the slots that are here
        self._told = 0  # how many slots the sender believes to be kept by us while we wait
        self._freed: Deque[int] = deque()  # needs no lock
        self._owner = os.getpid()
        self._closed = False
        self._ended = False

    def stays(self) -> "Receiver":
        """To be called once on the end that is used in this process."""
        self._owner = os.getpid()
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

    def is_waiting(self) -> None:
        """Tells the sender that this end waits for it, with all slots that it has given out."""
        with self._lock:
            if len(self._held) != self._told:  # once: a sender that is busy does not listen
                self._told = len(self._held)
                self._send_back(HUNGRY | self._told)
        self._return_freed()

    def close(self) -> None:
        """Lets the pipes and the memory go; arrays that were given out stay valid."""
        if os.getpid() == self._owner:  # in a forked copy the lock may be held, for ever
            with self._lock:
                self._closed = True
        self._closed = True
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
        with self._lock:
            # The rest are to be where objects come in while a consumer keeps these.
            most = max(self._limits.slots - 2, self._limits.slots // 2)
            kept = sum(self._held.values())
            copied = len(self._held) >= most or 0 < kept > self._limits.nbytes // 2 - size
            self._held[slot] = size
        # views of views hold `memory` itself, so it lives as long as the last of them
        weakref.finalize(memory, self._give_back, slot).atexit = False
        self._return_freed()
        return memory, copied

    def _give_back(self, slot: int) -> None:
        """Called when nobody views a slot any more: by any thread, in the midst of anything."""
        if os.getpid() == self._owner:
            self._freed.append(slot)
            self._return_freed()

    def _return_freed(self) -> None:
        # Whoever has the lock looks again after having let it go, so nobody needs to wait for it:
        # this thread may be the one that has it.
        while self._freed and self._lock.acquire(blocking=False):
            try:
                while self._freed:
                    slot = self._freed.popleft()
                    del self._held[slot]
                    self._told = max(0, self._told - 1)
                    self._send_back(slot)
            finally:
                self._lock.release()

    def _send_back(self, word: int) -> None:
        if self._closed:
            return
        try:
            os.write(self._back.fileno(), RETURN.pack(word))
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
