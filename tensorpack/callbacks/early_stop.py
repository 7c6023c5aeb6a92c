"""Ends a training whose validation does not get better any more."""

from typing import Any, Dict

from tensorpack.tfutils.callback import StopTraining
from tensorpack.utils.checks import as_count, as_number

from ._best_value import BestValue


class EarlyStop(BestValue):
    """Ends the training in order when a scalar has not become better for a while.

    Put it after the callback that computes the scalar, such as an `InferenceRunner`. It looks at
    the scalar on trigger, and a value counts once, however often it looks. The training ends before
    the next epoch, so all callbacks finish theirs. A run in which nothing measures the scalar ends
    with a RuntimeError.

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
        self._seen = -1  # the step of the last value
        self._waited = 0  # how many values came after the best one
        self._patience_then = self._patience  # of the run that is resumed

    def _trigger(self) -> None:
        latest = self._latest()
        if latest is None or latest.global_step == self._seen:
            return
        self._seen = latest.global_step
        if self._is_better(latest.value, self._threshold):
            self.best, self._waited = tuple(latest), 0
        else:
            self._waited += 1

    def check_over(self) -> None:
        """Raises `StopTraining` when it has waited for long enough."""
        super().check_over()
        if self._waited >= self._patience:
            best = "" if self.best is None else f" than {self.best[1]:.5g} at step {self.best[0]}"
            raise StopTraining(
                f"{self.monitor_stat} did not become better{best} in {self._waited} values."
            )

    def ended(self, message: str) -> bool:
        """Whether this callback ended the resumed run with this message, and would again."""
        mine = message.startswith(f"StopTraining: {self.monitor_stat} did not become better")
        return mine and self._patience <= self._patience_then

    def state_dict(self) -> Dict[str, Any]:
        own = {"seen": self._seen, "waited": self._waited, "patience": self._patience}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if "value" in state:
            super().load_state_dict(state)
        self._seen, self._waited = state["seen"], state["waited"]
        self._patience_then = state["patience"]
