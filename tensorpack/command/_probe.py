"""Imports TensorFlow and trains a small model, for `tensorpack doctor`, in a process of its own.

Prints one line of JSON for TensorFlow and one for the training, so that a crash of either leaves
what was found before it.
"""

import json
import os
import sys
import time
from typing import Any, Dict

_BATCH, _CLASSES = 64, 10
_STEPS_PER_EPOCH = 20
_ENOUGH_STEPS = 200  # for the cost to have fallen


def describe_tensorflow() -> Dict[str, Any]:
    """Returns the version, whether it is built for CUDA, and the GPUs that it can use."""
    begin = time.monotonic()
    from tensorpack.compat import tfv1 as tf

    seconds = time.monotonic() - begin
    devices = tf.config.experimental.list_physical_devices("GPU")
    return {
        "version": tf.__version__,
        "import_seconds": seconds,
        "cuda": bool(tf.test.is_built_with_cuda()),
        "gpus": [each.name for each in devices],
    }


def train(seconds: float) -> Dict[str, Any]:
    """Trains a classifier by `QueueInput` for a while; returns steps, seconds, and two costs."""
    from tensorpack import (
        Callback,
        FullyConnected,
        ModelDesc,
        QueueInput,
        SimpleTrainer,
        TrainConfig,
        launch_train_with_config,
    )
    from tensorpack.compat import tfv1 as tf

    class Model(ModelDesc):
        def inputs(self):
            image = tf.TensorSpec([_BATCH, 64], tf.float32, "image")
            return [image, tf.TensorSpec([_BATCH], tf.int32, "label")]

        def build_graph(self, image, label):
            hidden = FullyConnected("hidden", image, 64, activation=tf.nn.relu)
            logits = FullyConnected("logits", hidden, _CLASSES)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
            return tf.reduce_mean(losses, name="cost")

        def optimizer(self):
            return tf.train.AdamOptimizer(0.01)

    costs = []

    class Watch(Callback):
        def _before_run(self, _):
            return ["cost:0"]

        def _after_run(self, _, values):
            costs.append(float(values.results[0]))
            if len(costs) >= _ENOUGH_STEPS and time.monotonic() - begin > seconds:
                from tensorpack import StopTraining

                raise StopTraining()

    begin = time.monotonic()
    config = TrainConfig(
        model=Model(),
        data=QueueInput(_make_flow()),
        callbacks=[Watch()],
        extra_callbacks=[],
        monitors=[],
        steps_per_epoch=_STEPS_PER_EPOCH,
        max_epoch=1_000_000,
    )
    launch_train_with_config(config, SimpleTrainer())
    steps = len(costs)
    took = time.monotonic() - begin
    return {"steps": steps, "seconds": took, "first": costs[0], "last": costs[-1]}


def _make_flow() -> Any:
    import numpy as np

    from tensorpack.dataflow import DataFromGenerator

    def batches() -> Any:
        rng = np.random.RandomState(0)
        centres = rng.normal(size=(_CLASSES, 64)).astype("float32")
        while True:
            label = rng.randint(_CLASSES, size=_BATCH).astype("int32")
            noise = rng.normal(scale=0.3, size=(_BATCH, 64)).astype("float32")
            yield [centres[label] + noise, label]

    return DataFromGenerator(batches)


def main() -> None:
    """Prints what is found; the argument is for how many seconds to train, 0 for not at all."""
    seconds = float(sys.argv[1])
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # logs and bars go to standard error
    output.write(json.dumps(describe_tensorflow()) + "\n")
    output.flush()
    if seconds:
        output.write(json.dumps(train(seconds)) + "\n")
        output.flush()


if __name__ == "__main__":
    main()
