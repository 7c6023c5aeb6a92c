"""Callbacks that set hyper-parameters: by a function, a statistic, or by hand."""

import math
import os
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Dict, Optional, Union

import numpy as np

from tensorpack.tfutils.collectives import has_workers
from tensorpack.utils import logger
from tensorpack.utils.checks import as_count

from ._disk import require_log_directory
from .base import Callback
from .best_value import ScalarWatcher
from .param import GraphVarParam, HyperParam, as_hyper_param


class HyperParamSetter(Callback):
    """Sets a hyper-parameter, or the variable of a name, before the training and after each epoch;
    a base class.

    The value that an epoch ended with is put into the monitors under the name of the parameter, if
    it is one number and the graph has no summary of that name.

    Subclasses return the value from `_get_value_to_set`. A resumed run keeps the value of the saved
    state instead of setting one before the training.
    """

    _chief_only = False
    _enable_before_train = True
    _step_based = False  # whether values are set within epochs

    def __init__(self, param: Union[HyperParam, str]) -> None:
        self.param = as_hyper_param(param)
        self.state_of = self.param.readable_name
        self._last: Any = None  # the last value, as text
        self._logged_epoch: Optional[int] = None
        self._began = False  # in this run, or in the one that it resumes

    def get_value_to_set(self) -> Optional[float]:
        """Returns the value from now on, or None to keep it; logs a new one."""
        value = self._get_value_to_set()
        if value is None:
            return None
        form = "" if np.ndim(value) else ".5g" if 0 < abs(value) < 1e-4 else ".8f"
        before, self._last = self._last, f"{value:{form}}"
        if self._last != before and self._logged_epoch != self.epoch_num:  # not in every step
            self._logged_epoch = self.epoch_num
            name, epoch = self.param.readable_name, f"epoch {self.epoch_num + 1}"
            when = f"global_step {self.global_step}" if self._step_based else epoch
            logger.info(f"{name} at {when} will change to {self._last}")
        return value

    def _get_value_to_set(self) -> Optional[float]:
        """Override to return the value from now on, or None to keep it."""
        raise NotImplementedError(f"{type(self).__name__} must override _get_value_to_set().")

    def get_current_value(self) -> float:
        """Returns the present value of the hyper-parameter."""
        return self.param.get_value()

    def _setup_graph(self) -> None:
        self.param.setup_graph()
        # all workers of a group
        self._must_agree = isinstance(self.param, GraphVarParam) and has_workers()
        self._began = False

    def _before_train(self) -> None:
        if self._enable_before_train and not self._began:
            self._set()
        self._began = True

    def _after_epoch(self) -> None:
        name, monitors = self.param.readable_name, self.trainer.monitors
        with suppress(KeyError):
            if monitors.latest_record(name).global_step == self.global_step:
                return
        with suppress(NotImplementedError):  # a parameter that can only be set
            value = np.asarray(self.get_current_value())
            if value.size == 1 and value.dtype.kind in "biuf":
                monitors.put_scalar(name, value)

    def _trigger(self) -> None:
        self._set()

    def _set(self) -> None:
        value = self.get_value_to_set()
        if value is not None:
            self.param.set_value(value)

    def state_dict(self) -> Dict[str, Any]:
        state: Dict[str, Any] = {"of": self.state_of, "began": self._began, "last": self._last}
        if not self.param.in_checkpoint:
            with suppress(NotImplementedError):  # a parameter that can only be set
                state["value"] = self.param.get_value()
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if "value" in state:
            self.param.set_value(state["value"])
        self._began = state["began"] and ("value" in state or self.param.in_checkpoint)
        self._last = state["last"] if self._began else None  # otherwise it is set again


