"""Predictors that build a model on several devices, with one set of weights in one session."""

from typing import List, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.devices import tower_device
from tensorpack.utils.checks import as_count, as_list

from .base import OfflinePredictor, OnlinePredictor
from .config import PredictConfig
from .inference import build_tower, graph_of


class MultiTowerOfflinePredictor(OfflinePredictor):
    """A predictor for each of several devices, for a `MultiThreadAsyncPredictor` or threads.

    It can be called itself, and then predicts on the first device.

    Args:
      config: what to build, and where its weights come from.
      towers: the devices: relative GPU ids, -1 for the CPU, or names such as "/cpu:1".
    """

    def __init__(self, config: PredictConfig, towers: Sequence[Union[int, str]]) -> None:
        with graph_of(config).as_default():
            tensors = _build(self, config, towers)
            self._open(config, *tensors[0])
        self._predictors = [
            OnlinePredictor(inputs, outputs, config.return_input, self.sess)
            for inputs, outputs in tensors
        ]

    def get_predictor(self, n: int) -> List[OnlinePredictor]:
        """Returns a list of n predictors, on the devices in turn."""
        count = len(self._predictors)
        return [self._predictors[i % count] for i in range(n)]

    def get_predictors(self) -> List[OnlinePredictor]:
        """Returns a list with the predictor of each device."""
        return list(self._predictors)


class DataParallelOfflinePredictor(OfflinePredictor):
    """Predicts on several devices in one call.

    A call takes the inputs for the first device, then those for the second, and so on; it returns
    the outputs in this order. Its arguments are those of `MultiTowerOfflinePredictor`.
    """

    def __init__(self, config: PredictConfig, towers: Sequence[Union[int, str]]) -> None:
        with graph_of(config).as_default():
            inputs, outputs = zip(*_build(self, config, towers))
            self._open(config, sum(inputs, []), sum(outputs, []))


def _build(
    owner: OfflinePredictor, config: PredictConfig, devices: Sequence[Union[int, str]]
) -> List[Tuple[List[tf.Tensor], List[tf.Tensor]]]:
    """Builds a tower on each device; returns the tensors to feed and to compute of each."""
    devices = as_list(owner, "towers", devices)
    as_count(owner, "the number of towers", len(devices))
    towers = []
    for i, device in enumerate(devices):
        with tf.device(tower_device(device)):  # the first tower makes the variables
            towers.append(build_tower(config, f"towerp{i}" if i else ""))
    return towers
