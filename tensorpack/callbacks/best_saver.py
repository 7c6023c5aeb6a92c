"""Keeps a copy of the checkpoint for which a scalar was best."""

import os
from typing import List, Optional, Sequence, Tuple

from tensorpack.tfutils.checkpoint import CheckpointCorrupt, copy_checkpoint, pointed_to
from tensorpack.utils import logger
from tensorpack.utils._directory_lock import absolute_directory

from ._best_value import BestValue
from .base import Callback, innermost
from .monitor import ScalarRecord
from .saver import find_directory


class MinSaver(BestValue):
    """Keeps a copy of the checkpoint for which a scalar was least, as `min-{stat}`.

    Put it after the `ModelSaver` and the callback that computes the scalar in the list of
    callbacks; before them it keeps the same checkpoints, an epoch later. Only a checkpoint and a
    value of the same step belong together: if that checkpoint is not there, or not any more, it
    logs a warning. A run in which nothing measures the scalar ends with a RuntimeError.

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
        super().__init__(monitor_stat, reverse)
        self.filename = filename
        self._seen: Optional[ScalarRecord] = None
        self.checkpoint_dir = absolute_directory(checkpoint_dir) or logger.get_logger_dir() or ""

    @property
    def _kind(self) -> str:
        return "maximum" if self.reverse else "minimum"

    @property
    def target(self) -> str:
        """The path of the copy."""
        name = self.filename or f"{self._kind[:3]}-{self.monitor_stat}".replace("/", "-")
        return os.path.join(self.checkpoint_dir, name)

    def _setup_graph(self) -> None:
        self.checkpoint_dir = find_directory(self.checkpoint_dir, type(self).__name__)

    def _trigger(self) -> None:
        latest = self._latest()
        if latest is None or latest == self._seen:
            return
        self._seen = latest
        if not self._is_better(latest.value):
            return
        step, value = latest
        saver = self.trainer.state_saver
        if saver is not None:
            saver.wait()
        listed = pointed_to(self.checkpoint_dir)
        if not listed:
            raise RuntimeError(
                f"{self} found no checkpoint in {self.checkpoint_dir}: put a ModelSaver before it."
            )
        of_step = [each for each in listed if each.rpartition("-")[2] == str(step)]
        if not of_step:
            logger.warning(
                f"{self.monitor_stat} is from step {step}, but the newest checkpoint is "
                f"{listed[-1]}: {self} does nothing. Trigger both in the same epochs."
            )
            return
        self._keep(of_step[-1], step, value)

    def _at_end(self) -> None:
        self._trigger()  # the value of the last epoch may have come after its turn

    def _keep(self, path: str, step: int, value: float) -> None:
        try:
            copy_checkpoint(path, self.target)
        except (CheckpointCorrupt, OSError) as error:
            logger.error(f"Cannot keep {path} as {self.target}: {error}")
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


def best_kept(callbacks: Sequence[Callback]) -> List[Tuple[str, str]]:
    """Returns the paths of what these callbacks have kept as the best, and why, in words."""
    found = []
    for each in map(innermost, callbacks):
        if isinstance(each, MinSaver) and each.best is not None:
            step, value = each.best
            found.append((each.target, f"{each.monitor_stat} {value:.5g} at step {step}"))
    return found
