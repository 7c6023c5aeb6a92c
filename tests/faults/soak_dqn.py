"""The run of the soak: a DQN on the game of catch, deterministic, resumed if it can be.

`python -m tests.faults.soak_dqn LOGDIR EPOCHS STEPS` says with marks when it builds its graph and
when a save begins. It has a worker process, which must not outlive it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "DeepQNetwork"))

import DQN
import flags

import tensorpack as tp
from tensorpack.utils import fix_rng_seed
from tensorpack.utils.workers.worker import Worker
from tests.examples.small_dqn import small_catch

from .marks import mark
from .worker_actions import work

FLAGS = [
    *["--rom", "catch.bin", "--batch-size", "8", "--memory-size", "300"],
    *["--init-memory-size", "100", "--target-sync", "15"],
    *["--eval-every", "2", "--eval-episodes", "1"],
    *["--seed", "5", "--deterministic", "--resume", "auto"],
]


def make_callbacks(callbacks):
    """Returns those of the example with marks, and with a worker behind them."""

    class MarkingSaver(tp.ModelSaver):
        """Says when it begins to save; the first save of the process has number 1."""

        count = 0

        def _save(self, interrupted):
            self.count += 1
            mark(f"save {self.count}.")
            super()._save(interrupted)

    class SaysSetup(tp.Callback):
        """Says that the graph is being built, so that signals are handled."""

        def _setup_graph(self):
            mark("setup")

    worker = Worker(work, name="Worker", method="spawn")
    same = [MarkingSaver() if type(each) is tp.ModelSaver else each for each in callbacks]
    return [SaysSetup(), *same, tp.StartProcOrThread(worker)]


def main(log_dir, epochs, steps):
    """Trains to the end, from where an earlier run stopped."""
    lengths = ["--max-epoch", epochs, "--steps-per-epoch", steps]
    args = flags.parse([*FLAGS, *lengths, "--logdir", log_dir])
    fix_rng_seed(args.seed)
    with small_catch() as player:
        resume = tp.prepare_log_dir(args.logdir, args.resume)
        config = DQN.get_config(args, player, small_catch, resume)
        config.callbacks[:] = make_callbacks(config.callbacks)
        tp.QueueInputTrainer(config).train()


if __name__ == "__main__":
    main(*sys.argv[1:])
