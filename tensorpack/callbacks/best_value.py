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

from .base import Callback, CallbackFactory, innermost
from .graph import ProcessTensors
from .monitor import ScalarRecord
from .saver import ModelSaver, find_directory


class BestValue(Callback):
    """Watches a scalar of `trainer.monitors`; a subclass asks for `_new_value` on trigger.

    A run in which nothing measures the scalar ends with a RuntimeError, see `check_measured`.

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
        self._seen = -1  # the step of the last value

    def _new_value(self) -> Optional[ScalarRecord]:
        """Returns the last value, once; None, with a warning, if there is none yet."""
        latest = newer_than(self._seen, self, self.monitor_stat)
        self._seen = self._seen if latest is None else latest.global_step
        return latest

    def check_over(self) -> None:
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
        if latest is None:
            return
        if self._is_better(latest.value, self._threshold):
            self.best, self._waited = tuple(latest), 0
        else:
            self._waited += 1

    def check_over(self) -> None:
        super().check_over()
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

    Put it after the `ModelSaver` and the callback that computes the scalar in the list of
    callbacks; before them it keeps the same checkpoints, an epoch later. Only a checkpoint and a
    value of the same step belong together: if that checkpoint is not there, or not any more, it
    logs a warning. A run that is resumed in another directory takes the copy along.

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
        self._kind = "maximum" if reverse else "minimum"
        self.checkpoint_dir = absolute_directory(checkpoint_dir) or logger.get_logger_dir() or ""

    @property
    def target(self) -> str:
        """The path of the copy."""
        name = self.filename or f"{self._kind[:3]}-{self.monitor_stat}".replace("/", "-")
        return os.path.join(self.checkpoint_dir, name)

    def _setup_graph(self) -> None:
        self.checkpoint_dir = find_directory(self.checkpoint_dir, type(self).__name__)

    def _before_train(self) -> None:
        kept = saved_step(self.target)
        if kept > self.global_step and self.trainer.resumed_from:
            if self._keep(self.target, f"{self.target}-{kept}"):
                logger.info(f"The best of step {kept} is cut off: it is now {self.target}-{kept}.")
        elif os.path.exists(self.target + INDEX):
            return
        if self.best is None:
            return
        # The run continues in another directory, perhaps on another machine.
        earlier = os.path.dirname(self.trainer.resumed_from or self.target)
        names = os.path.basename(self.target), f"model-{self.best[0]}"
        sources = [os.path.join(earlier, each) for each in names]
        sources = [each for each in sources if 0 <= saved_step(each) <= self.global_step]
        if not any(self._keep(each, self.target) for each in sources):
            logger.warning(f"{self} starts over, without the best so far, {self.best[1]:.5g}.")
            self.best = None

    def _trigger(self) -> None:
        latest = self._new_value()
        if latest is None or not self._is_better(latest.value):
            return
        step, value = latest
        saver = self._saver()
        if saver is not None:
            saver.wait()
        listed = pointed_to(self.checkpoint_dir)
        if not listed and saver is not None and saver.last_path is not None:
            listed = [saver.last_path]  # elsewhere, where the run is resumed from
        of_step = [each for each in listed if saved_step(each) == step]
        if of_step:
            # A run may have been resumed from the copy itself.
            if of_step[-1] == self.target or self._keep(of_step[-1], self.target):
                self.best, found = tuple(latest), f"{self._kind} {self.monitor_stat}={value:.5g}"
                logger.info(f"Model at global_step={step} with {found} saved.")
        elif saver is not None and saver.failure is not None:
            logger.warning(f"{self} does nothing: the model of step {step} could not be saved.")
        elif listed:
            logger.warning(
                f"{self.monitor_stat} is from step {step}, but the newest checkpoint is "
                f"{listed[-1]}: {self} does nothing. Trigger both in the same epochs."
            )
        else:
            raise RuntimeError(
                f"{self} found no checkpoint in {self.checkpoint_dir}: put a ModelSaver before it."
            )

    def _saver(self) -> Optional[ModelSaver]:
        """Returns what saves to the directory, or else the saver of the run's states."""
        state_saver = self.trainer.state_saver
        for each in [state_saver, *map(innermost, self.trainer.all_callbacks)]:
            if isinstance(each, ModelSaver) and each.checkpoint_dir == self.checkpoint_dir:
                return each
        return state_saver

    @staticmethod
    def _keep(source: str, target: str) -> bool:
        try:
            copy_checkpoint(source, target)
        except (CheckpointCorrupt, OSError) as error:
            logger.error(f"Cannot keep {source} as {target}: {error}")
            return False
        return True

    def _at_end(self) -> None:
        self._trigger()  # the value of the last epoch may have come after its turn


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


def best_kept(callbacks: Sequence[Callback]) -> List[Tuple[str, str]]:
    """Returns the paths of what these callbacks have kept as the best, and why, in words."""
    found = []
    for each in map(innermost, callbacks):
        if isinstance(each, MinSaver) and each.best is not None:
            step, value = each.best
            found.append((each.target, f"{each.monitor_stat} {value:.5g} at step {step}"))
    return found


def newer_than(step: int, waiting: Callback, name: str) -> Optional[ScalarRecord]:
    """Returns the last value of a scalar, unless it is of this step or there is none, which is a
    warning.
    """
    try:
        latest: ScalarRecord = waiting.trainer.monitors.latest_record(name)
    except KeyError:
        logger.warning(f"{waiting} does nothing: {name} has no value yet.")
        return None
    return None if latest.global_step == step else latest


def check_measured(waiting: Callback, name: str) -> None:
    """Raises a RuntimeError if a scalar has no value when all callbacks had their turn, unless it
    may come later: from a callback that has not been triggered yet, or one that is not the
    library's.
    """
    trainer, callbacks = waiting.trainer, waiting.trainer.all_callbacks
    if not callbacks or not _is_ours(trainer.__class__) or any(map(_may_report, callbacks)):
        return
    try:
        trainer.monitors.latest_record(name)
    except KeyError as error:
        waiting.was_triggered = False  # at the end of the run it has nothing to add
        raise RuntimeError(
            f"{waiting} waits for a scalar that nothing in this run measures. {error.args[0]}"
        ) from None


def _may_report(callback: Any) -> bool:
    """Whether a callback may put scalars that it has not put before."""
    inner = innermost(callback)
    parts = [callback, inner, *getattr(inner, "infs", ())]  # an `InferenceRunner` has some
    if not all(_is_ours(type(each)) for each in parts) or type(inner) is Callback:
        return True
    of_functions = isinstance(inner, (CallbackFactory, ProcessTensors))
    return of_functions or (inner.puts_scalars and not inner.was_triggered)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "tensorpack"
