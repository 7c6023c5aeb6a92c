"""Runs of the DQN example on small games, within this process."""

import json
import os
import signal

import DQN
import flags
import pytest

import tensorpack as tp
from tensorpack.utils import logger
from tensorpack.utils.stopping import Interrupted
from tests.RL.catch import small_catch

# Twenty steps in two epochs, with all that a run does.
SMALL = [
    *["--rom", "catch.bin", "--batch-size", "8", "--memory-size", "500"],
    *["--init-memory-size", "60", "--steps-per-epoch", "10", "--max-epoch", "2"],
    *["--target-sync", "4", "--eval-every", "1", "--eval-episodes", "3"],
]


def make_config(player, *more_flags, resume="never"):
    """The `TrainConfig` of a small run; needs a log directory."""
    args = flags.parse([*SMALL, *more_flags])
    return DQN.get_config(args, player, small_catch, resume)


class StopAt(tp.Callback):
    """Asks the run to end in a step, as Ctrl-C does."""

    def __init__(self, step):
        self._step = step

    def _trigger_step(self):
        if self.global_step == self._step:
            self.trainer.stop_token.request(Interrupted(signal.SIGINT))


def train(player, *more_flags, callbacks=(), resume="never", trainer=tp.QueueInputTrainer):
    """Does a small run, with callbacks behind those of the example."""
    config = make_config(player, *more_flags, resume=resume)
    config.callbacks.extend(callbacks)
    trainer(config).train()


def interrupt_twice(train, directory):
    """Does a run, and one that is interrupted in two steps and resumed; returns their folders.

    Args:
      train: a function of flags, `callbacks` and `resume`, which trains for 20 steps.
      directory: a path.
    """

    def run(name, stop_at, resume="auto"):
        logger.set_logger_dir(str(directory / name), "k")
        tp.fix_rng_seed(5)
        with tp.tfv1.Graph().as_default():
            train("--deterministic", "--seed", "5", callbacks=[StopAt(stop_at)], resume=resume)

    run("whole", None)
    for step in (7, 13):
        with pytest.raises(tp.TrainingInterrupted):
            run("parts", step)
    run("parts", None, resume="must")
    return directory / "whole", directory / "parts"


def read_stats(log_dir):
    """What `stats.json` says: a list with a dictionary for each epoch."""
    with open(os.path.join(log_dir, "stats.json")) as file:
        return json.load(file)


def refusal(capsys, function, *args):
    """What the program says when it ends because of its command line."""
    with pytest.raises(SystemExit) as exit:
        function(*args)
    assert exit.value.code == 2
    _, usage, said = " ".join(capsys.readouterr().err.split()).partition("usage: ")
    assert usage
    return said.partition("error: ")[2]
