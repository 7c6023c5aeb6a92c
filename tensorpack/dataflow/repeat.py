"""Flows that change the number of datapoints in a pass, by repeating a flow or stopping early.

No datapoints are kept: every repetition iterates the wrapped flow again.
"""

from typing import Any, Dict, Iterator, Optional, Union

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count, check_counts

from ._flow import check_count, check_state
from .base import DataFlow, ProxyDataFlow, ResumableDataFlow, UnknownLength


class RepeatedData(ResumableDataFlow, ProxyDataFlow):
    """Repeats a flow a given number of times, or forever.

    A pass raises a RuntimeError if the wrapped flow yields nothing in one of its own.
    """

    # `_position` is how many passes are finished, and whether the next one has yielded anything.

    @accepts_old_keywords(nr="num")
    def __init__(self, ds: DataFlow, num: int) -> None:
        """
        Args:
          ds: the flow to repeat.
          num: how many times, or -1 for forever.
        """
        super().__init__(ds)
        check_counts(self, least=-1, num=num)
        self.num = num

    def __len__(self) -> int:
        if self.num == -1:
            raise UnknownLength("RepeatedData has no length: num=-1 repeats the flow forever.")
        return super().__len__() * self.num

    def __iter__(self) -> Iterator[Any]:
        self._position = finished, begun = self._take_loaded() or (0, False)
        # Opened here, not by the generator, which may never run, so that a loaded state is used up.
        return self._pass(finished, begun, iter(self.ds) if finished != self.num else iter(()))

    def _pass(self, finished: int, begun: bool, datapoints: Iterator[Any]) -> Iterator[Any]:
        while finished != self.num:
            for datapoint in datapoints:
                begun = True
                self._position = finished, True
                yield datapoint
            if not begun:
                raise nothing_in_a_pass(self.ds, finished + 1)
            finished += 1
            if finished != self.num:
                begun, datapoints = False, iter(self.ds)

    def state_dict(self) -> Dict[str, Any]:
        finished, begun = self._position or (0, False)
        return {"ds": self._state_of_ds(), "finished": finished, "begun": begun}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["ds", "finished", "begun"])
        if self.num != -1:
            check_count(self, state["finished"], max(self.num - 1, 0))
        self.ds.load_state_dict(state["ds"])
        self._load((state["finished"], state["begun"]))


class RepeatedDataPoint(ResumableDataFlow, ProxyDataFlow):
    """Yields each datapoint several times in a row; the same object every time.

    Between two copies of a datapoint the state contains it, because `ds` does not give it again.
    """

    # `_position` is a datapoint, and how often it was yielded; 0 between two rows.

    @accepts_old_keywords(nr="num")
    def __init__(self, ds: DataFlow, num: int) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          num: how often each is yielded, at least once.
        """
        super().__init__(ds)
        check_counts(self, num=num)
        self.num = num

    def __len__(self) -> int:
        return super().__len__() * self.num

    def __iter__(self) -> Iterator[Any]:
        self._position = current, done = self._take_loaded() or (None, 0)
        return self._pass(current, done, iter(self.ds))

    def _pass(self, current: Any, done: int, datapoints: Iterator[Any]) -> Iterator[Any]:
        if done:
            yield from self._row(current, done)
        for datapoint in datapoints:
            yield from self._row(datapoint, 0)

    def _row(self, datapoint: Any, done: int) -> Iterator[Any]:
        for count in range(done + 1, self.num + 1):
            self._position = (datapoint, count) if count < self.num else (None, 0)
            yield datapoint

    def state_dict(self) -> Dict[str, Any]:
        datapoint, done = self._position or (None, 0)
        return {"ds": self._state_of_ds(), "datapoint": datapoint, "done": done}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["ds", "datapoint", "done"])
        check_count(self, state["done"], self.num - 1)
        self.ds.load_state_dict(state["ds"])
        self._load((state["datapoint"], state["done"]))


class FixedSizeData(ProxyDataFlow):
    """Gives passes of a fixed size, whatever the size of the wrapped flow.

    A pass begins where the one before it ended, and continues at the beginning of the wrapped flow
    after its end. So passes are not independent; with `keep_state=False` they are. A RuntimeError
    is raised if the wrapped flow yields nothing in a whole pass.
    """

    def __init__(self, ds: DataFlow, size: Union[int, float, str], keep_state: bool = True) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          size: the number of datapoints in a pass; also a whole float, or text such as "100".
          keep_state: False to begin every pass at the beginning of the wrapped flow.
        """
        super().__init__(ds)
        # Scripts give what they read from the command line, or a quotient.
        size = int(size) if isinstance(size, str) and size.isdigit() else size
        self._size = as_count(self, "size", size)
        self._keep_state = keep_state
        self._repeated = RepeatedData(ds, -1)
        self._endless: Optional[Iterator[Any]] = None
        self._taken = 0
        self._skip = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        datapoints = iter(self._repeated) if self._endless is None else self._endless
        if self._keep_state:
            self._endless = datapoints
        self._taken, self._skip = self._skip, 0
        return self._pass(self._taken, datapoints)

    def _pass(self, taken: int, datapoints: Iterator[Any]) -> Iterator[Any]:
        for count in range(taken + 1, self._size + 1):
            try:
                datapoint = next(datapoints)
            except Exception:
                self._endless = None  # it gives nothing more: the next pass needs another one
                raise
            self._taken = count
            yield datapoint

    def reset_state(self) -> None:
        """Prepares the wrapped flow; the next pass begins at its beginning."""
        self._repeated.reset_state()
        self._endless = None
        self._taken = self._skip = 0

    def state_dict(self) -> Dict[str, Any]:
        return {"repeated": self._repeated.state_dict(), "taken": self._taken}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["repeated", "taken"])
        check_count(self, state["taken"], self._size)
        self._repeated.load_state_dict(state["repeated"])
        self._endless = None
        self._taken = self._skip = state["taken"]

    def __getstate__(self) -> Dict[str, Any]:
        # An open iterator cannot travel to another process; a new one is made there.
        return {**self.__dict__, "_endless": None}


def nothing_in_a_pass(flow: Any, number: int) -> RuntimeError:
    """Returns the error of a flow that has no datapoints, so that it cannot be repeated."""
    return RuntimeError(
        f"{type(flow).__name__} yielded nothing in pass {number}. Repeating it would never end: "
        "is it empty, or can it be read only once?"
    )
