"""Runs the epochs of a trainer, from the beginning or from where an earlier run stood."""

import time
from typing import Any

from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.utils import logger

from .run_state import Position, RunState

__all__ = ["Epochs"]


class Epochs:
    """The main loop of a run.

    Args:
      trainer: its `loop` counts, its `run_step` is called in each step.
      state: what the run goes on from.

    Attributes:
      begun: whether every callback's `before_train` has returned.
    """

    def __init__(self, trainer: Any, state: RunState) -> None:
        self._trainer = trainer
        self._state = state
        self.begun = False

    def run(self, callbacks: Any) -> None:
        """Runs what is left, in the default graph and session.

        Args:
          callbacks: the group of all.
        """
        config, loop, state = self._trainer.config, self._trainer.loop, self._state
        state.load(callbacks, config.starting_epoch)
        loop.config(config.steps_per_epoch, state.first_epoch, config.max_epoch)
        loop.go_on_from(get_global_step_value())
        callbacks.before_train()
        state.load_random()
        self.begun = True
        before = state.position
        if before is not None and before.epoch_is_over:
            loop.begin_epoch(before.epoch, before.steps_done)
            callbacks.finish_round("trigger_epoch", before.turns)
        for epoch in loop.epochs():
            self._run_epoch(epoch, callbacks)
        logger.info("Training has finished!")

    def _run_epoch(self, epoch: int, callbacks: Any) -> None:
        logger.info(f"Start Epoch {epoch} ...")
        start = time.monotonic()
        self._run_steps(epoch, self._position_in(epoch), callbacks)
        took = time.monotonic() - start
        step = self._trainer.global_step
        logger.info(f"Epoch {epoch} (global_step {step}) finished, time:{took:.2f} sec.")
        callbacks.trigger_epoch()

    def _position_in(self, epoch: int) -> Position:
        """Where in an epoch this run enters it."""
        before = self._state.position
        if before is None or before.epoch != epoch:
            return Position(epoch, 0, None, [])
        logger.info(f"{before.steps_done} steps of this epoch were done before.")
        return before

    def _run_steps(self, epoch: int, position: Position, callbacks: Any) -> None:
        trainer, loop = self._trainer, self._trainer.loop
        loop.begin_epoch(epoch, position.steps_done)
        callbacks.before_epoch()
        if position.hook == "trigger_step":
            callbacks.finish_round("trigger_step", position.turns)
        run_step, should_stop = trainer.run_step, trainer.hooked_sess.should_stop
        trigger_step, check_stop = callbacks.trigger_step, trainer.check_stop
        for _ in range(position.steps_done, loop.steps_per_epoch):
            loop.begin_step()
            run_step()
            loop.end_step()
            if should_stop():
                raise StopTraining(f"A hook asked for the end at global_step={loop.global_step}.")
            trigger_step()
            check_stop()
        if position.hook == "after_epoch":
            callbacks.finish_round("after_epoch", position.turns)
        else:
            callbacks.after_epoch()
