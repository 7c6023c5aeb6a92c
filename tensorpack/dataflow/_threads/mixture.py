"""Several flows that are iterated for ever, each in a thread, and their datapoints as they come."""

import functools
import weakref
from contextlib import closing
from typing import Any, Generator, Sequence

from .buffer import Buffer
from .pool import ThreadPool
from .size import nbytes_of

__all__ = ["Mixture"]


class Mixture:
    """The threads and the buffer.

    The threads end when they are told to, when one of them breaks, and when the owner is gone.
    """

    def __init__(self, owner: Any, flows: Sequence[Any], max_items: int, max_bytes: int) -> None:
        """
        Args:
          owner: the flow for which they work; it is not kept alive.
          flows: one for each thread, reset already.
          max_items: the number of datapoints that may wait.
          max_bytes: their bytes, see `Buffer`.
        """
        name = type(owner).__name__
        self._flows = list(flows)
        self._buffer = Buffer(name, max_items, max_bytes)
        self._pool = ThreadPool(name)
        # Not by a method of this object, which would then keep itself alive.
        gone = functools.partial(_end, self._buffer, self._pool)
        self._owner = weakref.ref(owner, gone)

    @property
    def failed(self) -> bool:
        """Whether a flow has raised an error."""
        return self._buffer.failed

    def start(self) -> None:
        """Starts the threads."""
        self._pool.start(self._work, len(self._flows))

    def get(self) -> Any:
        """Waits for a datapoint.

        Raises:
          DataFlowTerminated: `stop` was called.
          BaseException: what a flow has raised, with the traceback of the thread.
        """
        datapoint, nbytes = self._buffer.get()
        self._buffer.release(nbytes)
        return datapoint

    def stop(self) -> None:
        """Tells the threads to end, and wakes those who wait; waits for none."""
        self._buffer.close()

    def join(self) -> bool:
        """Waits for the threads, after `stop`; see `ThreadPool.join`."""
        return self._pool.join()

    def _work(self, number: int) -> None:
        try:
            with closing(_endless(self._flows[number])) as datapoints:
                while self._buffer.reserve():
                    self._put(next(datapoints))
        except BaseException as error:  # nothing ends a thread without a word
            self._buffer.fail(error)

    def _put(self, datapoint: Any) -> None:
        self._buffer.put(datapoint, nbytes_of(datapoint))


def _endless(flow: Any) -> Generator[Any, None, None]:
    number = 0
    while True:
        number += 1
        empty = True
        for datapoint in flow:
            empty = False
            yield datapoint
        if empty:
            raise RuntimeError(
                f"{type(flow).__name__} yielded nothing in pass {number}, so iterating it for ever "
                "would never end. Is it empty, or can it be read only once?"
            )


def _end(buffer: Buffer, pool: ThreadPool, owner: Any) -> None:
    buffer.close()
    pool.join()
