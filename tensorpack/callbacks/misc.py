"""Callbacks for the user: statistics sent by a command, the time left, a shell."""

import os
import shlex
import time
from collections import deque
from typing import Any, Dict, Optional, Sequence

import numpy as np

from tensorpack.utils import humanize_time_delta, logger
from tensorpack.utils.checks import as_count, as_names
from tensorpack.utils.concurrency import subproc_call

from .base import Callback
from .monitor import MonitorBase

__all__ = ["EstimatedTimeLeft", "InjectShell", "SendMonitorData", "SendStat"]


class SendStat(Callback):
    """Runs a command with scalars in its arguments when triggered, which is every epoch by default.

    Args:
      command: the command line, such as `"notify-send cost={cost}"`. It is split into arguments
        as a shell would, but no shell runs it; the names in braces are filled in.
      names: names of scalars in `trainer.monitors`.
    """

    def __init__(self, command: str, names: Sequence[str]) -> None:
        self._command = command
        self._names = as_names(self, "names", names)

    def _trigger(self) -> None:
        monitors = self.trainer.monitors
        _send(self._command, {name: monitors.get_latest(name) for name in self._names})


class SendMonitorData(MonitorBase):
    """Runs a command with scalars in its arguments, as soon as all of them have a new value.

    Args:
      command: as in `SendStat`.
      names: names of scalars.
    """

    def __init__(self, command: str, names: Sequence[str]) -> None:
        self._command = command
        self._names = as_names(self, "names", names)
        self._values: Dict[str, float] = {}

    def process_scalar(self, name: str, val: float) -> None:
        """Keeps the value of a name in the list."""
        if name in self._names:
            self._values[name] = val

    def _trigger_step(self) -> None:
        self.trigger()

    def _trigger(self) -> None:
        if len(self._values) == len(self._names):
            values, self._values = self._values, {}
            _send(self._command, values)

    def state_dict(self) -> Dict[str, Any]:
        """The values that wait for the others."""
        return {"values": dict(self._values)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores those whose names are still in the list."""
        self._values = {name: val for name, val in state["values"].items() if name in self._names}


def _send(command: str, values: Dict[str, float]) -> None:
    arguments = [part.format(**values) for part in shlex.split(command)]
    output, code = subproc_call(arguments)
    if code != 0:
        text = output.decode(errors="replace")
        logger.error(f"Command {command!r} with {values} failed with code {code}: {text}")


class EstimatedTimeLeft(Callback):
    """Logs how long the rest of the training will take.

    Args:
      last_k_epochs: how many of the last epochs are averaged.
      median: whether to take the median of them instead of the mean.

    Raises:
      ValueError: `last_k_epochs` is not a whole number of at least 1.
    """

    def __init__(self, last_k_epochs: int = 5, median: bool = True) -> None:
        self._times: deque[float] = deque(maxlen=as_count(self, "last_k_epochs", last_k_epochs))
        self._median = median
        self._last = 0.0
        self._elapsed: Optional[float] = 0.0  # of the epoch, in seconds; None while it runs

    def _before_train(self) -> None:
        self._last = time.monotonic() - (self._elapsed or 0.0)
        self._elapsed = None

    def _trigger_epoch(self) -> None:
        now = time.monotonic()
        self._times.append(now - self._last)
        self._last = now
        epochs = self.trainer.max_epoch - self.epoch_num
        if epochs > 0:
            average: Any = np.median if self._median else np.mean
            seconds = float(average(self._times)) * epochs
            logger.info(f"Estimated Time Left: {humanize_time_delta(seconds)}")

    def state_dict(self) -> Dict[str, Any]:
        """How long the last epochs took, and the running one so far, in seconds."""
        elapsed = self._elapsed
        if elapsed is None:
            elapsed = time.monotonic() - self._last
        return {"times": list(self._times), "elapsed": elapsed}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores them; the time between the two runs does not count."""
        self._times.clear()
        self._times.extend(state["times"])
        self._elapsed = state["elapsed"]


class InjectShell(Callback):
    """Pauses the training for an interactive shell, each time it is triggered and a file exists.

    The shell can reach the run as `self.trainer`. The file is removed after the training.

    Args:
      file: path of the file.
      shell: "ipython" or "pdb".
    """

    def __init__(self, file: str = "INJECT_SHELL.tmp", shell: str = "ipython") -> None:
        if shell not in ("ipython", "pdb"):
            raise ValueError(f'shell must be "ipython" or "pdb", got {shell!r}.')
        self._file = file
        self._shell = shell
        logger.info(f"The training pauses for {shell} at the next trigger after `touch {file}`.")

    def _trigger(self) -> None:
        if os.path.isfile(self._file):
            logger.info(f"File {self._file} exists: opening {self._shell}.")
            self._open()

    def _open(self) -> None:
        if self._shell == "ipython":
            import IPython

            IPython.embed()
        else:
            import pdb

            pdb.set_trace()

    def _after_train(self) -> None:
        if os.path.isfile(self._file):
            os.unlink(self._file)
