"""Batches made in worker processes, which apply a function too, while the flow stays here."""

import os
from typing import Any, Callable, Iterator, List, Optional

from tensorpack.utils.checks import check_counts
from tensorpack.utils.packed import Rows

from ._legacy_names import accepts_old_keywords
from ._length import length_or_none
from ._processes.answers import answers_as_they_come
from ._processes.map import ProcessMap
from ._stack import aggregate
from .base import DataFlow, RNGDataFlow
from .map import apply_function

__all__ = ["MultiProcessMapAndBatchData", "MultiProcessMapAndBatchDataZMQ"]

_GIB = 2**30


class MultiProcessMapAndBatchData(ProcessMap):
    """Applies a function to every datapoint and makes batches, both in several processes.

    It is `BatchData(MultiProcessMapData(ds, num_proc, map_func), batch_size)`, but a process makes
    a whole batch, and writes it to where the consumer finds it. A pass is one pass of the wrapped
    flow; batches come in the order in which they are ready. Datapoints for which the function
    returns None are dropped, and batches are filled up with others; then `len` is too large.
    """

    @accepts_old_keywords(nr_proc="num_proc")
    def __init__(
        self,
        ds: DataFlow,
        num_proc: Optional[int] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        batch_size: int = 1,
        buffer_size: Optional[int] = None,
        remainder: bool = False,
        buffer_bytes: int = _GIB,
        start_method: Optional[str] = None,
    ) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          num_proc: the number of processes; by default as many as there are cores.
          map_func: takes a datapoint and returns a datapoint, or None to drop it.
          batch_size: the number of datapoints in a batch.
          buffer_size: how many datapoints may have been taken from the flow and not yet be given
            out; by default those of two batches a process.
          remainder: whether to yield a smaller last batch if some datapoints are left.
          buffer_bytes: how many bytes may be on the way to the processes, and as many back.
          start_method: as in `MultiProcessRunner`.

        Raises:
          TypeError: `map_func` cannot be called, or a number is no integer.
          ValueError: a number is less than one, the buffer is smaller than a batch, there can be no
            batch of this size, or there is no such start method.
        """
        check_counts(self, batch_size=batch_size)
        if num_proc is not None:
            check_counts(self, num_proc=num_proc)
        if buffer_size is not None:
            check_counts(self, buffer_size=buffer_size)
        if buffer_size is not None and buffer_size < batch_size:
            raise ValueError(
                f"{type(self).__name__}: buffer_size={buffer_size} has no room for a batch of "
                f"{batch_size}. Give at least {batch_size}, or leave it out."
            )
        length = length_or_none(ds)  # an unknown one counts as enough
        if not remainder and length is not None and batch_size > length:
            raise ValueError(
                f"{type(self).__name__}: batch_size={batch_size}, but {type(ds).__name__} has only "
                f"{length} datapoints in a pass, so there would be no batch. Use a smaller "
                "batch_size, or remainder=True."
            )
        workers = num_proc or len(os.sched_getaffinity(0))
        most = 2 * workers if buffer_size is None else buffer_size // batch_size
        super().__init__(ds, num_proc, map_func, most, buffer_bytes, start_method)
        self.batch_size = batch_size
        self.remainder = remainder

    def __len__(self) -> int:
        """Returns the number of batches in a pass if nothing is dropped.

        Raises:
          UnknownLength: the length of the wrapped flow is not known.
        """
        whole, left = divmod(super().__len__(), self.batch_size)
        return whole + 1 if left and self.remainder else whole

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          Exception: as by `MultiProcessMapData` and `BatchData`.
        """
        self._leave_fork()
        return self._pass(iter(self.ds))

    @property
    def seeded(self) -> bool:
        """Whether the same data comes again, in the same order, when the program is run again."""
        same = self.num_proc == 1
        return same and RNGDataFlow.seeded.fget(self) and super().seeded  # type: ignore[attr-defined]

    def _pass(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        team = self._teams.take(self._make_team)
        rest: List[Any] = []
        try:
            for result in answers_as_they_come(team, self._groups(datapoints), self._most):
                if isinstance(result, tuple):
                    yield result[0]
                else:
                    rest += result
                result = None  # its memory may be waited for
                while len(rest) >= self.batch_size:
                    batch, rest = rest[: self.batch_size], rest[self.batch_size :]
                    yield aggregate(batch, use_list=False)
            if rest and self.remainder:
                yield aggregate(rest, use_list=False)
        finally:
            self._teams.give_back(team)

    def _groups(self, datapoints: Iterator[Any]) -> Iterator[List[Any]]:
        group: List[Any] = []
        for datapoint in datapoints:
            group.append(datapoint)
            if len(group) == self.batch_size:
                yield group
                group = []
        if group:
            yield group

    def _work(self) -> Callable[[Any], Any]:
        return _MapAndBatch(self.func, self.batch_size)


MultiProcessMapAndBatchDataZMQ = MultiProcessMapAndBatchData


class _MapAndBatch:
    """What a process does with as many datapoints as a batch has, or less.

    Returns a tuple with a batch, or, if it is not full, a list of datapoints.
    """

    def __init__(self, func: Callable[[Any], Any], batch_size: int) -> None:
        self._func, self._batch_size = func, batch_size

    def __call__(self, group: List[Any]) -> Any:
        mapped = [apply_function(self._func, datapoint) for datapoint in group]
        kept = [datapoint for datapoint in mapped if datapoint is not None]
        if len(kept) < self._batch_size:
            return kept
        return (aggregate(kept, use_list=False, join=Rows),)
