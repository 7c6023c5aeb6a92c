"""Cases in which paths are unusual, the working directory changes, or the lock is deleted."""

import os
import time
from functools import partial

from tensorpack.utils import logger

from .cases_disk import beside_the_log
from .data import Flow
from .marks import mark
from .training import CASES, STEPS, At, case, train


@case
def resumes():
    train(max_epoch=6, resume="auto")


def move():
    """Makes a folder beside the log directory the working directory."""
    os.chdir(beside_the_log("elsewhere"))


def train_and_move(*args):
    """Trains with a relative log directory, in a run that changes the working directory."""
    log = logger.get_logger_dir()
    os.makedirs(beside_the_log("elsewhere"))
    os.chdir(os.path.dirname(log))
    logger.set_logger_dir(os.path.basename(log), "delete")
    train(*args)


callback = At("trigger_step", lambda _: move(), step=STEPS + 3)
CASES["working_directory_changes_in_a_callback"] = partial(train_and_move, None, callback)
dataflow = Flow(STEPS + 3, move)
CASES["working_directory_changes_in_the_dataflow"] = partial(train_and_move, dataflow)


@case
def lock_is_deleted():
    def deletes(_):
        os.remove(os.path.join(logger.get_logger_dir(), ".lock"))

    train(None, At("before_epoch", deletes, step=STEPS), At("before_epoch", waits, step=2 * STEPS))


@case
def lock_is_deleted_before_a_save():
    def deletes(callback):
        os.remove(os.path.join(logger.get_logger_dir(), ".lock"))
        waits(callback)

    train(None, At("before_epoch", deletes, step=STEPS))


def waits(callback):
    """Marks `waits`, until there is a file `go` beside the log directory."""
    mark("waits")
    while not os.path.exists(beside_the_log("go")):
        callback.trainer.check_stop()
        time.sleep(0.01)
