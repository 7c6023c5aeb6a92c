"""Writes the page about a run when the run is over."""

import os
from typing import Optional

from tensorpack.report import write_report
from tensorpack.utils import logger

from .base import Callback


class RunReport(Callback):
    """Writes `report.html` in the log directory at the end of the run, however it ends.

    See `write_report` for what is on the page. To have one meanwhile as well, put it into a
    `PeriodicTrigger`. A page that cannot be written is a warning.

    Args:
      out: path of the page, instead.
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
