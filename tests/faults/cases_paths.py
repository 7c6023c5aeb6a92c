"""Cases in which paths are unusual, the working directory changes, or the lock is deleted."""

import os
import time

from tensorpack.utils import logger

from .cases_disk import beside_the_log
from .data import Flow
from .marks import mark
from .training import STEPS, At, case, train


@case
def resumes():
    train(max_epoch=6, resume="auto")


@case
def working_directory_changes():
    """In the dataflow, then in a callback, of a run with a relative log directory."""
    log = logger.get_logger_dir()
    elsewhere = beside_the_log("elsewhere")
    os.makedirs(os.path.join(elsewhere, "deeper"))
    os.chdir(os.path.dirname(log))
    logger.set_logger_dir(os.path.basename(log), "delete")
    deeper = At("trigger_step", lambda _: os.chdir("deeper"), step=2 * STEPS + 3)
    train(Flow(STEPS + 3, lambda: os.chdir(elsewhere)), deeper)


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
