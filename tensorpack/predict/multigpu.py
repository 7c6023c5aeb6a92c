"""Predictors that build a model on several devices, with one set of weights in one session."""

import itertools
from typing import Iterable, List, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source.feed import make_placeholders
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.inference import Inference, build_tower, graph_of, open_session
from tensorpack.utils.checks import as_count, as_list

from .base import OfflinePredictor, OnlinePredictor
from .config import PredictConfig


class MultiTowerOfflinePredictor(OfflinePredictor):
    """A predictor for each of several devices, for a `MultiThreadAsyncPredictor` or threads.

    It can be called itself, and then predicts on the first device.

    Args:
      config: what to build, and where its weights come from.
      towers: the devices: relative GPU ids, -1 for the CPU, or names such as "/cpu:1".
    """

    def __init__(self, config: PredictConfig, towers: Sequence[Union[int, str]]) -> None:
        built = _build(self, config, towers)
        self._own(built[0], config)
        self._predictors = [
            OnlinePredictor(inputs, outputs, config.return_input, sess)
            for inputs, outputs, sess in built
        ]

    def get_predictor(self, n: int) -> List[OnlinePredictor]:
        """Returns a list of n predictors, on the devices in turn."""
        count = len(self._predictors)
        return [self._predictors[index % count] for index in range(n)]

    def get_predictors(self) -> List[OnlinePredictor]:
        """Returns a list with the predictor of each device."""
        return list(self._predictors)


class DataParallelOfflinePredictor(OfflinePredictor):
    """Predicts on several devices in one call.

    A call takes the inputs for the first device, then those for the second, and so on; it returns
    the outputs in this order. Its arguments are those of `MultiTowerOfflinePredictor`.
    """

    def __init__(self, config: PredictConfig, towers: Sequence[Union[int, str]]) -> None:
        built = _build(self, config, towers)
        inputs, outputs = [each.inputs for each in built], [each.outputs for each in built]
        self._own(Inference(_joined(inputs), _joined(outputs), built[0].sess), config)


def _build(
    owner: OfflinePredictor, config: PredictConfig, devices: Sequence[Union[int, str]]
) -> List[Inference]:
    """Builds a tower on each device; all have the same session."""
    devices = as_list(owner, "towers", devices)
    as_count(owner, "the number of towers", len(devices))
    towers = []
    with graph_of(config).as_default():
        for index, device in enumerate(devices):
            name = f"towerp{index}" if index else ""  # the first makes the variables
            with tf.device(tower_device(device)):
                tower = build_tower(config, lambda: make_placeholders(config.input_signature), name)
            towers.append(tower)
        inputs, outputs = _joined(each[0] for each in towers), _joined(each[1] for each in towers)
        sess = open_session(config, inputs, outputs)
    return [Inference(*each, sess) for each in towers]


def _joined(lists: Iterable[List[tf.Tensor]]) -> List[tf.Tensor]:
    return list(itertools.chain.from_iterable(lists))
