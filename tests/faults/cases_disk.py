"""Cases in which a save is interrupted, or the disk under the models or the log is full.

The disks are those of the parent: a small one is mounted at `disk` beside the log directory, or at
the log directory itself, where this process alone sees it. So what is on it is looked at here.
"""

import os
import resource
import time
from functools import partial

import numpy as np

from tensorpack.callbacks import DumpTensorAsImage, DumpTensors, GraphProfiler, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import verify
from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tensorpack.utils import logger
from tensorpack.utils.checkpoints import get_all_checkpoints
from tests.helpers import TinyModel

from .marks import mark
from .training import CASES, FOR_EVER, STEPS, At, case, train


class Weighty(TinyModel):
    """Has a variable of 256 KiB, so that its files are larger than those of the log."""

    def build_graph(self, x, y):
        tf.get_variable("ballast", [1 << 16], trainable=False)
        return super().build_graph(x, y)


class Slow(ModelSaver):
    """Marks the second save when its files are written and nothing has its name yet."""

    def __init__(self, seconds):
        super().__init__()
        self._seconds = seconds

    def _write(self, *args):
        super()._write(*args)
        if self.global_step == 2 * STEPS:
            mark("save")
            time.sleep(self._seconds)


@case
def save():
    train(saver=Slow(1.0), max_epoch=FOR_EVER)


@case
def long_save():
    train(saver=Slow(60.0), max_epoch=FOR_EVER)


def beside_the_log(name):
    """Returns the path of a sibling of the log directory."""
    return os.path.join(os.path.dirname(logger.get_logger_dir()), name)


def fill(directory):
    """Leaves no byte free on the disk of a directory."""
    with open(os.path.join(directory, "ballast"), "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def limit(size):
    """Has the system refuse to let any file grow larger; -1 for no limit."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def mark_models(directory):
    """Marks the steps of which there are models; all of them are whole and finite."""
    found = get_all_checkpoints(directory)
    for prefix, _ in found:
        verify(prefix)
        assert all(np.isfinite(each).all() for each in load_checkpoint_vars(prefix).values())
    mark(f"models {sorted(step for _, step in found)}")


def free(directory):
    """Gives the space back."""
    path = os.path.join(directory, "ballast")
    if os.path.exists(path):
        os.remove(path)


def _without_space(name, take, give, epochs):
    """Trains; there is no space for models from epoch 2 on, and again in epoch 4."""
    directory = beside_the_log(name)
    start = At("before_epoch", lambda _: take(directory), step=STEPS)
    end = At("before_epoch", lambda _: give(directory), step=3 * STEPS)
    saver = ModelSaver(checkpoint_dir=directory)
    try:
        train(None, start, end, saver=saver, model=Weighty(), max_epoch=epochs)
    finally:
        give(directory)
        mark_models(directory)


_small_files = partial(_without_space, "models", lambda _: limit(200000), lambda _: limit(-1))
CASES["small_files_for_a_while"] = partial(_small_files, 4)
CASES["disk_full_for_a_while"] = partial(_without_space, "disk", fill, free, 4)
CASES["disk_full_at_the_end"] = partial(_without_space, "disk", fill, free, 3)


@case
def log_disk_full():
    log, models = logger.get_logger_dir(), beside_the_log("models")
    full = At("before_epoch", lambda _: fill(log), step=STEPS)

    def talk(callback):
        """Writes more than there is space for in the last pages of the files."""
        for number in range(199):
            logger.info("x" * 50)
            callback.trainer.monitors.put_scalar(f"noise{number}", 0.0)

    talk = At("trigger_step", talk, step=STEPS + 1)
    train(None, full, talk, saver=ModelSaver(checkpoint_dir=models), max_epoch=5)
    mark_models(models)


@case
def log_disk_full_for_an_epoch():
    log, models = logger.get_logger_dir(), beside_the_log("models")
    full = At("before_epoch", lambda _: fill(log), step=STEPS)
    empty = At("before_epoch", lambda _: free(log), step=2 * STEPS)
    dumps = [
        DumpTensors(["x:0"]),
        DumpTensorAsImage("weight", map_func=lambda value: value.reshape(1, 1)),
        GraphProfiler(dump_metadata=True),
    ]
    train(None, full, empty, *dumps, saver=ModelSaver(checkpoint_dir=models))
    steps = {20: "ep001", 40: "ep002", 60: "ep003"}
    for pattern in (
        "DumpTensor-{}.npz",
        "chrome-trace-{}.json",
        "runmetadata-{}.pb",
        "weight-{1}.png",
    ):
        names = {step: pattern.format(step, epoch) for step, epoch in steps.items()}
        found = [step for step, name in names.items() if os.path.exists(os.path.join(log, name))]
        mark(f"{pattern} {found}")
