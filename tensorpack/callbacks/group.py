"""The ordered group of all callbacks of a run: how they are called, timed, and how they fail."""

import time
from typing import Any, Callable, List, Optional, Sequence, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .base import Callback
from .hooks import CallbackToHook, sees_runs, sees_steps

__all__ = ["Callbacks"]

_REPORT_SECONDS = 3.0  # in total, below which nothing is said
_SLOW_SECONDS = 1.0  # a callback slower than this is named ...
_SLOW_SHARE = 0.3  # ... and so is one that took more than this share of the total


class Callbacks(Callback):
    """Calls callbacks one after the other, in the order of the list.

    An error of a callback ends the round and goes to the caller. `after_train` is the exception:
    it runs for every callback whose `before_train` was entered, whatever the others do; the first
    error is raised when all have run. Between two callbacks a requested stop ends the round.

    A callback with a true attribute `sets_up_last` is set up after all those without, so that it
    sees the variables and summaries that they add. A callback with a method `callback_returned` is
    told whenever one has done its part outside of the steps.

    Args:
      cbs: the callbacks.
      clock: returns seconds; only differences count.
    """

    def __init__(
        self, cbs: Sequence[Callback], clock: Callable[[], float] = time.monotonic
    ) -> None:
        for each in cbs:
            if not isinstance(each, Callback):
                raise TypeError(f"A list of callbacks has a {type(each).__name__} in it: {each!r}.")
        self.cbs: List[Callback] = list(cbs)
        self._clock = clock
        self._entered: List[Callback] = []
        self._stepped = [each for each in self.cbs if sees_steps(each)]
        told = [getattr(each, "callback_returned", None) for each in self.cbs]
        self._told: List[Callable[[], None]] = [each for each in told if each is not None]

    def setup_graph(self, trainer: Any) -> None:
        """Sets each callback up, under its own name scope only."""
        self.trainer = trainer
        self.graph = tf.get_default_graph()
        for each in sorted(self.cbs, key=lambda cb: bool(getattr(cb, "sets_up_last", False))):
            each.setup_graph(trainer)
            trainer.check_stop()

    def get_hooks(self) -> List[tf.train.SessionRunHook]:
        """Returns a hook for each callback that does something before or after a run."""
        return [CallbackToHook(each) for each in self.cbs if sees_runs(each)]

    def _before_train(self) -> None:
        for each in self.cbs:
            self._entered.append(each)
            each.before_train()
            self._tell()
            self.trainer.check_stop()

    def _before_epoch(self) -> None:
        for each in self.cbs:
            each.before_epoch()
            self._tell()

    def trigger_step(self) -> None:
        """Calls those that do something after each step."""
        for each in self._stepped:
            each.trigger_step()

    def _after_epoch(self) -> None:
        for each in self.cbs:
            each.after_epoch()
            self._tell()

    def _trigger_epoch(self) -> None:
        times: List[Tuple[float, str]] = []
        for each in self.cbs:
            start = self._clock()
            each.trigger_epoch()
            times.append((self._clock() - start, str(each)))
            self._tell()
            self.trainer.check_stop()
        _report(times)

    def _after_train(self) -> None:
        entered, self._entered = self._entered, []
        first: Optional[BaseException] = None
        for each in entered:
            try:
                each.after_train()
            except BaseException as error:  # the others own threads and files: they must have
                # their turn. The first error is raised below, if nothing else ended the run.
                logger.error(f"{each} failed at the end of the run: {error!r}")
                first = first or error
            self._tell()
        if first is not None:
            raise first

    def _tell(self) -> None:
        for callback_returned in self._told:
            callback_returned()


def _report(times: List[Tuple[float, str]]) -> None:
    total = sum(seconds for seconds, _ in times)
    if total < _REPORT_SECONDS:
        return
    slow = [
        f"{name}: {seconds:.3f}sec"
        for seconds, name in sorted(times, key=lambda each: -each[0])
        if seconds > _SLOW_SECONDS or seconds > _SLOW_SHARE * total
    ]
    logger.info(f"Callbacks took {total:.3f} sec in total. {'; '.join(slow)}")
