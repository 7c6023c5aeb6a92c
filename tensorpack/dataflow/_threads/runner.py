"""The flow that iterates several flows, each in a thread of its own."""

import functools
import itertools
import threading
import weakref
from contextlib import closing
from typing import Any, Callable, Iterator, Optional

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count

from .._flow import ProcessLocal, call_optional, is_flow, what_instead
from .._length import length_of, length_or_none
from ..base import DataFlow
from ..repeat import RepeatedData
from .workers import BUFFER_BYTES, Buffer, ThreadPool, nbytes_of


class MultiThreadRunner(DataFlow):
    """Iterates several flows, each in a thread of its own, and yields what comes first.

    The flows are repeated forever. A pass has as many datapoints of the mixture as the first of the
    flows has in one of its own; it has no end if that length is not known. Passes are not
    independent: each continues where the one before it was left, and passes at the same time share
    the datapoints between them.

    The threads start at `reset_state`, which replaces flows and threads by new ones, or when a pass
    begins. They continue until `close`, an error, or the end of this object. An error of a flow is
    raised by the pass as soon as it is known, with the traceback of the thread; the next pass has
    new flows and threads. No state is kept.
    """

    @accepts_old_keywords(nr_prefetch="num_prefetch", nr_thread="num_thread")
    def __init__(
        self,
        get_df: Callable[[], DataFlow],
        num_prefetch: int,
        num_thread: int,
        *,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """
        Args:
          get_df: returns a flow, another one each time. It is called once for each thread, in the
            thread that resets or iterates, where the flows are reset too.
          num_prefetch: how many datapoints may be made and not yet be yielded.
          num_thread: the number of threads and flows.
          buffer_bytes: as in `MultiThreadMapData`.
        """
        if not callable(get_df):
            raise TypeError(
                f"{type(self).__name__} takes a function that returns a flow, but got "
                f"{type(get_df).__name__}. Each thread needs a flow of its own."
            )
        self.get_df = get_df
        self.num_prefetch = as_count(self, "num_prefetch", num_prefetch)
        self.num_thread = as_count(self, "num_thread", num_thread)
        self._mixed = self.num_thread  # so many flows, in one pass
        self.buffer_bytes = as_count(self, "buffer_bytes", buffer_bytes)
        self._mixture: ProcessLocal[_Mixture] = ProcessLocal(_Mixture)

    def __len__(self) -> int:
        return length_of(self._mixture.get(self).flows[0])

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass; its iterator raises DataFlowTerminated if the flow is closed or reset."""
        mixture = self._started()
        try:
            length = length_or_none(mixture.flows[0])
        except BaseException:
            self.close()
            raise
        return self._pass(mixture, length)

    def _pass(self, mixture: "_Mixture", length: Optional[int]) -> Iterator[Any]:
        for _ in itertools.count() if length is None else range(length):
            try:
                datapoint = mixture.get()
            except BaseException:
                if mixture.buffer.error is not None and mixture is self._mixture.current():
                    self.close()
                raise
            yield datapoint

    def reset_state(self) -> None:
        """Makes and resets the flows, and starts the threads; ends those there were before."""
        mixture = self._mixture.current()
        if mixture is not None and mixture.started:
            self.close()
        self._started()

    def start_processes(self) -> None:
        for flow in self._mixture.get(self).flows:
            call_optional(flow, "start_processes")

    def close(self) -> None:
        mixture = self._mixture.take()
        if mixture is not None:
            mixture.close()

    @property
    def seeded(self) -> bool:
        """Whether there is one flow, and it is: the order of several depends on their speed."""
        return self.num_thread == 1 and getattr(self._mixture.get(self).flows[0], "seeded", True)

    def _started(self) -> "_Mixture":
        mixture = self._mixture.get(self)
        try:
            mixture.start()
        except BaseException:
            self.close()
            raise
        return mixture


class _Mixture:
    """The flows, their threads and the buffer; it ends on `close`, an error, or with its owner."""

    def __init__(self, owner: MultiThreadRunner) -> None:
        name = type(owner).__name__
        self.flows = [owner.get_df() for _ in range(owner.num_thread)]
        for flow in self.flows:
            if not is_flow(flow):
                found = what_instead(flow)
                raise TypeError(f"{name} needs a DataFlow from get_df(), but got {found}")
        if len({id(flow) for flow in self.flows}) < len(self.flows):
            raise ValueError(
                f"{name} got the same flow twice from get_df(). Each thread needs a flow of its "
                "own: make a new one in every call."
            )
        self.started = False
        self._starting = threading.Lock()
        self.buffer = Buffer(name, owner.num_prefetch, owner.buffer_bytes)
        self._pool = ThreadPool(name)
        # Not a method of this object, which would keep itself alive.
        self._owner = weakref.ref(owner, functools.partial(_end, self.buffer, self._pool))

    def start(self) -> None:
        """Resets the flows and starts the threads, unless that was done before."""
        with self._starting:
            if not self.started:
                for flow in self.flows:
                    flow.reset_state()
                self.started = True
                self._pool.start(self._work, len(self.flows))

    def get(self) -> Any:
        """Waits for a datapoint; raises the error of a flow, or DataFlowTerminated if closed."""
        datapoint, nbytes = self.buffer.get()
        self.buffer.release(nbytes)
        return datapoint

    def close(self) -> None:
        self.buffer.close()
        try:
            for flow in self.flows:  # before the threads are joined: one may wait in its flow
                call_optional(flow, "close")
        finally:
            self._pool.join()

    def _work(self, number: int) -> None:
        try:
            repeated: Any = iter(RepeatedData(self.flows[number], -1))
            with closing(repeated) as datapoints:
                while self.buffer.reserve():
                    self._put(next(datapoints))
        except BaseException as error:  # a thread must not end silently
            self.buffer.fail(error)

    def _put(self, datapoint: Any) -> None:
        self.buffer.put(datapoint, nbytes_of(datapoint))


def _end(buffer: Buffer, pool: ThreadPool, owner: Any) -> None:
    buffer.close()
    pool.join()


MultiThreadPrefetchData = MultiThreadRunner
