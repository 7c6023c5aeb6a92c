"""The training of examples/A3C, timed from one of its updates to another.

    python benchmarks/a2c_run.py [--steps 8000] [flags of a3c.py]

All flags have their defaults. The updates that count lie within the first epoch, which is never
over. Prints steps of the games per second.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "A3C"))

import a3c
import a3c_flags
from flags import get_player

import tensorpack as tp
from tensorpack.RL import find_rom


class Stopwatch(tp.Callback):
    """Times the steps of the games behind the first ones, then ends the training.

    Args:
      rollouts: what plays.
      warm_up: steps that do not count.
      steps: steps that do.

    Attributes:
      rate: steps per second; 0.0 until it is known.
    """

    def __init__(self, rollouts, warm_up, steps):
        self._rollouts = rollouts
        self._warm_up = warm_up
        self._steps = steps
        self._start = None
        self.rate = 0.0

    def _trigger_step(self):
        done = self._rollouts.env_steps
        if self._start is None and done >= self._warm_up:
            self._start = time.perf_counter(), done
        elif self._start is not None and done >= self._start[1] + self._steps:
            start, before = self._start
            self.rate = (done - before) / (time.perf_counter() - start)
            raise tp.StopTraining("That is enough to know.")


def main():
    """Trains and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rom", default="breakout.bin")
    parser.add_argument("--steps", type=int, default=8000, help="steps of the games that count")
    parser.add_argument("--warm-up", type=int, default=1600, help="steps before them")
    ours, theirs = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        where = ["--rom", ours.rom, "--logdir", str(Path(folder) / "log")]
        args = a3c_flags.parse([*where, "--steps-per-epoch", "1000000", *theirs])
        rom = find_rom(args.rom)
        with get_player(args, rom, args.num_players) as player:
            resume = tp.prepare_log_dir(args.logdir, args.resume)
            config = a3c.get_config(args, player, lambda n: get_player(args, rom, n), resume)
            watch = Stopwatch(config.dataflow, ours.warm_up, ours.steps)
            config.callbacks.append(watch)
            tp.SimpleTrainer(config).train()
    sys.stdout.write(f"steps/s: {watch.rate:.2f}\n")


if __name__ == "__main__":
    main()
