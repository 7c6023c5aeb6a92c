"""Logs the scalars of an epoch, one line for each."""

import re
from typing import Optional, Sequence

from tensorpack.runs.statistics import scalar_rank
from tensorpack.utils import logger
from tensorpack.utils.checks import as_list

from ..monitor import LastValues

_STATISTICS = ("param-summary/", "SummaryGradient/", "activation-summary/")


class ScalarPrinter(LastValues):
    """Logs `{name}: {value}` for the scalars put since the last time: scores and accuracies first,
    then costs, losses and errors, then the others, and last the statistics of gradients, parameters
    and activations (of `SummaryGradient`, `add_param_summary` and `add_activation_summary`), each
    of them sorted by name.

    Args:
      enable_step: whether to do so after each step.
      enable_epoch: whether to do so after each epoch.
      whitelist: regular expressions; only names in which one of them is found are logged.
      blacklist: regular expressions; names in which one of them is found are not logged.
    """

    def __init__(
        self,
        enable_step: bool = False,
        enable_epoch: bool = True,
        whitelist: Optional[Sequence[str]] = None,
        blacklist: Optional[Sequence[str]] = None,
    ) -> None:
        super().__init__()
        if enable_step:  # else a step has nothing to call
            self._trigger_step = self._print_step  # type: ignore[method-assign]
        self._enable_epoch = enable_epoch
        blacklist = as_list(self, "blacklist", [] if blacklist is None else blacklist)
        whitelist = as_list(self, "whitelist", [""] if whitelist is None else whitelist)
        self._blacklist = [re.compile(pattern) for pattern in blacklist]
        self._whitelist = [re.compile(pattern) for pattern in whitelist]

    def _print_step(self) -> None:
        last = self.local_step == self.trainer.steps_per_epoch - 1
        if not (last and self._enable_epoch):  # the epoch logs it anyway
            self._print()

    def _trigger(self) -> None:
        if self._enable_epoch:
            self._print()

    def _print(self) -> None:
        for name in sorted(self._values, key=lambda k: (k.startswith(_STATISTICS), scalar_rank(k))):
            wanted = any(pattern.search(name) for pattern in self._whitelist)
            if wanted and not any(pattern.search(name) for pattern in self._blacklist):
                logger.info(f"{name}: {self._values[name]:.5g}")
        self._values.clear()
