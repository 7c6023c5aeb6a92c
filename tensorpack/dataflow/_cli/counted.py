"""How many datapoints a flow gives."""

from typing import Any, Iterator

from ..base import ProxyDataFlow

__all__ = ["Counted"]


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
