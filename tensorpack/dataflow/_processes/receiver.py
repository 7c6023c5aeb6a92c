"""The end of a channel that objects come out of; see `sender.py`."""

import contextlib
import os
import weakref
from collections import deque
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils._tracebacks import add_note
from tensorpack.utils.packing.packed_arrays import aligned_empty
from tensorpack.utils.packing.packed_layouts import LayoutReader

from .sender import (
    FIRST_EVENT,
    HUNGRY,
    LAST_OBJECT,
    OBJECT,
    RECORD,
    RETURN,
    SLOT_ENDS,
    Limits,
    Sender,
)
from .shared_memory import SharedFile, ToClose, close_after_fork

_CHUNK = RECORD.size << 11  # more than a pipe holds, so that a read ends at the end of a record


class _View(weakref.ref):
    """Refers to the memory of a slot that is here; knows which one, and its size in bytes."""

    __slots__ = ("size", "slot")

    slot: int
    size: int


class Receiver:
    """Receives objects; used by one thread, while their arrays may go to any.

    When the last view of a slot is gone, a deque notes it, without any Python code: an exception
    that a signal handler raises within a finalizer, such as a KeyboardInterrupt, would be lost. The
    slot goes back with the next call of a method.

    The codec (`LayoutReader.unpack`) may return views of the memory that it is given, of any size,
    unless it is also given `keep`: then nothing that it returns views the memory. Otherwise the
    slot of a consumer that keeps all it gets would never go back, and both ends would wait.
    """

    def __init__(
        self, records: Connection, back: Connection, files: Sequence[SharedFile], limits: Limits
    ) -> None:
        self._records, self._back = records, back
        self._files, self._limits = list(files), limits
        self._to_close = ToClose(records, back, *files)
        self._pending: Deque[Tuple[int, ...]] = deque()
        self._filling: Dict[int, Tuple[np.ndarray, Any]] = {}
        self._layouts = LayoutReader()
        self._held: Dict[int, _View] = {}
        self._freed: Deque[_View] = deque()  # filled by any thread, in the midst of anything
        self._told = 0  # how many slots the sender believes to be kept by us while we wait
        self._ended = False
        self.sender = "The program"

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
            kind, layout, slot, structure, start, end, size, tag = self._pending.popleft()
            if kind >= FIRST_EVENT:
                return kind, tag, None
            if kind == SLOT_ENDS:
                self._leave(slot)
                continue
            memory, keep = self._opened(slot, size)
            try:
                obj = self._layouts.unpack(memory, structure, start, end, keep, layout)
            except Exception as error:
                add_note(error, f"{self.sender} sent it as number {tag}, counted from 0.")
                raise
            del memory
            if kind == LAST_OBJECT:
                self._leave(slot)
            return OBJECT, tag, obj
        return None

    def return_slots(self) -> None:
        """Sends back the slots that are no longer viewed; called from time to time."""
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
        """Closes the pipes and the memory; arrays that were given out stay valid."""
        self._to_close.close()
        self._pending.clear()
        self._filling.clear()

    def __reduce__(self) -> Tuple[Callable, Tuple]:
        return Receiver, (self._records, self._back, self._files, self._limits)

    def _opened(self, slot: int, size: int) -> Tuple[np.ndarray, Any]:
        """Returns the memory of a slot, and what makes copies of its arrays, or None."""
        if slot in self._filling:
            return self._filling[slot]
        memory = self._files[slot].view(size, writable=False)
        # The rest are to be where objects come in while a consumer keeps these.
        most = max(self._limits.slots - 2, self._limits.slots // 2)
        kept = sum(view.size for view in self._held.values())
        copied = len(self._held) >= most or 0 < kept > self._limits.nbytes // 2 - size
        # Views of views hold `memory` itself, so it lives as long as the last of them.
        view = self._held[slot] = _View(memory, self._freed.append)
        view.slot, view.size = slot, size
        self._filling[slot] = memory, _private if copied else None
        return self._filling[slot]

    def _leave(self, slot: int) -> None:
        """Lets go of a slot of which all objects were taken; its views keep it."""
        copied = self._filling.pop(slot)[1] is not None
        if copied and self._held[slot]() is not None:
            raise RuntimeError(
                "The codec returned a view of shared memory where it was to return copies: the "
                "memory would never be free again."
            )

    def _send_back(self, *words: int) -> None:
        with contextlib.suppress(BrokenPipeError):  # the sender has ended; its owner reports how
            os.write(self._back.fileno(), b"".join(RETURN.pack(word) for word in words))


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


def _private(array: np.ndarray) -> np.ndarray:
    """A copy that is read-only for good, as what is in the slot is."""
    copy = aligned_empty(array.shape, array.dtype)
    np.copyto(copy, array)
    for each in (copy.base, copy):
        if each is not None:
            each.setflags(write=False)
    return copy
