"""What the callbacks that look for the best value of a scalar have in common."""

import math
from typing import Any, Dict, Optional

from tensorpack.utils import logger
from tensorpack.utils.stopping import Failed, Interrupted

from ._measured import check_measured
from .base import Callback
from .monitor import ScalarRecord


class BestValue(Callback):
    """Watches a scalar of `trainer.monitors`; a subclass asks for `_latest` on trigger.

    A run in which nothing measures the scalar ends with a RuntimeError, see `check_measured`.

    Attributes:
      monitor_stat: name of the scalar.
      reverse: whether the greatest value is the best, not the least.
      best: (global_step, value), or None.
    """

    def __init__(self, monitor_stat: str, reverse: bool = False) -> None:
        self.monitor_stat = monitor_stat
        self.reverse = reverse
        self.best: Any = None

    def _latest(self) -> Optional[ScalarRecord]:
        """Returns the last value; None, with a warning, if there is none yet."""
        try:
            return self.trainer.monitors.latest_record(self.monitor_stat)
        except KeyError:
            logger.warning(f"{self} does nothing: {self.monitor_stat} has no value yet.")
            return None

    def check_over(self) -> None:
        """Raises if nothing measures the scalar."""
        if self.was_triggered:
            check_measured(self, self.monitor_stat)

    def _is_better(self, value: float, threshold: float = 0.0) -> bool:
        """Whether a value is better than the best, by more than the threshold; NaN and infinity
        never are, and everything is better than those.
        """
        if not math.isfinite(value):
            return False
        if self.best is None or not math.isfinite(self.best[1]):
            return True
        gain = value - self.best[1] if self.reverse else self.best[1] - value
        return gain > threshold

    def _after_train(self) -> None:
        reason = self.trainer.stop_token.reason
        if not self.was_triggered or isinstance(reason, (Failed, Interrupted)):
            return
        try:
            self.trainer.monitors.latest_record(self.monitor_stat)
        except KeyError as error:
            raise RuntimeError(f"{self} did nothing in this run. {error.args[0]}") from None
        self._at_end()

    def _at_end(self) -> None:
        """Called when a run with the scalar has come to its end."""

    def state_dict(self) -> Dict[str, Any]:
        return {} if self.best is None else {"step": self.best[0], "value": self.best[1]}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.best = (state["step"], state["value"])
