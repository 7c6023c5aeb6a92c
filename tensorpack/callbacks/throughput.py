"""How many steps or samples a training does in a second."""

import time
from typing import Any, Callable, Dict, Optional, Tuple

from .base import Callback

__all__ = ["ThroughputTracker"]


class ThroughputTracker(Callback):
    """Puts the throughput of each epoch, without the time of what callbacks do at its end.

    That is `Throughput (samples/sec)`, or `Throughput (steps/sec)` if nobody says how many samples
    there are in a step. The time between two runs does not count where an epoch is continued.

    Args:
      samples_per_step: how many samples a step takes, over all towers; None to count steps.
      clock: returns seconds; only differences count.

    Raises:
      ValueError: `samples_per_step` is not positive.
    """

    def __init__(
        self,
        samples_per_step: Optional[float] = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if samples_per_step is not None and samples_per_step <= 0:
            raise ValueError(f"samples_per_step must be positive, got {samples_per_step}.")
        self._samples_per_step = samples_per_step
        self._clock = clock
        self._steps, self._seconds = 0, 0.0  # of the epoch, before `_since`
        self._since: Optional[float] = None  # None between two epochs
        self._step_then = 0

    def _before_epoch(self) -> None:
        if self.trainer.local_step < 0:  # otherwise an epoch is continued
            self._steps, self._seconds = 0, 0.0
        self._since, self._step_then = self._clock(), self.global_step

    def _after_epoch(self) -> None:
        self._steps, self._seconds = self._so_far()
        self._since = None

    def _so_far(self) -> Tuple[int, float]:
        if self._since is None:
            return self._steps, self._seconds
        steps = self._steps + self.global_step - self._step_then
        return steps, self._seconds + self._clock() - self._since

    def _trigger(self) -> None:
        steps, seconds = self._so_far()
        if steps == 0 or seconds <= 0:
            return
        unit = "steps" if self._samples_per_step is None else "samples"
        rate = steps * (self._samples_per_step or 1) / seconds
        self.trainer.monitors.put_scalar(f"Throughput ({unit}/sec)", rate)

    def state_dict(self) -> Dict[str, Any]:
        """How many steps of the epoch there have been, and how long they took, in seconds."""
        steps, seconds = self._so_far()
        return {"steps": steps, "seconds": seconds}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Takes them back."""
        self._steps, self._seconds = state["steps"], state["seconds"]
