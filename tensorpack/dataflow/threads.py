"""Flows that work in threads of this process: a function in several threads, and several flows.

Threads share memory, so nothing is copied or sent, but Python runs only one of them at a time. They
help where the work releases the interpreter: files, sockets, numpy, OpenCV.
"""

from typing import Any, Callable, Dict, Iterator, Optional

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count, check_counts
from tensorpack.utils.workers.processes import usable_cores

from ._flow import ProcessLocal, check_state
from ._threads.map import MapPass, Passes
from ._threads.runner import MultiThreadPrefetchData, MultiThreadRunner
from ._threads.workers import BUFFER_BYTES
from .base import DataFlow, ProxyDataFlow, StateNotKept
from .map import checked_function

__all__ = [
    "MultiThreadMapData",
    "MultiThreadPrefetchData",
    "MultiThreadRunner",
    "ThreadedMapData",
]


class MultiThreadMapData(ProxyDataFlow):
    """Applies a function to every datapoint in several threads; None drops the datapoint.

    A pass has the datapoints of a pass of `ds`, less those that are dropped, and then ends; in
    earlier releases it was endless unless strict. `len` is that of the wrapped flow, so it is too
    large if datapoints are dropped.

    Datapoints come in the order in which the function completes them. With `strict=True` they come
    in that of `ds`, and the result is that of `MapData` whatever the threads do, provided that
    calls of the function do not change what other calls see, and share no random stream.

    Every pass has its own threads: they start with its first datapoint, and are joined when it
    ends, raises, is closed or is abandoned. They read ahead in `ds`, one thread at a time, also
    where several passes are under way. A pass that is left early may have read more or less of it;
    if `ds` draws random numbers as it goes, later passes draw others.

    An error of the function or of `ds` is raised by the pass with the traceback of the thread, as
    soon as it is known, or if strict in the place of the datapoint. A function that never returns
    cannot be ended: its thread is left behind after two seconds, with a warning.

    If strict, it keeps a state: that of `ds` after the datapoint that was yielded last, whatever
    has been read ahead.
    """

    # The state of `ds` after what was yielded last; None where that is the one it has itself.
    _position: Any = None

    @accepts_old_keywords(nr_thread="num_thread")
    def __init__(
        self,
        ds: DataFlow,
        num_thread: Optional[int] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        buffer_size: int = 200,
        strict: bool = False,
        *,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          num_thread: the number of threads; None for the number of cores that may be used.
          map_func: takes a datapoint and returns a datapoint, or None to drop it. It is called in
            several threads at once. It may change the list or dict it gets; the components in it
            are not copied.
          buffer_size: how many datapoints may be taken from `ds` and not yet be yielded.
          buffer_bytes: no more are taken while finished ones of as many bytes wait. Arrays, texts
            and the like are measured; datapoints that the threads are working on are not counted.
          strict: whether to keep the order of `ds`.
        """
        super().__init__(ds)
        self.num_thread = usable_cores() if num_thread is None else num_thread
        self.map_func = checked_function(self, map_func)
        self.buffer_size = buffer_size
        self.buffer_bytes = as_count(self, "buffer_bytes", buffer_bytes)
        self.waiting_limits = [(self.buffer_size, self.buffer_bytes)]
        self.strict = strict
        check_counts(self, num_thread=self.num_thread, buffer_size=buffer_size)
        self._passes = ProcessLocal(Passes)  # threads do not survive a fork

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          DataFlowTerminated: the flow was closed or reset meanwhile.
          RuntimeError: the function raised StopIteration, or the system gives no more threads.
        """
        passes = self._passes.get()
        this = MapPass(self, passes)
        self._position = this.first_state
        return self._pass(passes, this)

    def _pass(self, passes: Passes, this: MapPass) -> Iterator[Any]:
        try:
            for result in this.results():
                self._position = result.state
                yield result.value
            self._position = this.last_state
        finally:
            this.stop()
            passes.join(this)

    def reset_state(self) -> None:
        """Prepares the wrapped flow. Passes that are under way are over."""
        passes = self._passes.get()
        for each in passes.stop_all():
            passes.join(each)
        super().reset_state()
        self._position = None

    def close(self) -> None:
        """Ends the passes that are under way, joins their threads, and closes the wrapped flow."""
        passes = self._passes.get()
        stopped = passes.stop_all()
        try:
            super().close()  # before the threads are joined: one may wait in that flow
        finally:
            for each in stopped:
                passes.join(each)

    def state_dict(self) -> Dict[str, Any]:
        self._check_strict()
        return {"ds": self._state_of_ds() if self._position is None else self._position}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._check_strict()
        check_state(self, state, ["ds"])
        lock = self._passes.get().acquire(None)
        try:
            self.ds.load_state_dict(state["ds"])
        finally:
            lock.release()
        self._position = state["ds"]

    @property
    def seeded(self) -> bool:
        """Whether the wrapped flow is, and the order does not depend on the speed of threads."""
        return super().seeded and (self.strict or self.num_thread == 1)

    def _check_strict(self) -> None:
        if not self.strict:
            name = type(self).__name__
            raise StateNotKept(
                f"{name} keeps no state in the order of completion, because the datapoints that "
                "were yielded are not the first ones that were read. With strict=True it keeps one."
            )


class ThreadedMapData(MultiThreadMapData):
    """`MultiThreadMapData` by its name and arguments of 2017; it keeps no order, unless
    `strict`.
    """

    @accepts_old_keywords(nr_thread="num_thread")
    def __init__(
        self,
        ds: DataFlow,
        num_thread: int,
        map_func: Callable,
        buffer_size: int = 200,
        strict: bool = False,
    ) -> None:
        super().__init__(ds, num_thread, map_func, buffer_size, strict)
