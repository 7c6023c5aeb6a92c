"""Batches of datapoints of equal shape, where the shapes differ from datapoint to datapoint."""

from typing import Any, Dict, Hashable, Iterator, List, Tuple, Union

from ._state import check_state
from .base import DataFlow, UnknownLength
from .batch import BatchData

__all__ = ["BatchDataByShape"]

_Groups = Dict[Tuple[int, ...], List[Any]]


class BatchDataByShape(BatchData):
    """Puts datapoints into a batch whose component `idx` has the same shape.

    A batch is yielded as soon as there are enough datapoints of its shape; its arrays are made as
    those of `BatchData`. Up to `batch_size - 1` datapoints of every shape wait meanwhile. They are
    a part of the state, for `ds` does not give them again.
    """

    def __init__(
        self,
        ds: DataFlow,
        batch_size: int,
        idx: Union[int, Hashable],
        remainder: bool = False,
    ) -> None:
        """
        Args:
          ds: the flow to take datapoints from; lists, tuples or dicts, all of one form.
          batch_size: the number of datapoints in a batch.
          idx: the position of the component whose shape counts, or its key if datapoints are
            dicts. It is an array; the others have equal shapes where this one has.
          remainder: whether to yield smaller batches, in the end, of those that still wait. If
            not, they are dropped.

        Raises:
          TypeError: `batch_size` is no integer.
          ValueError: `batch_size` is less than one, or there can be no batch of this size.
        """
        super().__init__(ds, batch_size, remainder)
        self.idx = idx
        # What waits in the pass begun or advanced last, and what is to wait in the next one.
        self._waiting: _Groups = {}
        self._resumed: _Groups = {}

    def __len__(self) -> int:
        """Never returns.

        Raises:
          UnknownLength: the number of batches depends on the shapes.
        """
        raise UnknownLength(
            f"The length of {type(self).__name__} is not known: it depends on how many datapoints "
            "there are of each shape."
        )

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          LookupError: a datapoint has no component `idx`; an `IndexError` or `KeyError`.
          TypeError: component `idx` has no shape, or as in `BatchData`.
          ValueError: as in `BatchData`.
        """
        waiting, self._resumed = self._resumed, {}
        self._waiting = waiting
        return self._batches(iter(self.ds), waiting)

    def _batches(self, source: Iterator[Any], waiting: _Groups) -> Iterator[Any]:
        for datapoint in source:
            shape = self._shape_of(datapoint)
            group = waiting.setdefault(shape, [])
            group.append(datapoint)
            if len(group) == self.batch_size:
                del waiting[shape]
                batch = self.aggregate_batch(group, self.use_list)
                self._waiting = waiting
                yield batch
        while waiting and self.remainder:
            group = waiting.pop(next(iter(waiting)))
            batch = self.aggregate_batch(group, self.use_list)
            self._waiting = waiting
            yield batch

    def reset_state(self) -> None:
        super().reset_state()
        self._waiting, self._resumed = {}, {}

    def state_dict(self) -> Dict[str, Any]:
        waiting = [list(group) for group in self._waiting.values()]
        return {"ds": self._state_of_ds(), "waiting": waiting}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["ds", "waiting"])
        waiting: _Groups = {}
        for group in state["waiting"]:
            if not 0 < len(group) < self.batch_size:
                raise ValueError(
                    f"This is not a state of this {type(self).__name__}: {len(group)} datapoints "
                    f"of one shape wait for a batch of {self.batch_size}. Load a state into a "
                    "flow that is made as the one it came from."
                )
            waiting[self._shape_of(group[0])] = list(group)
        self.ds.load_state_dict(state["ds"])
        self._waiting = self._resumed = waiting

    def _shape_of(self, datapoint: Any) -> Tuple[int, ...]:
        name = type(self).__name__
        try:
            component = datapoint[self.idx]
        except IndexError as error:
            raise IndexError(
                f"{name} looks at component {self.idx!r}, but the datapoint has "
                f"{len(datapoint)} components."
            ) from error
        except KeyError as error:
            raise KeyError(
                f"{name} looks at component {self.idx!r}, but the datapoint has "
                f"{sorted(map(str, datapoint))}"
            ) from error
        shape = getattr(component, "shape", None)
        if shape is None:
            raise TypeError(
                f"{name} looks at the shape of component {self.idx!r}, but a "
                f"{type(component).__name__} has none. Yield numpy arrays."
            )
        return tuple(shape)
