"""The main loop of a run: its epochs and steps, and their counters."""

import time
from collections import deque
from typing import Any, Callable, Deque, Optional

from tensorpack.tfutils.callback import StopTraining
from tensorpack.utils import humanize_time_delta, logger

from .run_state import Position

__all__ = ["ENDLESS", "TrainLoop"]

ENDLESS = 99999  # epochs: the default, of which the last is not waited for
_LATEST = 20  # epochs whose time is averaged, so that one with an evaluation is not taken for all


class TrainLoop:
    """Runs epochs of steps, and counts both.

    Attributes:
      epoch_num, local_step, global_step, steps_per_epoch, starting_epoch, max_epoch: as those of
        the `Trainer`.
      steps_done: how many steps of the running epoch have finished.
      steps_taken: how many steps have finished in all.
      begun: whether `run` has begun, so that the state of the run can be saved.
    """

    def __init__(self) -> None:
        self.steps_per_epoch = 0
        self.starting_epoch = 1
        self.max_epoch = 0
        self.epoch_num = 0
        self.local_step = -1
        self.global_step = 0
        self.steps_done = 0
        self.steps_taken = 0
        self.begun = False

    def config(
        self, steps_per_epoch: int, starting_epoch: int, max_epoch: int, global_step: int = 0
    ) -> None:
        """Sets the plan of a run, and how many steps earlier runs have taken. A run whose last
        epoch comes before its first has nothing to do.
        """
        self.steps_per_epoch = steps_per_epoch
        self.starting_epoch = starting_epoch
        self.max_epoch = max_epoch
        self.global_step = self.steps_taken = global_step
        self._enter_epoch(self.starting_epoch - 1, 0)

    @property
    def in_step(self) -> bool:
        """Whether a step has begun and not finished."""
        return self.global_step != self.steps_taken

    def run(
        self,
        callbacks: Any,
        run_step: Callable[[], None],
        should_stop: Callable[[], bool],
        check_stop: Callable[[], None],
        position: Optional[Position] = None,
    ) -> None:
        """Runs the epochs of the plan.

        Args:
          callbacks: the group of all; its `before_train` has returned.
          run_step: called in each step.
          should_stop: asked after each step; True ends the training in order.
          check_stop: called after each step and its callbacks; may raise.
          position: where an earlier run was saved; None to begin with a whole epoch.
        """
        self.begun = True
        if position is not None and position.epoch_is_over:
            self._enter_epoch(position.epoch, position.steps_done)
            callbacks.finish_round("trigger_epoch", position.turns)
        latest: Deque[float] = deque(maxlen=_LATEST)  # seconds of epochs, with their callbacks
        for epoch in range(self.starting_epoch, self.max_epoch + 1):
            callbacks.check_over()
            logger.info(f"Start Epoch {epoch} ...{self._time_left(epoch, latest)}")
            start = time.monotonic()
            entered = Position(epoch, 0, None, [])
            if position is not None and position.epoch == epoch:
                entered = position
                logger.info(f"{entered.steps_done} steps of this epoch were done before.")
            self._enter_epoch(epoch, entered.steps_done)
            callbacks.before_epoch()
            if entered.hook == "trigger_step":
                callbacks.finish_round("trigger_step", entered.turns)
            self._run_steps(callbacks.trigger_step, run_step, should_stop, check_stop)
            if entered.hook == "after_epoch":
                callbacks.finish_round("after_epoch", entered.turns)
            else:
                callbacks.after_epoch()
            took = time.monotonic() - start
            logger.info(
                f"Epoch {epoch} (global_step {self.global_step}) finished, time:{took:.2f} sec."
            )
            callbacks.trigger_epoch()
            if not entered.steps_done:  # a part of an epoch says little
                latest.append(time.monotonic() - start)
        logger.info("Training has finished!")

    def _time_left(self, epoch: int, latest: "Deque[float]") -> str:
        """Returns how long the epochs from this one on will take, if that is known, as a sentence
        to append.
        """
        if not latest or self.max_epoch >= ENDLESS:
            return ""
        left = self.max_epoch + 1 - epoch
        seconds = left * sum(latest) / len(latest)
        epochs = f"{left} of {self.max_epoch} epochs"
        return f" Left: {epochs}, about {humanize_time_delta(seconds)}."

    def _run_steps(
        self,
        trigger_step: Callable[[], None],
        run_step: Callable[[], None],
        should_stop: Callable[[], bool],
        check_stop: Callable[[], None],
    ) -> None:
        while self.steps_done < self.steps_per_epoch:
            self.local_step += 1
            self.global_step += 1
            run_step()
            self.steps_done += 1
            self.steps_taken = self.global_step
            if should_stop():
                raise StopTraining(f"A hook asked for the end at global_step={self.global_step}.")
            trigger_step()
            check_stop()

    def _enter_epoch(self, epoch_num: int, steps_done: int) -> None:
        """Enters an epoch, of which an earlier run may have done some steps."""
        self.epoch_num = epoch_num
        self.local_step = steps_done - 1
        self.steps_done = steps_done
