"""How many datapoints a flow says that it has, and how many it gives."""

from typing import Any, Iterator

from ..base import ProxyDataFlow

__all__ = ["Counted", "length_of"]


class Counted(ProxyDataFlow):
    """Passes a flow on, and counts what it passes on.

    Attributes:
      count: of all passes together, since the last `reset_state`.
    """

    count = 0

    def __iter__(self) -> Iterator[Any]:
        return self._pass(iter(self.ds))

    def _pass(self, datapoints: Iterator[Any]) -> Iterator[Any]:
        for datapoint in datapoints:
            self.count += 1
            yield datapoint

    def reset_state(self) -> None:
        super().reset_state()
        self.count = 0


def length_of(flow: Any) -> int:
    """Returns the number of datapoints in a pass, or -1 if it is not known."""
    try:
        return len(flow)
    except (TypeError, NotImplementedError):
        return -1
