"""Imports TensorFlow and trains a small model, for `tensorpack doctor`, in a process of its own.

Prints one line of JSON for TensorFlow and one for the training, so that a crash of either leaves
what was found before it.
"""

import json
import os
import sys
import time
from typing import Any, Dict, List

import numpy as np

_BATCH, _FEATURES = 64, 64
_ENOUGH_STEPS = 200  # for the cost to have fallen


def describe_tensorflow() -> Dict[str, Any]:
    """Returns the version, whether it is built for CUDA, and the GPUs that it can use."""
    from tensorpack.utils.nvml import has_driver

    begin = time.monotonic()
    from tensorpack.compat import tfv1 as tf

    return {
        "version": tf.__version__,
        "import_seconds": time.monotonic() - begin,
        "cuda": bool(tf.test.is_built_with_cuda()),
        "driver": has_driver(),
        "gpus": [each.name for each in tf.config.experimental.list_physical_devices("GPU")],
    }


def train(seconds: float) -> Dict[str, Any]:
    """Fits a line through a queue for a while; returns the steps, the seconds, the first and the
    last cost.
    """
    import tensorpack as tp
    from tensorpack.compat import tfv1 as tf

    begin, costs = time.monotonic(), []  # type: float, List[float]

    class Model(tp.ModelDesc):  # type: ignore[misc, name-defined]
        def inputs(self) -> List[Any]:
            x = tf.TensorSpec([_BATCH, _FEATURES], tf.float32, "x")
            return [x, tf.TensorSpec([_BATCH], tf.float32, "y")]

        def build_graph(self, x: Any, y: Any) -> Any:
            error = tp.FullyConnected("output", x, 1)[:, 0] - y
            return tf.reduce_mean(tf.square(error), name="cost")

        def optimizer(self) -> Any:
            return tf.train.AdamOptimizer(0.01)

    class Watch(tp.Callback):  # type: ignore[misc, name-defined]
        def _before_run(self, ctx: Any) -> Any:
            return ["cost:0"]

        def _after_run(self, ctx: Any, run_values: Any) -> None:
            costs.append(float(run_values.results[0]))
            if len(costs) >= _ENOUGH_STEPS and time.monotonic() > begin + seconds:
                raise tp.StopTraining()

    x = np.random.RandomState(0).normal(size=(_BATCH, _FEATURES)).astype("float32")
    flow = tp.DataFromList([[x, x.sum(axis=1)]])
    tp.SimpleTrainer(
        tp.TrainConfig(
            model=Model(),
            data=tp.QueueInput(flow),
            callbacks=[Watch()],
            extra_callbacks=[],
            monitors=[],
            steps_per_epoch=100,
        )
    ).train()
    took = time.monotonic() - begin
    return {"steps": len(costs), "seconds": took, "first": costs[0], "last": costs[-1]}


if __name__ == "__main__":
    output = os.fdopen(os.dup(1), "w", 1)
    os.dup2(2, 1)  # logs and bars go to standard error
    output.write(json.dumps(describe_tensorflow()) + "\n")
    if float(sys.argv[1]):
        output.write(json.dumps(train(float(sys.argv[1]))) + "\n")
