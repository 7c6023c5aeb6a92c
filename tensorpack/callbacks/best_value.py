"""Looks for the best value of a scalar, to keep that checkpoint or to end a run."""

import math
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.checkpoint import CheckpointCorrupt, copy_checkpoint, pointed_to
from tensorpack.utils import logger
from tensorpack.utils._directory_lock import absolute_directory
from tensorpack.utils.checkpoints.files import INDEX, saved_step
from tensorpack.utils.checks import as_count, as_number
from tensorpack.utils.stopping import Failed, Interrupted

from .base import Callback, innermost
from .monitor import ScalarRecord
from .saver import ModelSaver, find_directory


class ScalarWatcher(Callback):
    """Waits for values of the scalar `monitor_stat` of `trainer.monitors`.

    A name without a value is a warning at first, and a RuntimeError at the end of a run, unless
    that failed or was interrupted.
    """

    monitor_stat: str
    _seen = -1  # the step of the last value
    _missing = ""  # why there is no value

    def _new_value(self) -> Optional[ScalarRecord]:
        """Returns the last value, once."""
        try:
            latest: ScalarRecord = self.trainer.monitors.latest_record(self.monitor_stat)
        except KeyError as error:
            if not self._missing:
                logger.warning(f"{self} does nothing yet. {error.args[0]}")
            self._missing = error.args[0]
            return None
        is_new, self._seen, self._missing = latest.global_step != self._seen, latest.global_step, ""
        return latest if is_new else None

    def _after_train(self) -> None:
        if not isinstance(self.trainer.stop_token.reason, (Failed, Interrupted)):
            if self._missing or self._seen >= 0:
                self._look_again()  # the last value may have come after its turn
            if self._missing:
                raise RuntimeError(f"{self} did nothing in this run. {self._missing}")

    def _look_again(self) -> None:
        self._new_value()


class BestValue(ScalarWatcher):
    """Keeps the best value of a scalar; a subclass asks for `_new_value` on trigger.

    Attributes:
      monitor_stat: name of the scalar.
      reverse: whether the greatest value is the best, not the least.
      best: (global_step, value), or None.
    """

    def __init__(self, monitor_stat: str, reverse: bool = False) -> None:
        self.monitor_stat = monitor_stat
        self.reverse = reverse
        self.state_of = f"the {'greatest' if reverse else 'least'} {monitor_stat}"
        self.best: Any = None

    def _is_better(self, value: float, threshold: float = 0.0) -> bool:
        """Whether a value is better than the best, by more than the threshold; NaN and infinity
        never are, and everything is better than those.
        """
        best = self.best[1] if self.best else math.nan
        if not (math.isfinite(value) and math.isfinite(best)):
            return math.isfinite(value)
        return (value - best if self.reverse else best - value) > threshold

    def state_dict(self) -> Dict[str, Any]:
        if self.best is None:
            return {}
        return {"of": self.state_of, "step": self.best[0], "value": self.best[1]}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if "value" in state:
            self.best = (state["step"], state["value"])


class EarlyStop(BestValue):
    """Ends the training in order when a scalar has not become better for a while.

    Put it after the callback that computes the scalar, such as an `InferenceRunner`. It looks at
    the scalar on trigger, and a value counts once, however often it looks. The training ends before
    the next epoch, so all callbacks finish theirs.

    Args:
      monitor_stat: name of the scalar in `trainer.monitors`.
      patience: how many values in a row may be no better than the best one.
      reverse: whether greater is better; by default less is.
      threshold: by how much a value must be better, at least 0.
    """

    def __init__(
        self, monitor_stat: str, patience: int, reverse: bool = False, threshold: float = 0.0
    ) -> None:
        super().__init__(monitor_stat, reverse)
        self._patience = as_count(self, "patience", patience)
        self._threshold = as_number(self, "threshold", threshold, least=0)
        self._waited = 0  # how many values came after the best one

    def _trigger(self) -> None:
        latest = self._new_value()
        if latest is not None:
            self._waited += 1
            if self._is_better(latest.value, self._threshold):
                self.best, self._waited = tuple(latest), 0

    def check_over(self) -> None:
        if self._waited >= self._patience:
            best = "" if self.best is None else f" than {self.best[1]:.5g} at step {self.best[0]}"
            raise StopTraining(
                f"{self.monitor_stat} did not become better{best} in {self._waited} values."
            )

    def state_dict(self) -> Dict[str, Any]:
        return {**super().state_dict(), "seen": self._seen, "waited": self._waited}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._seen, self._waited = state["seen"], state["waited"]


