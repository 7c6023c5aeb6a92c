"""The small training of `tensorpack doctor`: a classifier of made points, through a queue."""

import time
from typing import Any, Dict, Iterator, List

import numpy as np

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromGenerator
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import QueueInput
from tensorpack.models import FullyConnected
from tensorpack.train import (
    SimpleTrainer,
    StopTraining,
    TrainConfig,
    launch_train_with_config,
)

__all__ = ["train"]

_BATCH, _FEATURES, _CLASSES = 64, 64, 10
_STEPS_PER_EPOCH = 20
_ENOUGH_STEPS = 200  # for the cost to have fallen


class _Model(ModelDesc):
    def inputs(self) -> List[Any]:
        return [
            tf.TensorSpec([_BATCH, _FEATURES], tf.float32, "point"),
            tf.TensorSpec([_BATCH], tf.int32, "label"),
        ]

    def build_graph(self, point: Any, label: Any) -> Any:
        hidden = FullyConnected("hidden", point, 64, activation=tf.nn.relu)
        logits = FullyConnected("logits", hidden, _CLASSES)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
        return tf.reduce_mean(losses, name="cost")

    def optimizer(self) -> Any:
        return tf.train.AdamOptimizer(0.01)


class _Watch(Callback):
    """Keeps the costs, and ends the training after some seconds."""

    def __init__(self, seconds: float) -> None:
        self.costs: List[float] = []
        self._end = time.monotonic() + seconds

    def _before_run(self, ctx: Any) -> Any:
        return ["cost:0"]

    def _after_run(self, ctx: Any, run_values: Any) -> None:
        self.costs.append(float(run_values.results[0]))
        if len(self.costs) >= _ENOUGH_STEPS and time.monotonic() > self._end:
            raise StopTraining()


def _batches() -> Iterator[List[np.ndarray]]:
    rng = np.random.RandomState(0)
    centres = rng.normal(size=(_CLASSES, _FEATURES)).astype("float32")
    while True:
        label = rng.randint(_CLASSES, size=_BATCH).astype("int32")
        noise = rng.normal(scale=0.3, size=(_BATCH, _FEATURES)).astype("float32")
        yield [centres[label] + noise, label]


def train(seconds: float) -> Dict[str, Any]:
    """Trains for a while; returns the steps, the seconds, and the first and the last cost."""
    watch = _Watch(seconds)
    begin = time.monotonic()
    config = TrainConfig(
        model=_Model(),
        data=QueueInput(DataFromGenerator(_batches)),
        callbacks=[watch],
        extra_callbacks=[],
        monitors=[],
        steps_per_epoch=_STEPS_PER_EPOCH,
        max_epoch=1_000_000,
    )
    launch_train_with_config(config, SimpleTrainer())
    costs, took = watch.costs, time.monotonic() - begin
    return {"steps": len(costs), "seconds": took, "first": costs[0], "last": costs[-1]}
