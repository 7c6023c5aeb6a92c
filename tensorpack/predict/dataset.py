"""Predictions for all datapoints of a dataflow, in this process or in several."""

import os
from typing import Any, Dict, Iterator, List, Optional

from tensorpack.dataflow import DataFlow, MapData, MultiProcessMapData
from tensorpack.dataflow._flow import length_or_none
from tensorpack.utils.checks import check_kind
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.progress import get_tqdm

from .base import OfflinePredictor
from .config import PredictConfig

_IN_FLIGHT_PER_PROCESS = 4  # datapoints
_VISIBLE = "CUDA_VISIBLE_DEVICES"


class DatasetPredictorBase:
    """Predicts for every datapoint of a dataflow, and shows the progress.

    Args:
      config: what to predict.
      dataset: a finite `DataFlow`; its datapoints have one component for each of
        `config.input_names`; those of dicts have these names.
      results: a flow of what is predicted for each datapoint; a subclass that overrides
        `get_result` needs none.
    """

    def __init__(
        self, config: PredictConfig, dataset: DataFlow, results: Optional[DataFlow] = None
    ) -> None:
        self.config = check_kind("config", config, PredictConfig)
        self.dataset = check_kind("dataset", dataset, DataFlow)
        self._results = results
        self._is_reset = False
        self._closed = False

    def get_result(self) -> Iterator[Any]:
        """Begins a pass over the dataset; yields what an `OfflinePredictor` returns, for each
        datapoint.

        Raises (while iterating):
          RuntimeError: this predictor is closed.
          Exception: what the dataset or a prediction raised.
        """
        if self._results is None:
            raise NotImplementedError(f"{type(self).__name__} must override get_result().")
        if self._closed:
            raise RuntimeError(f"This {type(self).__name__} is closed: make a new one.")
        if not self._is_reset:  # a dataflow is reset once per process
            self._results.reset_state()
            self._is_reset = True
        with get_tqdm(total=length_or_none(self.dataset), desc="Predicting") as bar:
            for result in self._results:
                yield result
                bar.update()

    def get_all_result(self) -> List[Any]:
        """Returns a list of all that `get_result` yields."""
        return list(self.get_result())

    def close(self) -> None:
        """Ends what predicts, and closes the dataset. May be called again."""
        self._closed = True
        if self._results is not None:
            self._results.close()

    def __enter__(self) -> "DatasetPredictorBase":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class SimpleDatasetPredictor(DatasetPredictorBase):
    """Predicts in this process, with one `OfflinePredictor`.

    Processes of the dataset are started before it makes its session, while they may be forked.

    Attributes:
      predictor: the `OfflinePredictor`.
    """

    def __init__(self, config: PredictConfig, dataset: DataFlow) -> None:
        predict = _Predict(config)
        results = MapData(dataset, predict)
        super().__init__(config, dataset, results)
        results.start_processes()
        self.predictor = predict.predictor()

    def close(self) -> None:
        """Closes the predictor and the dataset."""
        try:
            super().close()
        finally:
            self.predictor.close()


class MultiProcessDatasetPredictor(DatasetPredictorBase):
    """Predicts in several processes, each with an `OfflinePredictor`.

    The dataset is iterated in this process. The processes are started at once: they are forked
    while that is safe, which is before TensorFlow has a session here, see `MultiProcessRunner`;
    after that, `config` must be picklable. Results may consist of what a `MultiProcessRunner` can
    send; their arrays are read-only. An exception in a process, or its death, is raised by the
    iteration.

    Args:
      nr_proc: the number of processes.
      use_gpu: whether they take the visible GPUs in turn, one each; otherwise they see none.
      ordered: whether the results come in the order of the datapoints; otherwise as they are ready.
    """

    def __init__(
        self,
        config: PredictConfig,
        dataset: DataFlow,
        nr_proc: int,
        use_gpu: bool = True,
        ordered: bool = True,
    ) -> None:
        in_flight = _IN_FLIGHT_PER_PROCESS * nr_proc
        results = MultiProcessMapData(
            dataset, nr_proc, _Predict(config), buffer_size=in_flight, strict=ordered
        )
        super().__init__(config, dataset, results)
        results.environments = _environments(nr_proc, use_gpu)
        results.start_processes()


class _Predict:
    """A function from a datapoint to what is predicted; builds the predictor where it is called."""

    def __init__(self, config: PredictConfig) -> None:
        self._config = config
        self._predictor: Optional[OfflinePredictor] = None

    def predictor(self) -> OfflinePredictor:
        if self._predictor is None:
            self._predictor = OfflinePredictor(self._config)
        return self._predictor

    def __call__(self, dp: Any) -> Any:
        if isinstance(dp, dict):
            dp = [dp[name] for name in self._config.input_names]
        return self.predictor()(*dp)


def _environments(count: int, use_gpu: bool) -> Optional[List[Dict[str, str]]]:
    """Returns CUDA_VISIBLE_DEVICES for each process."""
    if not use_gpu:
        return [{_VISIBLE: ""}] * count
    num_gpu = get_num_gpu()
    if num_gpu == 0:
        return None
    gpus = os.environ.get(_VISIBLE, ",".join(map(str, range(num_gpu)))).split(",")[:num_gpu]
    return [{_VISIBLE: gpus[i % num_gpu]} for i in range(count)]