class MinSaver(BestValue):
    """Keeps a copy of the checkpoint for which a scalar was least, as `min-{stat}`.

    Put it after the callback that computes the scalar; before that it keeps the same checkpoints,
    an epoch later. A value of whose step no checkpoint is there when the next epoch begins is a
    warning. A run that is resumed in another directory takes the copy along.

    Args:
      monitor_stat: name of the scalar in `trainer.monitors`.
      reverse: keep the greatest instead.
      filename: name of the copy; `min-{stat}` or `max-{stat}` by default, with `-` for `/`.
      checkpoint_dir: where the checkpoints are; the log directory by default.
    """

    _late: Any = None  # (step, better value), until a ModelSaver behind it has saved

    def __init__(
        self,
        monitor_stat: str,
        reverse: bool = False,
        filename: Optional[str] = None,
        checkpoint_dir: Optional[str] = None,
    ) -> None:
        super().__init__(monitor_stat, reverse)
        self.filename = filename
        self._kind = "maximum" if reverse else "minimum"
        self.checkpoint_dir = absolute_directory(checkpoint_dir) or logger.get_logger_dir() or ""

    def _setup_graph(self) -> None:
        self.checkpoint_dir = find_directory(self.checkpoint_dir, type(self).__name__)
        name = self.filename or f"{self._kind[:3]}-{self.monitor_stat}".replace("/", "-")
        self.target = os.path.join(self.checkpoint_dir, name)

    def _before_train(self) -> None:
        step = saved_step(self.target)
        if step > self.global_step and self.trainer.resumed_from:
            if self._copy(self.target, f"{self.target}-{step}"):
                logger.info(f"The best of step {step} is cut off: it is now {self.target}-{step}.")
        elif os.path.exists(self.target + INDEX):
            return
        if self.best is None:
            return
        directory = os.path.dirname(self.trainer.resumed_from or self.target)  # perhaps another one
        for name in os.path.basename(self.target), f"model-{self.best[0]}":
            path = os.path.join(directory, name)
            if 0 <= saved_step(path) <= self.global_step and self._copy(path, self.target):
                return
        logger.warning(f"{self} starts over, without the best so far, {self.best[1]:.5g}.")
        self.best = None

    def _trigger(self) -> None:
        self._before_epoch()
        latest = self._new_value()
        if latest is not None and self._is_better(latest.value) and not self._keep(latest):
            self._late = tuple(latest)

    def _before_epoch(self) -> None:
        late, self._late = self._late, None
        if late and not self._keep(late):
            logger.warning(
                f"{self} does nothing: {self.monitor_stat} is from step {late[0]}, of which no "
                "model was saved. Trigger it in the same epochs as the ModelSaver."
            )

    def _keep(self, record: Any) -> bool:
        """Copies the checkpoint of its step; returns whether there is one."""
        step, value = record
        callbacks = map(innermost, self.trainer.all_callbacks)
        savers = [cb for cb in callbacks if isinstance(cb, ModelSaver)]
        if not savers:
            raise RuntimeError(f"{self} finds no checkpoint: it needs a ModelSaver beside it.")
        for saver in savers:
            saver.wait()
        # What the run was resumed from may be elsewhere, or the copy itself.
        paths = [*reversed(pointed_to(self.checkpoint_dir)), *(saver.last_path for saver in savers)]
        path = next((path for path in paths if path and saved_step(path) == step), None)
        if path is not None and (path == self.target or self._copy(path, self.target)):
            self.best, stat = (step, value), f"{self._kind} {self.monitor_stat}={value:.5g}"
            logger.info(f"Model at global_step={step} with {stat} saved.")
        return path is not None

    def _copy(self, source: str, target: str) -> bool:
        try:
            copy_checkpoint(source, target)
        except (CheckpointCorrupt, OSError) as error:
            logger.error(f"Cannot keep {source} as {target}: {error}")
            return False
        return True

    def _look_again(self) -> None:
        self._trigger()
        self._before_epoch()

    def state_dict(self) -> Dict[str, Any]:
        late = {"late": self._late} if self._late else {}
        return {**super().state_dict(), **late}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._late = state.get("late")


class MaxSaver(MinSaver):
    """Keeps a copy of the checkpoint for which a scalar was greatest, as `max-{stat}`; see
    `MinSaver`.
    """

    def __init__(
        self,
        monitor_stat: str,
        filename: Optional[str] = None,
        checkpoint_dir: Optional[str] = None,
    ) -> None:
        super().__init__(monitor_stat, True, filename=filename, checkpoint_dir=checkpoint_dir)


def best_paths(callbacks: Sequence[Callback]) -> List[Tuple[str, str]]:
    """Returns the paths of what these callbacks have kept as the best, and why, in words."""
    savers = [cb for cb in map(innermost, callbacks) if isinstance(cb, MinSaver) and cb.best]
    return [
        (cb.target, f"{cb.monitor_stat} {cb.best[1]:.5g} at step {cb.best[0]}") for cb in savers
    ]
