"""The main job, timed from one of its steps to another: what R1 to R3 hold against others.

    python benchmarks/dqn_run.py [--steps 300] [--exploration 0.91] [--staging] [flags of DQN.py]

All flags have their defaults but the sizes of the memory. The steps that count lie within the first
epoch, which is never over: what is done once in 25,000 steps is not in the figure. Prints where the
time went, and updates per second.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "DeepQNetwork"))

import DQN
import flags
from flags import get_player

import tensorpack as tp
from tensorpack.input_source import StagingInput
from tensorpack.RL import find_rom

SMALL = ["--init-memory-size", "3000", "--memory-size", "20000"]


class Stopwatch(tp.Callback):
    """Times the steps behind the first ones, then ends the training.

    Args:
      expreplay: whose exploration is set.
      report: the `TimeReport`, which reports at the end.
      exploration: the probability of an action by chance.
      warm_up: steps that do not count.
      steps: steps that do.

    Attributes:
      rate: steps per second; 0.0 until it is known.
    """

    def __init__(self, expreplay, report, exploration, warm_up, steps):
        self._expreplay = expreplay
        self._report = report
        self._exploration = exploration
        self._warm_up = warm_up
        self._steps = steps
        self._start = 0.0
        self.rate = 0.0

    def _before_epoch(self):
        self._expreplay.exploration = self._exploration

    def _trigger_step(self):
        done = self.local_step + 1
        if done == self._warm_up:
            self._start = time.perf_counter()
        elif done == self._warm_up + self._steps:
            self.rate = self._steps / (time.perf_counter() - self._start)
            self._report.trigger()
            raise tp.StopTraining("That is enough to know.")


def main():
    """Trains and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rom", default="breakout.bin")
    parser.add_argument("--warm-up", type=int, default=60, help="steps that do not count")
    parser.add_argument("--steps", type=int, default=300, help="steps that do")
    parser.add_argument("--exploration", type=float, default=0.91)
    parser.add_argument("--staging", action="store_true", help="copy a batch to the GPU ahead")
    ours, theirs = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        where = ["--rom", ours.rom, "--logdir", str(Path(folder) / "log")]
        args = flags.parse([*where, *SMALL, *theirs])
        rom = find_rom(args.rom)
        with get_player(args, rom, args.num_players) as player:
            resume = tp.prepare_log_dir(args.logdir, args.resume)
            config = DQN.get_config(args, player, lambda n: get_player(args, rom, n), resume)
            report = next(each for each in config.callbacks if isinstance(each, tp.TimeReport))
            watch = Stopwatch(config.data.ds, report, ours.exploration, ours.warm_up, ours.steps)
            config.callbacks.append(watch)
            if ours.staging:
                config.data = StagingInput(config.data)
            several = tp.SyncMultiGPUTrainerReplicated
            (tp.QueueInputTrainer if args.towers == 1 else several)(config).train()
    sys.stdout.write(f"updates/s: {watch.rate:.2f}\n")


if __name__ == "__main__":
    main()
