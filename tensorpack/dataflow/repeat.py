"""Flows that change the number of datapoints in a pass, by repeating a flow or stopping early."""

import itertools
from typing import Any, Dict, Iterator, Union

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count

from ._flow import ProcessLocal
from ._read_ahead import may_be_left
from .base import DataFlow, ProxyDataFlow, UnknownLength


class RepeatedData(ProxyDataFlow):
    """Repeats a flow a given number of times, or forever.

    >>> list(RepeatedData(DataFromList([[1], [2]], shuffle=False), 2))
    [[1], [2], [1], [2]]

    A pass raises a RuntimeError if the wrapped flow yields nothing in one of its own.
    """

    # How many passes are finished, and whether the next one has yielded anything.
    _STATE = {"finished": 0, "begun": False}

    @accepts_old_keywords(nr="num")
    def __init__(self, ds: DataFlow, num: int) -> None:
        """`num` is how often the flow is repeated; -1 is forever."""
        super().__init__(ds)
        self.num = as_count(self, "num", num, -1)

    def __len__(self) -> int:
        if self.num == -1:
            raise UnknownLength("RepeatedData has no length: num=-1 repeats the flow forever.")
        return super().__len__() * self.num

    def __iter__(self) -> Iterator[Any]:
        self._position = finished, begun = self._take_loaded() or self._first_position()
        # Opened here, not by the generator, which may never run, so that a loaded state is used up.
        return self._pass(finished, begun, iter(self.ds if self.num else ()))

    def _pass(self, finished: int, begun: bool, datapoints: Iterator[Any]) -> Iterator[Any]:
        passes = itertools.count(finished) if self.num == -1 else range(finished, self.num)
        for number in passes:
            for datapoint in datapoints:
                begun = True
                self._position = number, True
                yield datapoint
            if not begun:
                raise nothing_in_a_pass(self.ds, number + 1)
            if number + 1 != self.num:
                begun, datapoints = False, iter(self.ds)


class RepeatedDataPoint(ProxyDataFlow):
    """Yields each datapoint several times in a row; the same object every time.

    >>> list(RepeatedDataPoint(DataFromList([[1], [2]], shuffle=False), 2))
    [[1], [1], [2], [2]]

    Between two copies of a datapoint the state contains it, because `ds` does not give it again.
    """

    # A datapoint, and how often it was yielded; 0 between two rows.
    _STATE = {"datapoint": None, "done": 0}

    @accepts_old_keywords(nr="num")
    def __init__(self, ds: DataFlow, num: int) -> None:
        """`num` is how often each datapoint is yielded, at least once."""
        super().__init__(ds)
        self.num = as_count(self, "num", num)

    def __len__(self) -> int:
        return super().__len__() * self.num

    def __iter__(self) -> Iterator[Any]:
        self._position = datapoint, done = self._take_loaded() or self._first_position()
        rest = iter(self.ds)
        return self._pass(itertools.chain([datapoint], rest) if done else rest, done)

    def _pass(self, datapoints: Iterator[Any], done: int) -> Iterator[Any]:
        for datapoint in datapoints:
            for count in range(done + 1, self.num + 1):
                self._position = (datapoint, count) if count < self.num else (None, 0)
                yield datapoint
            done = 0


class FixedSizeData(ProxyDataFlow):
    """Gives passes of a fixed size, whatever the size of the wrapped flow.

    >>> flow = FixedSizeData(DataFromList([[1], [2], [3]], shuffle=False), 2)
    >>> list(flow), list(flow)
    ([[1], [2]], [[3], [1]])

    A pass begins where the one before it ended, and continues at the beginning of the wrapped flow
    after its end; with `keep_state=False` passes are independent. A RuntimeError is raised if the
    wrapped flow yields nothing in a whole pass.
    """

    _STATE = {"taken": 0}  # datapoints of the pass
    _INNER = ("repeated",)

    def __init__(self, ds: DataFlow, size: Union[int, float, str], keep_state: bool = True) -> None:
        """
        Args:
          size: the number of datapoints in a pass; also a whole float, or text such as "100".
          keep_state: False to begin every pass at the beginning of the wrapped flow.
        """
        super().__init__(ds)
        self._size = as_count(self, "size", size)
        self._keep_state = keep_state
        self._repeated = RepeatedData(ds, -1)
        self._endless = ProcessLocal(iter)

    def __len__(self) -> int:
        return self._size

    @property
    def seeded(self) -> bool:
        return super().seeded and (self._keep_state or may_be_left(self.ds))

    def __iter__(self) -> Iterator[Any]:
        repeated, keeps = self._repeated, self._keep_state
        datapoints = self._endless.get(repeated) if keeps else iter(repeated)
        self._position = (taken,) = self._take_loaded() or self._first_position()
        return self._pass(taken, datapoints)

    def _pass(self, taken: int, datapoints: Iterator[Any]) -> Iterator[Any]:
        for count in range(taken + 1, self._size + 1):
            try:
                datapoint = next(datapoints)
            except BaseException:  # a KeyboardInterrupt ends it as well
                self._endless.take()  # it gives nothing more: the next pass needs another one
                raise
            self._position = (count,)
            yield datapoint

    def reset_state(self) -> None:
        self._repeated.reset_state()
        self._endless.take()
        self._position = self._loaded = None

    def _state_of_repeated(self) -> Dict[str, Any]:
        return self._repeated.state_dict()

    def _load_repeated(self, state: Dict[str, Any]) -> None:
        self._repeated.load_state_dict(state)
        self._endless.take()


def nothing_in_a_pass(flow: Any, number: int) -> RuntimeError:
    """Returns the error of a flow that has no datapoints, so that it cannot be repeated."""
    return RuntimeError(
        f"{type(flow).__name__} yielded nothing in pass {number}. Repeating it would never end: "
        "is it empty, or can it be read only once?"
    )
