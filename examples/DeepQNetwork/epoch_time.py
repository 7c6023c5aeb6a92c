"""Tells early how long an epoch will take where there is no GPU to make it short."""

import time
from typing import Callable

from tensorpack.callbacks import Callback
from tensorpack.utils import humanize_time_delta, logger

__all__ = ["EpochTimeWithoutGPU"]


class EpochTimeWithoutGPU(Callback):
    """Says that there is no GPU, if so, and after some steps how long an epoch will take.

    What is done between two epochs does not count.

    Args:
      warmup: steps that are not looked at, for they are slower.
      steps: after how many steps to say it.
      clock: returns seconds; only differences count.
    """

    def __init__(
        self, warmup: int = 20, steps: int = 100, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._warmup = warmup
        self._steps = steps
        self._clock = clock
        self._first_step = 0
        self._since = 0.0
        self._seconds = 0.0  # of the steps that are looked at, before `_since`
        self._active = False

    def _before_train(self) -> None:
        kinds = {device.device_type for device in self.trainer.sess.list_devices()}
        self._active = "GPU" not in kinds
        self._first_step = self.global_step
        if self._active:
            logger.info("TensorFlow has no GPU here: training on the CPU.")

    def _before_epoch(self) -> None:
        self._since = self._clock()

    def _after_epoch(self) -> None:
        self._seconds += self._clock() - self._since

    def _trigger_step(self) -> None:
        if not self._active:
            return
        done = self.global_step - self._first_step
        if done == self._warmup:
            self._since, self._seconds = self._clock(), 0.0
        elif done == self._steps:
            self._active = False
            seconds = self._seconds + self._clock() - self._since
            self._say(seconds / (self._steps - self._warmup))

    def _say(self, seconds_per_step: float) -> None:
        steps = self.trainer.steps_per_epoch
        logger.info(
            f"An epoch of {steps} steps will take about "
            f"{humanize_time_delta(steps * seconds_per_step)}, at {1 / seconds_per_step:.1f} "
            "steps/s."
        )
