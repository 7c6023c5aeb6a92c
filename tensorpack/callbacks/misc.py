"""Callbacks for the user: scalars sent by a command, the time left, a page of the run, a shell."""

import os
import pdb
import time
from collections import deque
from contextlib import suppress
from typing import Any, Dict, Optional, Sequence, Union

import numpy as np

from tensorpack.report import write_report
from tensorpack.utils import humanize_time_delta, logger
from tensorpack.utils.checks import as_count, as_names
from tensorpack.utils.concurrency import subproc_call

from .base import Callback
from .monitor import LastValues

_Command = Union[str, Sequence[str]]


class SendStat(Callback):
    """Runs a command with scalars in its arguments when triggered, which is every epoch by default.

    Args:
      command: a list of arguments, such as `["notify-send", "cost={cost:.3f}"]`, or a command line
        for the shell. The names in braces are filled in, by `str.format`. Its output is logged.
      names: names of scalars in `trainer.monitors`, at least those in braces.
    """

    def __init__(self, command: _Command, names: Sequence[str]) -> None:
        self._names = as_names(self, "names", names)
        self._command = command
        self._format(dict.fromkeys(self._names, 0.0))  # a name that is missing is an error now

    def _format(self, values: Dict[str, float]) -> Any:
        if isinstance(self._command, str):
            return self._command.format(**values)
        return [part.format(**values) for part in self._command]

    def _trigger(self) -> None:
        self._send({name: self.trainer.monitors.get_latest(name) for name in self._names})

    def _send(self, values: Dict[str, float]) -> None:
        output, code = subproc_call(self._format(values))
        text = output.decode(errors="replace").rstrip()
        if code != 0:
            logger.error(f"Command {self._command} with {values} failed with code {code}: {text}")
        elif text:
            logger.info(f"{self._command}: {text}")


class SendMonitorData(SendStat, LastValues):
    """Runs a command as `SendStat` does, as soon as all scalars in `names` have a new value."""

    def __init__(self, command: _Command, names: Sequence[str]) -> None:
        super().__init__(command, names)
        self._values = {}

    def process_scalar(self, name: str, val: float) -> None:
        if name in self._names:
            super().process_scalar(name, val)

    def _trigger_step(self) -> None:
        self.trigger()

    def _trigger(self) -> None:
        if len(self._values) == len(self._names):
            values, self._values = self._values, {}
            self._send(values)


class EstimatedTimeLeft(Callback):
    """Logs how long the rest of the training will take, by the median, or else the mean, of the
    last `last_k_epochs` epochs.
    """

    def __init__(self, last_k_epochs: int = 5, median: bool = True) -> None:
        self._times: deque[float] = deque(maxlen=as_count(self, "last_k_epochs", last_k_epochs))
        self._average: Any = np.median if median else np.mean

    def _before_train(self) -> None:
        self._last = time.monotonic()

    def _trigger_epoch(self) -> None:
        self._times.append(time.monotonic() - self._last)
        self._last += self._times[-1]
        epochs = self.trainer.max_epoch - self.epoch_num
        if epochs > 0:
            seconds = float(self._average(self._times)) * epochs
            logger.info(f"Estimated Time Left: {humanize_time_delta(seconds)}")

    def state_dict(self) -> Dict[str, Any]:
        return {"times": list(self._times)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._times.extend(state["times"])


class RunReport(Callback):
    """Writes `report.html` in the log directory, or a page at another path `out`, at the end of the
    run, however it ends, and when it is triggered by a `PeriodicTrigger`; see `write_report`. A
    page that cannot be written is a warning.
    """

    def __init__(self, out: Optional[str] = None) -> None:
        self._out = out and os.path.abspath(out)

    def _setup_graph(self) -> None:
        if self.trainer.record is not None:
            self.trainer.record.on_complete.append(self._trigger)

    def _trigger_epoch(self) -> None:
        """Does nothing: the page is written once, after the run."""

    def _trigger(self) -> None:
        directory = logger.get_logger_dir()
        if directory is None:
            logger.warning("There is no page about this run: it has no log directory.")
            return
        try:
            logger.info(f"The page about this run is {write_report(directory, self._out)}.")
        except (OSError, ValueError) as error:
            logger.warning(f"There is no page about this run: {error}")


class InjectShell(Callback):
    """Pauses the training for a shell, each time it is triggered and a file exists, which is
    removed after the training.

    The shell, "ipython" or "pdb", can reach the run as `self.trainer`. Without IPython it is pdb.
    """

    def __init__(self, file: str = "INJECT_SHELL.tmp", shell: str = "ipython") -> None:
        if shell not in ("ipython", "pdb"):
            raise ValueError(f'shell must be "ipython" or "pdb", got {shell!r}.')
        self._file = os.path.abspath(file)
        self._shell = shell
        logger.info(f"The training pauses for {shell} at the next trigger after `touch {file}`.")

    def _trigger(self) -> None:
        if not os.path.isfile(self._file):
            return
        logger.info(f"File {self._file} exists: opening {self._shell}.")
        if self._shell == "ipython":
            try:
                import IPython
            except ImportError:  # hours of training are not to end for it
                logger.warning("IPython is missing (pip install ipython). This is pdb: c goes on.")
            else:
                IPython.embed()
                return
        pdb.set_trace()

    def _after_train(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._file)
