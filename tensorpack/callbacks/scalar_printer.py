"""Logs the scalars of an epoch, one line for each."""

import re
from typing import Any, Dict, List, Optional, Sequence

from tensorpack.utils import logger
from tensorpack.utils.checks import as_list

from .monitor import MonitorBase

__all__ = ["ScalarPrinter"]


class ScalarPrinter(MonitorBase):
    """Logs `{name}: {value}`, sorted by name, for all scalars put since the last time.

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
        self._enable_step = enable_step
        self._enable_epoch = enable_epoch
        self._whitelist = None if whitelist is None else self._patterns("whitelist", whitelist)
        self._blacklist = self._patterns("blacklist", blacklist or [])
        self._values: Dict[str, float] = {}

    def process_scalar(self, name: str, val: float) -> None:
        """Keeps the last value until it is logged."""
        self._values[name] = val

    def _trigger_step(self) -> None:
        last = self.local_step == self.trainer.steps_per_epoch - 1
        if self._enable_step and not (last and self._enable_epoch):  # the epoch logs it anyway
            self._print()

    def _trigger(self) -> None:
        if self._enable_epoch:
            self._print()

    def state_dict(self) -> Dict[str, Any]:
        """The scalars that are still to be logged."""
        return {"values": dict(self._values)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores them."""
        self._values = dict(state["values"])

    def _print(self) -> None:
        for name, value in sorted(self._values.items()):
            if self._is_wanted(name):
                logger.info(f"{name}: {value:.5g}")
        self._values.clear()

    def _is_wanted(self, name: str) -> bool:
        if any(each.search(name) for each in self._blacklist):
            return False
        return self._whitelist is None or any(each.search(name) for each in self._whitelist)

    def _patterns(self, name: str, expressions: Sequence[str]) -> List["re.Pattern[str]"]:
        return [re.compile(each) for each in as_list(self, name, expressions)]
