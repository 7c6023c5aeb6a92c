"""Callbacks that set hyper-parameters: by a function, a statistic, or by hand."""

import math
import os
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Dict, Optional, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.checks import as_count

from .base import Callback
from .best_value import check_measured
from .param import HyperParam, as_hyper_param


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

    def __init__(self, param: Union[HyperParam, str]) -> None:
        self.param = as_hyper_param(param)
        self._last: Any = None
        self._logged_epoch: Optional[int] = None
        self._began = False  # in this run, or in the one that it resumes

    def get_value_to_set(self) -> Optional[float]:
        """Returns the value from now on, or None to keep it; logs a new one."""
        return self._noted(self._get_value_to_set())

    def _noted(self, value: Optional[float]) -> Optional[float]:
        if value is not None and not np.array_equal(value, self._last):
            self._last = value
            # It may change in every step. The first value is always told.
            if self._logged_epoch != self.epoch_num and not (
                self._began and self._is_present(value)
            ):
                self._logged_epoch = self.epoch_num
                name = self.param.readable_name
                form = "" if np.ndim(value) else ".5g" if 0 < abs(value) < 1e-4 else ".8f"
                logger.info(f"{name} at {self._moment()} will change to {value:{form}}")
        return value

    def _moment(self) -> str:
        """Returns when a value is set, in words."""
        return f"epoch {self.epoch_num + 1}"

    def _is_present(self, value: float) -> bool:
        present = self._present()
        keeps_digits = present.dtype.kind != "f"
        return bool(np.all(present == (value if keeps_digits else present.dtype.type(value))))

    def _present(self) -> np.ndarray:
        """Returns the present value; an array of None if the parameter can only be set."""
        with suppress(NotImplementedError):
            return np.asarray(self.get_current_value())
        return np.asarray(None)

    def _get_value_to_set(self) -> Optional[float]:
        """Override to return the value from now on, or None to keep it."""
        raise NotImplementedError(f"{type(self).__name__} must override _get_value_to_set().")

    def get_current_value(self) -> float:
        """Returns the present value of the hyper-parameter."""
        return self.param.get_value()

    def _setup_graph(self) -> None:
        self.param.setup_graph()
        self._began = False

    def _before_train(self) -> None:
        if self._enable_before_train and not self._began:
            self._set()
        self._began = True

    def _after_epoch(self) -> None:
        name, value, monitors = self.param.readable_name, self._present(), self.trainer.monitors
        with suppress(KeyError):
            if monitors.latest_record(name).global_step == self.global_step:
                return
        if value.size == 1 and value.dtype.kind in "biuf":
            monitors.put_scalar(name, value)

    def _trigger(self) -> None:
        self._set()

    def _set(self) -> None:
        self._apply(self.get_value_to_set())

    def _apply(self, value: Optional[float]) -> None:
        if value is not None:
            self.param.set_value(value)

    def state_dict(self) -> Dict[str, Any]:
        state: Dict[str, Any] = {"began": self._began, "last": self._last}
        if not self.param.in_checkpoint:
            with suppress(NotImplementedError):  # a parameter that can only be set
                state["value"] = self.param.get_value()
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        has_value = "value" in state
        if has_value:
            self.param.set_value(state["value"])
        self._began = state["began"] and (has_value or self.param.in_checkpoint)
        self._last = state["last"] if self._began else None  # otherwise it is set again


class HumanHyperParamSetter(HyperParamSetter):
    """Sets a hyper-parameter to the value in a text file, which can be edited during training.

    The file, in the log directory unless `file_name` is a full path, has lines `name:value`. It is
    read before the training, also of a resumed run, and after each epoch. It need not exist.
    Without a log directory, it is a RuntimeError.
    """

    def __init__(self, param: Union[HyperParam, str], file_name: str = "hyper.txt") -> None:
        super().__init__(param)
        directory = logger.get_logger_dir()
        if directory is None and not os.path.isabs(file_name):
            raise RuntimeError(
                f"{file_name} is looked for in the log directory: call logger.set_logger_dir() "
                "or logger.auto_set_dir() before making a HumanHyperParamSetter."
            )
        self.file_name = os.path.join(directory or "", file_name)
        logger.info(f"Use {self.file_name} to control hyperparam {self.param.readable_name}.")

    def _before_train(self) -> None:
        self._began = True
        self._set()

    def _get_value_to_set(self) -> Optional[float]:
        try:
            with open(self.file_name, encoding="utf-8-sig", errors="replace") as file:
                lines = file.readlines()
        except FileNotFoundError:
            return None
        except OSError as error:
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
        return finite[-1] if finite else None


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


class StatMonitorParamSetter(HyperParamSetter):
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
        self._stat_name = stat_name
        self._value_func = value_func
        self._threshold = threshold
        self._reverse = reverse
        self._seen: deque[float] = deque(maxlen=as_count(self, "last_k", last_k, least=2))
        self._last_step = -1

    def _get_value_to_set(self) -> Optional[float]:
        if not self._observe() or len(self._seen) < (self._seen.maxlen or 0):
            return None
        sign = 1.0 if self._reverse else -1.0
        values = [-math.inf if math.isnan(value) else sign * value for value in self._seen]
        if max(values) - values[0] > self._threshold:
            return None
        self._seen.clear()
        value = self._value_func(self.get_current_value())
        logger.info(f"{self._stat_name} has not improved: {self.param.readable_name} is changed.")
        return value

    def check_over(self) -> None:
        if self.was_triggered and self._last_step < 0:
            check_measured(self, self._stat_name)

    def _observe(self) -> bool:
        """Takes the latest value of the scalar; returns whether there was a new one."""
        try:
            step, value = self.trainer.monitors.latest_record(self._stat_name)
        except KeyError:
            logger.warning(f"No {self._stat_name} yet: {self.param.readable_name} is not changed.")
            return False
        if step == self._last_step:
            logger.warning(f"There is no new value of {self._stat_name} since step {step}.")
            return False
        self._last_step = step
        self._seen.append(value)
        return True

    def state_dict(self) -> Dict[str, Any]:
        return {**super().state_dict(), "seen": list(self._seen), "last_step": self._last_step}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._seen.clear()
        self._seen.extend(state["seen"])
        self._last_step = state["last_step"]
