"""Keeps a copy of the checkpoint for which a scalar was best."""

import os
from typing import Any, Dict, Optional

from tensorpack.tfutils.checkpoint import CheckpointCorrupt, copy_checkpoint, pointed_to
from tensorpack.utils import logger

from .base import Callback
from .saver import find_directory

__all__ = ["MaxSaver", "MinSaver"]


class MinSaver(Callback):
    """Keeps a copy of the checkpoint for which a scalar was least, as `min-{stat}`.

    Put it after the `ModelSaver` and the callback that computes the scalar in the list of
    callbacks. Only a checkpoint and a value of the same step belong together; otherwise it logs a
    warning.

    Args:
      monitor_stat: name of the scalar in `trainer.monitors`.
      reverse: keep the greatest instead.
      filename: name of the copy; `min-{stat}` or `max-{stat}` by default, with `-` for `/`.
      checkpoint_dir: where the checkpoints are; the log directory by default.
    """

    def __init__(
        self,
        monitor_stat: str,
        reverse: bool = False,
        filename: Optional[str] = None,
        checkpoint_dir: Optional[str] = None,
    ) -> None:
        self.monitor_stat = monitor_stat
        self.reverse = reverse
        self.filename = filename
        self.checkpoint_dir: str = checkpoint_dir or logger.get_logger_dir() or ""
        self.best: Any = None  # (global_step, value)

    @property
    def _kind(self) -> str:
        return "maximum" if self.reverse else "minimum"

    def _setup_graph(self) -> None:
        self.checkpoint_dir = find_directory(self.checkpoint_dir, type(self).__name__)

    def _trigger(self) -> None:
        try:
            step, value = self.trainer.monitors.get_history(self.monitor_stat)[-1]
        except KeyError:
            logger.warning(f"{self} does nothing: {self.monitor_stat} has no value yet.")
            return
        if not self._is_better(value):
            return
        saver = self.trainer.state_saver
        if saver is not None:
            saver.wait()
        listed = pointed_to(self.checkpoint_dir)
        if not listed:
            raise RuntimeError(
                f"{self} found no checkpoint in {self.checkpoint_dir}: put a ModelSaver before it."
            )
        newest = listed[-1]
        if newest.rpartition("-")[2] != str(step):
            logger.warning(
                f"{self.monitor_stat} is from step {step}, but the newest checkpoint is {newest}: "
                f"{self} does nothing. Trigger both in the same epochs."
            )
            return
        self._keep(newest, step, value)

    def state_dict(self) -> Dict[str, Any]:
        """Returns the best value so far, and its step."""
        return {} if self.best is None else {"step": self.best[0], "value": self.best[1]}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores the best value so far."""
        self.best = (state["step"], state["value"])

    def _is_better(self, value: float) -> bool:
        if value != value:  # NaN
            return False
        if self.best is None:
            return True
        return value > self.best[1] if self.reverse else value < self.best[1]

    def _keep(self, newest: str, step: int, value: float) -> None:
        name = self.filename or f"{self._kind[:3]}-{self.monitor_stat}".replace("/", "-")
        target = os.path.join(self.checkpoint_dir, name)
        try:
            copy_checkpoint(newest, target)
        except (CheckpointCorrupt, OSError) as error:
            logger.error(f"Cannot keep {newest} as {target}: {error}")
            return
        self.best = (step, value)
        logger.info(
            f"Model at global_step={step} with {self._kind} {self.monitor_stat}={value:.5g} saved."
        )


class MaxSaver(MinSaver):
    """Keeps a copy of the checkpoint for which a scalar was greatest, as `max-{stat}`.

    Everything else is as in `MinSaver`.
    """

    def __init__(
        self,
        monitor_stat: str,
        filename: Optional[str] = None,
        checkpoint_dir: Optional[str] = None,
    ) -> None:
        super().__init__(monitor_stat, True, filename=filename, checkpoint_dir=checkpoint_dir)
