"""A gate between threads that work piece by piece and one that wants to find nothing half done."""

import threading
from contextlib import contextmanager
from typing import Any, ContextManager, Iterator, Optional

__all__ = ["Gate"]


class Gate:
    """Lets any number of threads work at the same time, and holds them between pieces of work.

    ::

        working threads:    with gate.piece(): ...   # one piece of work
        the other thread:   with gate.pause(): ...   # every piece is whole, none begins

    Unlike with a lock, who works does not wait for others who work, and who wants a pause gets it
    after the pieces that are under way. Do not ask for a pause within a piece.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._inside = 0  # pieces that are under way
        self._pauses = 0
        self._piece = _Piece(self)

    def piece(self) -> ContextManager[None]:
        """Makes the block one piece of work, which begins when there is no pause."""
        return self._piece

    @contextmanager
    def pause(self, timeout: Optional[float] = None) -> Iterator[bool]:
        """No piece begins during the block, and none is under way.

        Args:
          timeout: seconds to wait for the pieces that are under way; None for no limit.

        Returns:
          a context manager whose value is False if a piece was still under way after that.
        """
        with self._change:
            self._pauses += 1
        try:
            with self._change:
                calm = self._change.wait_for(lambda: not self._inside, timeout)
            yield calm
        finally:
            with self._change:
                self._pauses -= 1
                self._change.notify_all()

    def _enter(self) -> None:
        with self._change:
            while self._pauses:
                self._change.wait()
            self._inside += 1

    def _leave(self) -> None:
        with self._change:
            self._inside -= 1
            if self._pauses:
                self._change.notify_all()


class _Piece:
    """Goes through a gate. No generator, because that takes several times as long."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __enter__(self) -> None:
        self._gate._enter()

    def __exit__(self, *exc_info: Any) -> None:
        self._gate._leave()
