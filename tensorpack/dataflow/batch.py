"""Batches: each component of a batch stacks that component of several datapoints.

How components become arrays is in `_stack.py`; this file decides which datapoints go together.
"""

import itertools
from typing import Any, Dict, Hashable, Iterable, Iterator, List, Mapping, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_count

from ._flow import length_or_none, not_a_state
from ._stack import aggregate, as_array, check_form, gather
from .base import DataFlow, ProxyDataFlow
from .map import component_of, note_datapoint


def as_batch_size(flow: DataFlow, ds: DataFlow, batch_size: Any, remainder: bool) -> int:
    """Returns `batch_size`, a count for which there can be a batch of datapoints of `ds`."""
    batch_size = as_count(flow, "batch_size", batch_size)
    length = length_or_none(ds)  # an unknown one counts as enough
    if not remainder and length is not None and batch_size > length:
        raise ValueError(
            f"{type(flow).__name__}: batch_size={batch_size}, but {type(ds).__name__} has only "
            f"{length} datapoints in a pass, so there would be no batch. Use a smaller "
            "batch_size, RepeatedData before it, or remainder=True."
        )
    return batch_size


class BatchData(ProxyDataFlow):
    """Puts a fixed number of consecutive datapoints into a batch.

    >>> flow = DataFromList([[1, "a"], [2, "b"], [3, "c"]], shuffle=False)
    >>> list(BatchData(flow, 2, remainder=True, use_list=True))
    [[[1, 2], ['a', 'b']], [[3], ['c']]]
    >>> list(BatchData(flow, 2))
    [[array([1, 2], dtype=int32), array(['a', 'b'], dtype='<U1')]]

    Each component of the batch has one axis more than those of the datapoints, the first. Its
    arrays are new, C-contiguous, and never written again: a consumer may keep them, and
    TensorFlow may read them where they are. A pass raises the errors of `aggregate_batch`.

    Numpy's arrays and scalars keep their dtype; dtypes of one kind (float32 and float64) take the
    wider one. Python's bool, int and float become bool, int32 and float32; mixed ones take the last
    of these, and a float beside float64 is one, too. Text and bytes become fixed-width strings.
    """

    def __init__(
        self,
        ds: DataFlow,
        batch_size: int,
        remainder: bool = False,
        use_list: bool = False,
        *,
        pad: Union[Iterable[Hashable], Mapping[Hashable, Any]] = (),
    ) -> None:
        """
        Args:
          ds: gives lists, tuples or dicts, all of one form.
          batch_size: the number of datapoints in a batch.
          remainder: whether to yield a smaller last batch if some datapoints are left. If not,
            they are dropped.
          use_list: whether a component of a batch is a list of the components, as they are,
            instead of an array. Needed if their shapes differ and are not padded.
          pad: the components whose arrays are padded at the end of each axis, to the largest size
            in the batch: a list of their positions or keys, for zeros, or a dict of their values.
        """
        super().__init__(ds)
        self.batch_size = as_batch_size(self, ds, batch_size, remainder)
        self.remainder, self.use_list = remainder, use_list
        self.pad = dict(pad) if isinstance(pad, Mapping) else dict.fromkeys(pad, 0)

    def __len__(self) -> int:
        whole, left = divmod(super().__len__(), self.batch_size)
        return whole + 1 if left and self.remainder else whole

    def _transform(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        is_of_subclass = type(self).aggregate_batch is not BatchData.aggregate_batch
        as_they_are = self.use_list or self.pad or is_of_subclass
        for first in itertools.count(0, self.batch_size):
            if as_they_are:
                group = list(itertools.islice(datapoints, self.batch_size))
            else:
                group = gather(datapoints, self.batch_size)
            if not group or (len(group) < self.batch_size and not self.remainder):
                return
            try:
                padded = self._pad_group(group) if self.pad else group
                batch = self.aggregate_batch(padded, self.use_list)
            except Exception as error:
                numbers = f"{first} to {first + len(group) - 1}"
                note_datapoint(error, type(self).__name__, numbers, group)
                raise
            group = padded = []
            yield batch

    def _pad_group(self, datapoints: List[Any]) -> List[Any]:
        check_form(datapoints)
        group: Any = [dict(dp) if isinstance(dp, dict) else list(dp) for dp in datapoints]
        for index, value in self.pad.items():
            arrays = [as_array(component_of(self, dp, index), index) for dp in group]
            ranks = sorted({array.ndim for array in arrays})
            if len(ranks) > 1:
                raise ValueError(
                    f"Component {index!r} of a batch is to be padded, but its arrays have "
                    f"{' and '.join(map(str, ranks))} dimensions. Give them the same number."
                )
            shape = tuple(max(sizes) for sizes in zip(*(array.shape for array in arrays)))
            for dp, array in zip(group, arrays):
                dp[index] = array if array.shape == shape else _pad(array, shape, index, value)
        return group

    @staticmethod
    def aggregate_batch(data_holder: Sequence[Any], use_list: bool = False) -> Any:
        """Returns a batch of datapoints, a dict if they are dicts, otherwise a list.

        Raises:
          TypeError: a datapoint is not a list, tuple or dict, or a component cannot be in an array.
          ValueError: there is no datapoint, or they differ in form, shape or kind, or a number
            does not fit.
        """
        return aggregate(data_holder, use_list)


def _pad(array: np.ndarray, shape: Tuple[int, ...], index: Hashable, value: Any) -> np.ndarray:
    padded = np.zeros(shape, array.dtype)
    if value:
        padded[...] = np.array(value).astype(array.dtype)
        if array.dtype.kind in "biu" and padded.flat[0] != value:
            raise ValueError(
                f"Component {index!r} of a batch is {array.dtype}, which cannot be padded with "
                f"{value!r}. Convert it by MapDataComponent, or pad it with another value."
            )
    padded[tuple(map(slice, array.shape))] = array
    return padded


_Groups = Dict[Tuple[int, ...], List[Any]]


class BatchDataByShape(BatchData):
    """Puts datapoints into a batch whose component `idx` has the same shape.

    >>> flow = DataFromList([[np.zeros(n), n] for n in (4, 5, 4, 5, 6)], shuffle=False)
    >>> [batch[1].tolist() for batch in BatchDataByShape(flow, 2, 0, remainder=True)]
    [[4, 4], [5, 5], [6]]

    A batch is yielded as soon as there are enough datapoints of its shape; its arrays are made as
    those of `BatchData`. Up to `batch_size - 1` datapoints of every shape wait meanwhile, also for
    the next pass. They are part of the state, because `ds` does not give them again.

    Its length is that of `BatchData`, as if there were one shape. With more of them a pass may have
    fewer batches or more, or with `remainder` more. One that would have none continues with
    another pass through `ds`.
    """

    # The datapoints that wait, in `_position` by their shapes; whether the pass has yielded, and
    # whether it is over, so that they wait for the next one.
    _STATE: Dict[str, Any] = {"waiting": {}, "yielded": False, "over": False}

    def __init__(
        self, ds: DataFlow, batch_size: int, idx: Union[int, Hashable], remainder: bool = False
    ) -> None:
        """
        Args:
          ds, batch_size: see `BatchData`.
          idx: the position of the component whose shape counts, or its key if datapoints are
            dicts. It is an array; the others have equal shapes where this one has.
          remainder: whether to yield smaller batches, in the end, of those that still wait. If
            not, they wait for the next pass, until `reset_state`.
        """
        super().__init__(ds, batch_size, remainder)
        self.idx = idx
        self._left: _Groups = {}  # by the last pass that was finished

    def reset_state(self) -> None:
        super().reset_state()
        self._left = {}

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass: IndexError or KeyError without component `idx`."""
        loaded = self._take_loaded()
        self._position = waiting, yielded, over = loaded or (self._left, False, False)
        self._left = waiting if over else {}
        source = iter(self.ds)  # also where there is nothing left: it uses up a loaded state
        return iter(()) if over else self._batches(source, waiting, yielded)

    def _batches(self, source: Iterator[Any], waiting: _Groups, yielded: bool) -> Iterator[Any]:
        more = True
        while more:
            empty = True
            for datapoint in source:
                empty = False
                shape = self._shape_of(datapoint)
                group = waiting.setdefault(shape, [])
                group.append(datapoint)
                if len(group) == self.batch_size:
                    del waiting[shape]
                    batch = self.aggregate_batch(group, self.use_list)
                    yielded = True
                    self._position = waiting, yielded, False
                    yield batch
            # Who repeats a flow takes a pass without a datapoint for an error.
            more = not (yielded or empty or self.remainder)
            source = iter(self.ds) if more else source
        while waiting and self.remainder:
            group = waiting.pop(next(iter(waiting)))
            batch = self.aggregate_batch(group, self.use_list)
            self._position = waiting, True, False
            yield batch
        self._left = waiting
        self._position = waiting, yielded, True

    def _save_position(self, waiting: _Groups, *marks: bool) -> Tuple[Any, ...]:
        return ([list(group) for group in waiting.values()], *marks)

    def _restore_position(self, groups: Any, *marks: Any) -> Tuple[Any, ...]:
        waiting: _Groups = {}
        for group in groups:
            if not 0 < len(group) < self.batch_size:
                why = f"{len(group)} datapoints of one shape wait for a batch of {self.batch_size}"
                raise not_a_state(self, why)
            waiting[self._shape_of(group[0])] = list(group)
        return (waiting, *map(bool, marks))

    def _shape_of(self, datapoint: Any) -> Tuple[int, ...]:
        return tuple(component_of(self, datapoint, self.idx).shape)
