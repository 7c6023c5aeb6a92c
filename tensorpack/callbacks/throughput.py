"""How many steps or samples a training does in a second."""

import time
from typing import Any, Callable, Dict, Optional, Tuple

from tensorpack.utils.checks import as_positive

from .base import Callback


class ThroughputTracker(Callback):
    """Puts the throughput of each epoch, without the time of what callbacks do at its end.

    The scalar is `Throughput (samples/sec)`, or `Throughput (steps/sec)` without
    `samples_per_step`. Where an epoch is resumed, the time between the two runs does not count. It
    puts nothing for an epoch whose start it has not seen, because a proxy such as
    `PeriodicCallback` had switched it off.

    Args:
      samples_per_step: how many samples a step takes, over all towers; None to count steps.
      clock: returns seconds; only differences count.
    """

    puts_scalars = True

    def __init__(
        self,
        samples_per_step: Optional[float] = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if samples_per_step is not None:
            samples_per_step = as_positive(self, "samples_per_step", samples_per_step)
        self._samples_per_step = samples_per_step
        self._clock = clock
        self._epoch: Optional[int] = None  # the last one whose start was seen
        self._steps, self._seconds = 0, 0.0  # of that epoch, before `_since`
        self._since: Optional[float] = None  # None between two epochs
        self._step_then = 0

    def _before_epoch(self) -> None:
        if self.trainer.local_step < 0 or self._epoch != self.epoch_num:
            self._epoch, self._steps, self._seconds = self.epoch_num, 0, 0.0
        # otherwise an epoch is continued
        self._since, self._step_then = self._clock(), self.trainer.loop.steps_taken

    def _after_epoch(self) -> None:
        self._steps, self._seconds = self._so_far()
        self._since = None

    def _so_far(self) -> Tuple[int, float]:
        if self._since is None:
            return self._steps, self._seconds
        # `global_step` already counts the running step, which may never finish
        steps = self._steps + self.trainer.loop.steps_taken - self._step_then
        return steps, self._seconds + self._clock() - self._since

    def _trigger(self) -> None:
        steps, seconds = self._so_far()
        if self._epoch != self.epoch_num or steps == 0 or seconds <= 0:
            return
        unit = "steps" if self._samples_per_step is None else "samples"
        rate = steps * (self._samples_per_step or 1) / seconds
        self.trainer.monitors.put_scalar(f"Throughput ({unit}/sec)", rate)

    def state_dict(self) -> Dict[str, Any]:
        steps, seconds = self._so_far()
        return {"epoch": self._epoch, "steps": steps, "seconds": seconds}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._epoch = state.get("epoch")  # none in an older state, whose epoch counts from here
        self._steps, self._seconds = state["steps"], state["seconds"]
