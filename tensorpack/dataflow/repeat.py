"""Changes how many datapoints a pass has, by going through a flow again or stopping early.

`RepeatedData` sits between a dataset and a consumer that must never run dry, such as an enqueue
thread. No datapoints are kept: every repetition iterates the wrapped flow again, and one that
yields nothing is an error, for it would be tried for ever.
"""

from typing import Any, Dict, Iterator, Optional

from ._spelling import accepts_old_keywords
from .base import DataFlow, ProxyDataFlow, UnknownLength

__all__ = ["FixedSizeData", "RepeatedData", "RepeatedDataPoint"]


class RepeatedData(ProxyDataFlow):
    """Goes through a flow a given number of times, or for ever."""

    @accepts_old_keywords(nr="num")
    def __init__(self, ds: DataFlow, num: int) -> None:
        """
        Args:
          ds: the flow to go through.
          num: how many times, or -1 for ever.

        Raises:
          ValueError: `num` is neither -1 nor a count.
        """
        super().__init__(ds)
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
        return len(self.ds) * self.num

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          RuntimeError: the wrapped flow yielded nothing in a whole pass.
        """
        finished = 0
        while finished != self.num:
            empty = True
            for datapoint in self.ds:
                empty = False
                yield datapoint
            if empty:
                raise _nothing_in_a_pass(self, finished + 1)
            finished += 1


class RepeatedDataPoint(ProxyDataFlow):
    """Yields each datapoint several times in a row; the same object every time."""

    @accepts_old_keywords(nr="num")
    def __init__(self, ds: DataFlow, num: int) -> None:
        """
        Args:
          ds: the flow that gives the datapoints.
          num: how often each is yielded, at least once.

        Raises:
          ValueError: `num` is less than one.
        """
        super().__init__(ds)
        if num < 1:
            raise ValueError(f"RepeatedDataPoint: num must be at least 1, but got {num}.")
        self.num = num

    def __len__(self) -> int:
        return len(self.ds) * self.num

    def __iter__(self) -> Iterator[Any]:
        for datapoint in self.ds:
            for _ in range(self.num):
                yield datapoint


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
          ValueError: `size` is less than one.
        """
        super().__init__(ds)
        if size < 1:
            raise ValueError(f"FixedSizeData: size must be at least 1, but got {size}.")
        self._size = size
        self._keep_state = keep_state
        self._endless: Optional[Iterator[Any]] = None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          RuntimeError: the wrapped flow yielded nothing in a whole pass.
        """
        datapoints = self._endless
        if datapoints is None:
            datapoints = iter(RepeatedData(self.ds, -1))
        if self._keep_state:
            self._endless = datapoints
        for _ in range(self._size):
            try:
                datapoint = next(datapoints)
            except Exception:
                self._endless = None  # it gives nothing more: the next pass begins anew
                raise
            yield datapoint

    def reset_state(self) -> None:
        """Prepares the wrapped flow; the next pass begins at its beginning."""
        super().reset_state()
        self._endless = None

    def __getstate__(self) -> Dict[str, Any]:
        # An open iterator cannot travel to another process; a new one is made there.
        return {**self.__dict__, "_endless": None}


def _nothing_in_a_pass(flow: ProxyDataFlow, number: int) -> RuntimeError:
    return RuntimeError(
        f"{type(flow).__name__} repeats {type(flow.ds).__name__}, which yielded nothing in pass "
        f"{number}. Repeating it would never end: is it empty, or can it be read only once?"
    )
