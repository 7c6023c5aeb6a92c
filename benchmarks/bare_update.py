"""The update of a DQN alone, as often as TensorFlow can: what a whole run is held against.

    python benchmarks/bare_update.py [--seconds 15] [--precision bf16] [--xla] [--preset fast]

Builds the graph of `examples/DeepQNetwork` on random data that is already in the graph, and calls
a prebuilt callable. Prints updates per second.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "DeepQNetwork"))

import flags
from algorithm import PRESETS
from DQNModel import Model

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import TensorInput
from tensorpack.train import SimpleTrainer, TrainConfig

NUM_ACTIONS = 4
WARM_UP = 20  # updates


def constants(model, batch):
    """One batch of random transitions, kept in the graph."""
    rng = np.random.RandomState(0)
    made = {
        "comb_state": lambda shape: rng.randint(256, size=shape).astype(np.uint8),
        "action": lambda shape: rng.randint(NUM_ACTIONS, size=shape),
        "reward": lambda shape: rng.randint(-1, 2, size=shape).astype(np.float32),
        "isOver": lambda shape: rng.rand(*shape) < 0.01,
        "steps": lambda shape: np.full(shape, 3, np.int32),
        "weight": lambda shape: rng.rand(*shape).astype(np.float32),
        "slot": lambda shape: np.arange(shape[0]),
    }
    arrays = [made[each.name]([batch, *each.shape.as_list()[1:]]) for each in model.inputs()]
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
    parser.add_argument("--preset", choices=sorted(PRESETS), default="2017", help="what to learn")
    args = parser.parse_args()
    settings = flags.parse(["--rom", "none.bin", "--preset", args.preset])
    with tf.Graph().as_default():
        model = Model(NUM_ACTIONS, settings.algorithm, (84, 84), 4)
        trainer = SimpleTrainer(
            TrainConfig(
                data=TensorInput(lambda: constants(model, settings.batch_size)),
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