class HumanHyperParamSetter(HyperParamSetter):
    """Sets a hyper-parameter to the value in a text file, which can be edited during training.

    The file, in the log directory unless `file_name` is a full path, has lines `name:value`. It is
    read before the training, also of a resumed run, and after each epoch. It need not exist.
    Without a log directory, it is a RuntimeError. Where workers train together, in each step, it
    sets no variable, with a warning: each of them reads a file of its own.
    """

    def __init__(self, param: Union[HyperParam, str], file_name: str = "hyper.txt") -> None:
        super().__init__(param)
        directory = "" if os.path.isabs(file_name) else require_log_directory(self)
        self.file_name = os.path.join(directory, os.fsdecode(file_name))
        logger.info(f"Use {self.file_name} to control hyperparam {self.param.readable_name}.")

    def _before_train(self) -> None:
        self._began = True
        self._set()

    def _get_value_to_set(self) -> Optional[float]:
        try:
            with open(self.file_name, encoding="utf-8-sig", errors="replace") as file:
                lines = file.readlines()
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                logger.warning(f"Cannot read {self.file_name}: {error}")
            return None
        name, values = self.param.readable_name, []
        for line in lines:
            key, colon, text = line.rpartition(":")  # names of tensors have colons too
            if colon and key.strip() == name:
                with suppress(ValueError):
                    values.append(float(text))
        finite = [value for value in values if math.isfinite(value)]
        if not finite:
            logger.warning(f"Cannot find {name} in {self.file_name}")
        elif self._must_agree:
            why = "Other workers would not set it in this step. Use a ScheduledHyperParamSetter."
            logger.warning(f"{name} is not set to {finite[-1]:g}. {why}")
        return finite[-1] if finite and not self._must_agree else None


class HyperParamSetterWithFunc(HyperParamSetter):
    """Sets a hyper-parameter to the value that a function returns, or keeps it where that is None.

    The function takes the epoch that has just ended (`starting_epoch - 1` before the training) and
    the present value.
    """

    def __init__(
        self, param: Union[HyperParam, str], func: Callable[[int, float], Optional[float]]
    ) -> None:
        super().__init__(param)
        self._func = func

    def _get_value_to_set(self) -> Optional[float]:
        return self._func(self.epoch_num, self.get_current_value())


class StatMonitorParamSetter(ScalarWatcher, HyperParamSetter):
    """Changes a hyper-parameter when a scalar has not improved for some time.

    Each trigger takes the latest value of the scalar. When the best of the last `last_k` of them
    is not better than the oldest of them by more than `threshold`, the hyper-parameter is changed
    and the values are forgotten.

    Args:
      stat_name: name of the scalar in `trainer.monitors`.
      value_func: takes the present value of the hyper-parameter, returns the new one, or
        None to keep it.
      threshold: by how much the scalar has to improve.
      last_k: over how many values.
      reverse: whether more is better.

    Raises:
      ValueError: when the graph is built, for a variable of workers that train together: it would
        become another one on each.
    """

    _enable_before_train = False

    def __init__(
        self,
        param: Union[HyperParam, str],
        stat_name: str,
        value_func: Callable[[float], Optional[float]],
        threshold: float,
        last_k: int,
        reverse: bool = False,
    ) -> None:
        super().__init__(param)
        self.monitor_stat = stat_name
        self.state_of = f"{self.param.readable_name} by {stat_name}"
        self._value_func = value_func
        self._threshold = threshold
        self._reverse = reverse
        self._values: deque[float] = deque(maxlen=as_count(self, "last_k", last_k))

    def _setup_graph(self) -> None:
        super()._setup_graph()
        if self._must_agree:
            raise ValueError(
                f"{self} cannot set {self.param.readable_name}: workers that train together would "
                "set it to different values. Use a ScheduledHyperParamSetter."
            )

    def _get_value_to_set(self) -> Optional[float]:
        latest = self._new_value()
        if latest is None:
            return None
        self._values.append(latest.value)
        if len(self._values) < (self._values.maxlen or 0):
            return None
        sign = 1.0 if self._reverse else -1.0
        values = [-math.inf if math.isnan(value) else sign * value for value in self._values]
        if max(values) - values[0] > self._threshold:
            return None
        self._values.clear()
        value = self._value_func(self.get_current_value())
        logger.info(f"{self.monitor_stat} has not improved: {self.param.readable_name} is changed.")
        return value

    def state_dict(self) -> Dict[str, Any]:
        return {**super().state_dict(), "seen": list(self._values), "last_step": self._seen}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._values.clear()
        self._values.extend(state["seen"])
        self._seen = state["last_step"]
