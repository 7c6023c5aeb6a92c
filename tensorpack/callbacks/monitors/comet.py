"""Sends the scalars and images of a run to https://www.comet.com."""

import io
from typing import Any, Dict, List, Optional

import numpy as np

from tensorpack.utils.checks import as_names
from tensorpack.utils.optional import require

from .._images import to_png
from ..monitor import MonitorBase


class CometMLMonitor(MonitorBase):
    """Sends scalars and images to https://www.comet.com, by `comet_ml`.

    Import `comet_ml` before TensorFlow if it is to log more by itself. A resumed run continues the
    experiment of the earlier one.

    Args:
      experiment: a `comet_ml.Experiment`; by default one is made when it is first used, and ended
        after the training.
      tags: added to the experiment.
      kwargs: of the `comet_ml.Experiment` that is made, such as `project_name`.
    """

    def __init__(
        self, experiment: Any = None, tags: Optional[List[str]] = None, **kwargs: Any
    ) -> None:
        self._service = require("comet_ml")
        self._arguments = kwargs
        self._tags = [] if tags is None else as_names(self, "tags", tags)
        self._experiment = experiment
        self._key: Optional[str] = None  # of the experiment that it, or an earlier run, made

    @property
    def experiment(self) -> Any:
        """The `comet_ml.Experiment`."""
        if self._experiment is None:
            kind, arguments = self._service.Experiment, self._arguments
            if self._key is not None:
                kind = self._service.ExistingExperiment
                arguments = {"previous_experiment": self._key, **arguments}
            self._experiment = kind(**arguments)
            self._key = str(self._experiment.get_key())
        return self._experiment

    def _before_train(self) -> None:
        if self._tags:
            self.experiment.add_tags(self._tags)

    def process_scalar(self, name: str, val: float) -> None:
        self.experiment.log_metric(name, val, step=self.global_step)

    def process_image(self, name: str, val: np.ndarray) -> None:
        for i, image in enumerate(val):
            # As a file: comet_ml needs matplotlib for arrays, and fails on those of one colour.
            file, title = io.BytesIO(to_png(image)), f"{name}_{i}" if i else name
            self.experiment.log_image(file, name=title, step=self.global_step)

    def _after_train(self) -> None:
        if self._key is not None and self._experiment is not None:  # it made it
            self._experiment.end()
            self._experiment = None

    def state_dict(self) -> Dict[str, Any]:
        return {} if self._key is None else {"key": self._key}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._key = state["key"]
