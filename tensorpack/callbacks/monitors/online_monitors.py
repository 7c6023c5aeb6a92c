"""Monitors that send the scalars and images of a run to a service for experiments."""

import io
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from tensorpack.utils.checks import as_names
from tensorpack.utils.optional import require

from .._images import to_png
from ..monitor import MonitorBase


class _OnlineMonitor(MonitorBase):
    """Sends to a record of the service; one that it opened, since none was given, is also closed by
    it, and continued by a resumed run. A subclass sends to `self._record()`.
    """

    def __init__(self, given: Any, package: str, made: str, arguments: Dict[str, Any]) -> None:
        if given is not None and arguments:
            raise TypeError(
                f"{self}: {', '.join(sorted(arguments))} would be arguments of {made}, but it is "
                "given one."
            )
        self._given = given
        self._service = require(package)
        self._arguments = arguments
        self._opened: Any = None
        self._key: Optional[str] = None  # of the record that an earlier run opened

    def _open(self, key: Optional[str]) -> Tuple[Any, Any]:
        """Override to open a new record, or the one with a key; returns it and its key."""
        raise NotImplementedError

    def _close(self, record: Any) -> None:
        """Override to close a record, so that everything has been sent."""

    def _record(self) -> Any:
        if self._given is not None:
            return self._given
        if self._opened is None:
            self._opened, key = self._open(self._key)
            self._key = str(key)
        return self._opened

    def _before_train(self) -> None:
        self._record()

    def _after_train(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            self._close(opened)

    def state_dict(self) -> Dict[str, Any]:
        return {} if self._key is None else {"key": self._key}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._key = state["key"]


class CometMLMonitor(_OnlineMonitor):
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
        super().__init__(experiment, "comet_ml", "an Experiment that it makes", kwargs)
        self._tags = [] if tags is None else as_names(self, "tags", tags)
        if experiment is not None and self._tags:
            experiment.add_tags(self._tags)

    @property
    def experiment(self) -> Any:
        """The `comet_ml.Experiment`."""
        return self._record()

    def process_scalar(self, name: str, val: float) -> None:
        self._record().log_metric(name, val, step=self.global_step)

    def process_image(self, name: str, val: np.ndarray) -> None:
        for i, image in enumerate(val):
            title = f"{name}_{i}" if i else name
            # As a file: comet_ml needs matplotlib for arrays, and fails on those of one colour.
            file = io.BytesIO(to_png(image))
            self._record().log_image(file, name=title, step=self.global_step)

    def _open(self, key: Optional[str]) -> Tuple[Any, Any]:
        if key is None:
            experiment = self._service.Experiment(**self._arguments)
        else:
            resumed = {"previous_experiment": key, **self._arguments}
            experiment = self._service.ExistingExperiment(**resumed)
        if self._tags:
            experiment.add_tags(self._tags)
        return experiment, experiment.get_key()

    def _close(self, record: Any) -> None:
        record.end()


class WandbMonitor(_OnlineMonitor):
    """Sends scalars and images to https://wandb.ai, or keeps them for it, by `wandb`::

        TrainConfig(..., monitors=DEFAULT_MONITORS() + [WandbMonitor(project="mnist")])

    A resumed run continues the run of the earlier one. There, steps that were sent already keep the
    values that they have.

    Args:
      run: what `wandb.init` returned; by default it is called when the run is first used, and the
        run is finished after the training.
      kwargs: of `wandb.init`, such as `project`, `name`, `config` and `mode="offline"`.
    """

    def __init__(self, run: Any = None, **kwargs: Any) -> None:
        super().__init__(run, "wandb", "a run that it makes", kwargs)

    @property
    def run(self) -> Any:
        """The run of `wandb`."""
        return self._record()

    def process_scalar(self, name: str, val: float) -> None:
        self._record().log({name: val}, step=self.global_step)

    def process_image(self, name: str, val: np.ndarray) -> None:
        images = [self._service.Image(each) for each in val]
        self._record().log({name: images}, step=self.global_step)

    def _open(self, key: Optional[str]) -> Tuple[Any, Any]:
        again = {} if key is None else {"id": key, "resume": "allow"}
        run = self._service.init(**{**again, **self._arguments})
        return run, run.id

    def _close(self, record: Any) -> None:
        record.finish()
