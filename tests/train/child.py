"""A tiny run that says where it is, for tests that interrupt it: `child.py PHASE LOGDIR`."""

import sys
import threading
import time

import numpy as np

from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.dataflow import DataFromGenerator
from tensorpack.train import QueueInputTrainer, TrainConfig
from tensorpack.utils import logger
from tests.helpers import TinyModel


def mark(phase):
    sys.stdout.write(f"PHASE {phase}\n")
    sys.stdout.flush()


def endless(phase):
    """Datapoints without end; in the phase `blocked` it stops giving any after the tenth."""
    count = 0
    while True:
        count += 1
        if phase == "blocked" and count > 10:
            mark(phase)
            threading.Event().wait()
        if phase == "broken" and count > 200:
            raise LookupError("no such datapoint")
        yield [np.ones(4, np.float32), np.ones(4, np.float32)]


class Marker(Callback):
    """Stays in the wanted phase until it is asked to leave."""

    def __init__(self, phase):
        self._phase = phase

    def _before_train(self):
        self._stay_if("populate")

    def _trigger_step(self):
        if self._phase == "train" and self.global_step == 100:
            mark("train")

    def _trigger_epoch(self):
        self._stay_if("evaluate")

    def _after_train(self):
        mark("after_train")

    def _stay_if(self, phase):
        if self._phase == phase:
            mark(phase)
            while True:
                self.trainer.check_stop()
                time.sleep(0.001)


def main(phase, log_dir):
    logger.set_logger_dir(log_dir)
    config = TrainConfig(
        dataflow=DataFromGenerator(lambda: endless(phase)),
        model=TinyModel(),
        callbacks=[ModelSaver(), Marker(phase)],
        steps_per_epoch=50,
        max_epoch=3 if phase == "finish" else 100000,
    )
    QueueInputTrainer(config).train()
    mark("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
