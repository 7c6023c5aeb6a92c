"""Keeps playing and training in step, and holds both between two pieces of work for a save."""

import threading
from contextlib import contextmanager
from typing import Any, Iterator, Optional


class Pacer:
    """Coordinates the thread that plays with the thread that samples batches.

    ::

        sampling:  with pacer: ...      # one piece of work: a batch
                   pacer.grant()        # allows the transitions of one batch
        playing:   pacer.wait()         # for something that is granted
                   with pacer: ...      # one piece of work: a tick of all games
                       pacer.spend(n)   # which played n transitions
        saving:    with pacer.pause():  # no piece is half done, and none begins

    Each batch grants `grant` transitions. Sampling waits while playing is `max_grants` grants
    behind. A tick may play more than was granted, where many environments move at once; later
    grants pay for it. Pieces of work run at the same time as each other. Do not ask for a pause
    within a piece. Thread-safe.
    """

    def __init__(self, grant: int, max_grants: int = 5) -> None:
        self._grant = grant
        self._max_open = grant * max_grants
        self._open = 0
        self._closed = False
        self._num_running = 0  # pieces of work that are under way
        self._pauses = 0
        self._condition = threading.Condition()

    @property
    def open(self) -> int:
        """Transitions that are granted and not yet played; negative if played in advance."""
        return self._open

    @open.setter
    def open(self, count: int) -> None:
        with self._condition:
            self._open = count
            self._condition.notify_all()

    def grant(self) -> bool:
        """Grants the transitions of one batch, as soon as there is room; False once closed."""
        with self._condition:
            self._condition.wait_for(
                lambda: self._closed or self._open + self._grant <= self._max_open
            )
            if not self._closed:
                self._open += self._grant
                self._condition.notify_all()
            return not self._closed

    def wait(self) -> bool:
        """Waits until there is something to play; returns False once closed."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._open > 0)
            return not self._closed

    def spend(self, count: int) -> None:
        """Takes `count` transitions off what is open: they were played."""
        with self._condition:
            self._open -= count
            self._condition.notify_all()

    def close(self) -> None:
        """Ends `grant` and `wait` for ever, also those that wait now."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def __enter__(self) -> None:
        with self._condition:
            self._condition.wait_for(lambda: not self._pauses)
            self._num_running += 1

    def __exit__(self, *exc_info: Any) -> None:
        with self._condition:
            self._num_running -= 1
            if self._pauses:
                self._condition.notify_all()

    @contextmanager
    def pause(self, timeout: Optional[float] = None) -> Iterator[bool]:
        """Holds all work: no piece begins during the block, and none is half done.

        Yields False if one was still under way after `timeout` seconds; None sets no limit.
        """
        with self._condition:
            self._pauses += 1
        try:
            with self._condition:
                calm = self._condition.wait_for(lambda: not self._num_running, timeout)
            yield calm
        finally:
            with self._condition:
                self._pauses -= 1
                self._condition.notify_all()
