"""Changes how many datapoints a pass has, by going through a flow again or stopping early.

`RepeatedData` sits between a dataset and a consumer that must never run dry, such as an enqueue
thread. No datapoints are kept: every repetition iterates the wrapped flow again, and one that
yields nothing is an error, for it would be tried for ever.
"""

from typing import Any, Dict, Iterator, Optional, Tuple

from tensorpack.utils.checks import check_counts, check_integers

from ._legacy_names import accepts_old_keywords
from ._state import check_count, check_state
from .base import DataFlow, ProxyDataFlow, UnknownLength

__all__ = ["FixedSizeData", "RepeatedData", "RepeatedDataPoint", "nothing_in_a_pass"]


class RepeatedData(ProxyDataFlow):
    """Goes through a flow a given number of times, or for ever."""

    # How many passes are finished, and whether the one under way has yielded anything.
    _position = 0, False
    _resumed: Optional[Tuple[int, bool]] = None

    @accepts_old_keywords(nr="num")
    def __init__(self, ds: DataFlow, num: int) -> None:
        """
        Args:
          ds: the flow to go through.
          num: how many times, or -1 for ever.

        Raises:
          TypeError: `num` is no integer.
          ValueError: `num` is neither -1 nor a count.
        """
        super().__init__(ds)
        check_integers(self, num=num)
        if num < -1:
            raise ValueError(f"RepeatedData: num is a count, or -1 for ever, but got {num}.")
        self.num = num

    def __len__(self) -> int:
        """Returns the length of the wrapped flow times `num`.

        Raises:
          UnknownLength: the flow is repeated for ever, or its own length is not known.
        """
        if self.num == -1:
            raise UnknownLength("RepeatedData has no length: num=-1 repeats the flow for ever.")
        return super().__len__() * self.num

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          RuntimeError: the wrapped flow yielded nothing in a whole pass.
        """
        finished, begun = self._resumed or (0, False)
        self._resumed = None
        self._position = finished, begun
        # Opened here and not by the generator, which may never run: what is opened and left is
        # over, and a loaded state is used up.
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

    def reset_state(self) -> None:
        super().reset_state()
        self._position, self._resumed = (0, False), None

    def state_dict(self) -> Dict[str, Any]:
        finished, begun = self._position
        return {"ds": self._state_of_ds(), "finished": finished, "begun": begun}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["ds", "finished", "begun"])
        if self.num != -1:
            check_count(self, state["finished"], max(self.num - 1, 0))
        self.ds.load_state_dict(state["ds"])
        self._position = self._resumed = state["finished"], state["begun"]


class RepeatedDataPoint(ProxyDataFlow):
    """Yields each datapoint several times in a row; the same object every time.

    In the middle of a row its state has the datapoint itself, for `ds` does not give it again.
    """

    # A datapoint, and how often it has been yielded; 0 where there is none to go on with.
    _position: Tuple[Any, int] = (None, 0)
    _resumed: Tuple[Any, int] = (None, 0)

    @accepts_old_keywords(nr="num")
    def __init__(self, ds: DataFlow, num: int) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          num: how often each is yielded, at least once.

        Raises:
          TypeError: `num` is no integer.
          ValueError: `num` is less than one.
        """
        super().__init__(ds)
        check_counts(self, num=num)
        self.num = num

    def __len__(self) -> int:
        return super().__len__() * self.num

    def __iter__(self) -> Iterator[Any]:
        self._position, self._resumed = self._resumed, (None, 0)
        return self._pass(*self._position, iter(self.ds))

    def _pass(self, current: Any, done: int, datapoints: Iterator[Any]) -> Iterator[Any]:
        if done:
            yield from self._row(current, done)
        for datapoint in datapoints:
            yield from self._row(datapoint, 0)

    def _row(self, datapoint: Any, done: int) -> Iterator[Any]:
        for count in range(done + 1, self.num + 1):
            self._position = (datapoint, count) if count < self.num else (None, 0)
            yield datapoint

    def reset_state(self) -> None:
        super().reset_state()
        self._position = self._resumed = None, 0

    def state_dict(self) -> Dict[str, Any]:
        datapoint, done = self._position
        return {"ds": self._state_of_ds(), "datapoint": datapoint, "done": done}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["ds", "datapoint", "done"])
        check_count(self, state["done"], self.num - 1)
        self.ds.load_state_dict(state["ds"])
        self._position = self._resumed = state["datapoint"], state["done"]


class FixedSizeData(ProxyDataFlow):
    """Gives passes of a fixed size, whatever the size of the wrapped flow.

    A pass begins where the one before it ended, and goes on at the beginning of the wrapped flow
    after its end. This is the one flow whose passes are not independent; with
    `keep_state=False` they are.
    """

    def __init__(self, ds: DataFlow, size: int, keep_state: bool = True) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          size: the number of datapoints in a pass.
          keep_state: False to begin every pass at the beginning of the wrapped flow.

        Raises:
          TypeError: `size` is no integer.
          ValueError: `size` is less than one.
        """
        super().__init__(ds)
        check_counts(self, size=size)
        self._size = size
        self._keep_state = keep_state
        self._repeated = RepeatedData(ds, -1)
        self._endless: Optional[Iterator[Any]] = None
        self._taken = 0
        self._skip = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          RuntimeError: the wrapped flow yielded nothing in a whole pass.
        """
        datapoints = self._endless
        if datapoints is None:
            datapoints = iter(self._repeated)
        if self._keep_state:
            self._endless = datapoints
        self._taken, self._skip = self._skip, 0
        return self._pass(self._taken, datapoints)

    def _pass(self, taken: int, datapoints: Iterator[Any]) -> Iterator[Any]:
        for count in range(taken + 1, self._size + 1):
            try:
                datapoint = next(datapoints)
            except Exception:
                self._endless = None  # it gives nothing more: the next pass begins anew
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
