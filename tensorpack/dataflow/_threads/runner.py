"""The flow that iterates several flows, each in a thread of its own."""

import itertools
import os
from typing import Any, Callable, Dict, Iterator, List, Optional

from tensorpack.utils.checks import check_counts

from .._flow import is_flow, what_instead
from .._legacy_names import accepts_old_keywords
from .._length import length_of, length_or_none
from ..base import DataFlow
from .mixture import Mixture
from .numbers import BUFFER_BYTES

__all__ = ["MultiThreadPrefetchData", "MultiThreadRunner"]


class MultiThreadRunner(DataFlow):
    """Iterates several flows, each in a thread of its own, and yields what comes first.

    The flows are iterated for ever. A pass has as many datapoints of the mixture as the first of
    the flows has in one of its own; it has no end if that length is not known. Passes are not
    independent: one goes on where the one before it was left, and passes at the same time share
    the datapoints between them.

    The threads start at `reset_state`, or when a pass begins. They go on between passes, until
    `close`, an error, or the end of this object. `reset_state` replaces flows and threads by new
    ones. An error of a flow is raised by the pass as soon as it is known, with the traceback of
    the thread; the next pass has new flows and threads. No state is kept.
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
          buffer_bytes: no more are made while datapoints of as many bytes wait. The bytes of
            arrays, texts and the like count; those of what the threads have at hand come on top.

        Raises:
          TypeError: `get_df` cannot be called, or a number is no integer.
          ValueError: a number is less than one.
        """
        if not callable(get_df):
            raise TypeError(
                f"{type(self).__name__} takes a function that returns a flow, but got "
                f"{type(get_df).__name__}. Each thread needs a flow of its own."
            )
        check_counts(
            self, num_prefetch=num_prefetch, num_thread=num_thread, buffer_bytes=buffer_bytes
        )
        self.get_df = get_df
        self.num_prefetch = num_prefetch
        self.num_thread = num_thread
        self.buffer_bytes = buffer_bytes
        self._pid = os.getpid()
        self._flows: List[DataFlow] = []
        self._mixture: Optional[Mixture] = None

    def __len__(self) -> int:
        return length_of(self._own_flows()[0])

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          DataFlowTerminated: the flow was closed or reset meanwhile.
          RuntimeError: one of the flows yielded nothing in a whole pass.
        """
        mixture = self._running()
        try:
            length = length_or_none(self._own_flows()[0])
        except BaseException:
            self.close()
            raise
        return self._pass(mixture, length)

    def _pass(self, mixture: Mixture, length: Optional[int]) -> Iterator[Any]:
        for _ in itertools.count() if length is None else range(length):
            try:
                datapoint = mixture.get()
            except BaseException:
                if mixture.failed and mixture is self._mixture:
                    self.close()
                raise
            yield datapoint

    def reset_state(self) -> None:
        """Makes and resets the flows, and starts the threads; ends those there were before."""
        if self._mixture is not None:
            self.close()
        self._running()

    def start_processes(self) -> None:
        for flow in self._own_flows():
            start = getattr(flow, "start_processes", None)
            if start is not None:
                start()

    def close(self) -> None:
        """Ends and joins the threads, and closes the flows. Passes that are under way are over."""
        self._forget_parent()
        mixture, self._mixture = self._mixture, None
        flows, self._flows = self._flows, []
        if mixture is not None:
            mixture.stop()
        try:
            for flow in flows:  # before the threads are joined, for one may wait within its flow
                close = getattr(flow, "close", None)
                if close is not None:
                    close()
        finally:
            if mixture is not None:
                mixture.join()

    @property
    def seeded(self) -> bool:
        """Whether there is one flow, and it is: the order of several depends on their speed."""
        return self.num_thread == 1 and getattr(self._own_flows()[0], "seeded", True)

    def _running(self) -> Mixture:
        self._forget_parent()
        if self._mixture is None:
            flows = self._own_flows()
            for flow in flows:
                flow.reset_state()
            self._mixture = Mixture(self, flows, self.num_prefetch, self.buffer_bytes)
            try:
                self._mixture.start()
            except BaseException:
                self.close()
                raise
        return self._mixture

    def _own_flows(self) -> List[DataFlow]:
        self._forget_parent()
        if not self._flows:
            flows = [self._make_flow() for _ in range(self.num_thread)]
            if len({id(flow) for flow in flows}) < self.num_thread:
                raise ValueError(
                    f"{type(self).__name__} got the same flow twice from get_df(). Each thread "
                    "needs a flow of its own: make a new one in every call."
                )
            self._flows = flows
        return self._flows

    def _make_flow(self) -> DataFlow:
        flow = self.get_df()
        if not is_flow(flow):
            name = type(self).__name__
            raise TypeError(f"{name} needs a DataFlow from get_df(), but got {what_instead(flow)}")
        return flow

    def _forget_parent(self) -> None:
        """Forgets the flows and threads of the process from which this one was forked."""
        if self._pid != os.getpid():
            self._pid, self._flows, self._mixture = os.getpid(), [], None

    def __getstate__(self) -> Dict[str, Any]:
        # Threads, and the flows that they iterate, cannot travel to another process.
        return {**self.__dict__, "_flows": [], "_mixture": None}


MultiThreadPrefetchData = MultiThreadRunner
