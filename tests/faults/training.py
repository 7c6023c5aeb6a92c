"""The training that a case of the fault matrix breaks, and the table of cases.

It trains the tiny model through a queue, with a saver, the default monitors and a worker process,
and says with `mark` where it is. A case, in `cases_*.py`, is a function that adds what is wrong.
"""

import multiprocessing
import os
import signal

from tensorpack.callbacks import Callback, ModelSaver, StartProcOrThread
from tensorpack.train import QueueInputTrainer, TrainConfig
from tensorpack.utils import logger
from tests.helpers import TinyModel

from .data import Flow
from .marks import mark
from .worker_actions import work

CASES = {}
STEPS = 20  # in each epoch
FOR_EVER = 100000


def case(function):
    """Enters a case in the table under the name of its function."""
    CASES[function.__name__] = function
    return function


class At(Callback):
    """Does something in one hook, the first time that it is called with `global_step >= step`."""

    def __init__(self, hook, action, step=0):
        self._hook, self._action, self._step = hook, action, step
        self._done = False
        setattr(self, "_" + hook, self._do)

    def _do(self, *_):
        if not self._done and self.trainer.global_step >= self._step:
            self._done = True
            self._action(self)


def train(flow=None, *callbacks, **options):
    """Runs one training, `max_epoch` of 3 unless told otherwise.

    Args:
      flow: the data; all ones by default.
      *callbacks: behind those that every case has.
      **options: of `TrainConfig`; also `saver`, the `ModelSaver`, `grace`, the seconds for the
        end, and `make`, the trainer.
    """
    options = {"model": TinyModel(), "steps_per_epoch": STEPS, "max_epoch": 3, **options}
    grace, make = options.pop("grace", 20.0), options.pop("make", QueueInputTrainer)
    process = multiprocessing.get_context("spawn").Process(target=work, name="Worker")
    if "data" not in options:
        options["dataflow"] = flow or Flow()
    everyone = [
        options.pop("saver", None) or ModelSaver(),
        StartProcOrThread(process),
        At("after_train", lambda _: mark("after_train")),
        *callbacks,
        At("after_train", lambda _: mark("last")),
    ]
    trainer = make(TrainConfig(callbacks=everyone, **options))
    trainer.stop_grace = grace
    trainer.train()


def main(name, log_dir, action=""):
    """Runs a case; the log directory is set first, as a script does."""
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    logger.set_logger_dir(log_dir, action or None)
    mark("pid " + str(os.getpid()))
    try:
        CASES[name]()
    finally:
        now = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        mark("handlers " + ("restored" if now == handlers else "LEFT BEHIND"))
