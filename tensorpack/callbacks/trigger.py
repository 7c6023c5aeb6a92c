"""Callbacks that control when another callback is active."""

from typing import Any, Callable, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.hooked_session import overrides
from tensorpack.utils import logger
from tensorpack.utils.checks import as_count, as_count_or_none

from .base import Callback, ProxyCallback, innermost


class PeriodicTrigger(ProxyCallback):
    """Triggers a callback every so many steps or epochs, instead of every epoch.

    ::

        every_k_steps=2, three steps an epoch
        step       1  2  3 | 4  5  6 |
        trigger       x      x     x

    All other methods of the callback are called as usual.

    Args:
      every_k_steps: trigger after the steps whose `global_step` is a multiple of this.
      every_k_epochs: trigger after the epochs whose number is a multiple of this.
      before_train: whether to also trigger before the training, unless the run is resumed.
    """

    def __init__(
        self,
        triggerable: Callback,
        every_k_steps: Optional[int] = None,
        every_k_epochs: Optional[int] = None,
        before_train: bool = False,
    ) -> None:
        super().__init__(triggerable)
        self._every_k_steps = as_count_or_none(self, "every_k_steps", every_k_steps)
        self._every_k_epochs = as_count_or_none(self, "every_k_epochs", every_k_epochs)
        self._trigger_before_train = before_train
        if not (self._every_k_steps or self._every_k_epochs or before_train):
            raise ValueError("PeriodicTrigger needs every_k_steps or every_k_epochs.")
        if not overrides(Callback, innermost(triggerable), "trigger", "_trigger"):
            logger.warning(
                f"{self} has nothing to trigger: what is inside has no _trigger, and what it does "
                "in runs is done in all of them. Use PeriodicRunHooks or PeriodicCallback."
            )

    def _before_train(self) -> None:
        self.cb.before_train()
        if self._trigger_before_train and not self.trainer.resumed:
            self.cb.trigger()

    def _trigger_step(self) -> None:
        self.cb.trigger_step()
        if self._every_k_steps and self.trainer.global_step % self._every_k_steps == 0:
            self.cb.trigger()

    def _trigger_epoch(self) -> None:
        if self._every_k_epochs and self.epoch_num % self._every_k_epochs == 0:
            self.cb.trigger()


class _SomeRuns(ProxyCallback):
    """Lets a callback see only the runs before which a condition, a function of this one, holds."""

    def __init__(self, callback: Callback, pred: Callable[[Any], bool]) -> None:
        super().__init__(callback)
        self._pred = pred

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        self._seen = self._pred(self)
        return self.cb.before_run(ctx) if self._seen else None

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        if self._seen:
            self.cb.after_run(ctx, run_values)


class PeriodicRunHooks(_SomeRuns):
    """Lets a callback see only the runs of the steps whose `global_step` is a multiple of
    `every_k_steps`.
    """

    def __init__(self, callback: Callback, every_k_steps: int) -> None:
        super().__init__(callback, lambda self: self.global_step % self._every_k_steps == 0)
        self._every_k_steps = as_count(self, "every_k_steps", every_k_steps)


class EnableCallbackIf(_SomeRuns):
    """Switches a callback off while a condition, a function of this callback, does not hold.

    `setup_graph`, `before_train` and `after_train` are always called. The condition is evaluated
    before a run and holds until after it.
    """

    def _before_epoch(self) -> None:
        if self._pred(self):
            self.cb.before_epoch()

    def _trigger_step(self) -> None:
        if self._pred(self):
            self.cb.trigger_step()

    def _after_epoch(self) -> None:
        if self._pred(self):
            self.cb.after_epoch()

    def _trigger_epoch(self) -> None:
        if self._pred(self):
            self.cb.trigger_epoch()

    def _trigger(self) -> None:
        if self._pred(self):
            self.cb.trigger()


class PeriodicCallback(EnableCallbackIf):
    """Switches a callback on only in the steps whose `global_step` is a multiple of
    `every_k_steps`, and in the epochs whose number is a multiple of `every_k_epochs`.

    With `every_k_epochs`, it is on in the last step of the training as well.
    """

    def __init__(
        self,
        callback: Callback,
        every_k_steps: Optional[int] = None,
        every_k_epochs: Optional[int] = None,
    ) -> None:
        super().__init__(callback, PeriodicCallback.predicate)
        self._every_k_steps = as_count_or_none(self, "every_k_steps", every_k_steps)
        self._every_k_epochs = as_count_or_none(self, "every_k_epochs", every_k_epochs)
        if not (self._every_k_steps or self._every_k_epochs):
            raise ValueError("PeriodicCallback needs every_k_steps or every_k_epochs.")

    def predicate(self) -> bool:
        """Whether the callback inside is on now."""
        steps, epochs, trainer = self._every_k_steps, self._every_k_epochs, self.trainer
        if steps and self.global_step % steps == 0:
            return True
        if not epochs:
            return False
        last = (trainer.max_epoch, trainer.steps_per_epoch - 1)
        return self.epoch_num % epochs == 0 or (self.epoch_num, self.local_step) == last
