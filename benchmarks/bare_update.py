"""The update of the Double-DQN alone, as often as TensorFlow can: what a whole run is held against.

    python benchmarks/bare_update.py [--seconds 15] [--precision bf16] [--xla]

Builds the graph of `examples/DeepQNetwork` on random data that is already in the graph, and calls
a prebuilt callable. Prints updates per second.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "DeepQNetwork"))

from DQNModel import Model

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import TensorInput
from tensorpack.train import SimpleTrainer, TrainConfig

NUM_ACTIONS = 4
BATCH = 64
WARM_UP = 20  # updates


def constants():
    """One batch of random transitions, kept in the graph."""
    rng = np.random.RandomState(0)
    frames = rng.randint(256, size=(BATCH, 5, 84, 84)).astype(np.uint8)
    arrays = [
        frames,
        rng.randint(NUM_ACTIONS, size=BATCH),
        rng.randint(-1, 2, size=BATCH).astype(np.float32),
        rng.rand(BATCH) < 0.01,
    ]
    # variables, because what is computed from constants alone is computed only once
    return [
        tf.get_variable(f"data{i}", initializer=array, trainable=False, use_resource=True) + 0
        if array.dtype != bool
        else tf.constant(array)
        for i, array in enumerate(arrays)
    ]


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="how long to measure")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"], help="default: fp32")
    parser.add_argument("--xla", action="store_true", help="let XLA compile it")
    args = parser.parse_args()
    with tf.Graph().as_default():
        model = Model(NUM_ACTIONS, "Double", (84, 84), 4)
        trainer = SimpleTrainer(
            TrainConfig(
                data=TensorInput(constants),
                model=model,
                steps_per_epoch=1,
                precision=args.precision,
                xla=args.xla,
            )
        )
        trainer._setup()
        with trainer.config.session_creator.create_session() as sess:
            update = sess.make_callable(trainer.train_op)
            for _ in range(WARM_UP):
                update()
            count, start = 0, time.perf_counter()
            while time.perf_counter() - start < args.seconds:
                update()
                count += 1
            rate = count / (time.perf_counter() - start)
    sys.stdout.write(f"updates/s: {rate:.2f}\n")


if __name__ == "__main__":
    main()
