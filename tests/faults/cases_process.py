"""Cases about the log directory, several trainings in one process, and threads of others."""

import shutil
import threading
import time

from tensorpack.callbacks import ModelSaver, ScalarPrinter, StartProcOrThread
from tensorpack.compat import tfv1 as tf
from tensorpack.train import SimpleTrainer
from tensorpack.utils import logger
from tensorpack.utils.concurrency import ShareSessionThread
from tests.helpers import TinyModel, config

from .data import Flow
from .marks import mark
from .training import At, case, train


@case
def log_dir_vanishes():
    def removes(_):
        shutil.rmtree(logger.get_logger_dir())

    train(None, At("after_epoch", removes), max_epoch=4)


@case
def continues():
    train(starting_epoch=4, max_epoch=6)


@case
def twice():
    train()
    with tf.Graph().as_default():
        train(monitors=[ScalarPrinter()], max_epoch=1)
    with tf.Graph().as_default():
        trainer = SimpleTrainer(config(dataflow=Flow(), model=TinyModel()))
        trainer.train()
    try:
        trainer.train()
    except RuntimeError as error:
        mark(f"refused: {error}")


@case
def many_epochs():
    train(saver=ModelSaver(max_to_keep=2), max_epoch=12)
    mark("done")


@case
def in_a_thread():
    errors, outer = [], tf.get_default_graph()

    def run():
        try:
            with outer.as_default():
                train()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    mark(f"errors: {errors}")


@case
def daemons():
    class Busy(ShareSessionThread):
        def run(self):
            while True:
                time.sleep(0.001)

    busy = Busy()
    busy.daemon = True
    printers = [threading.Thread(target=_chatters, daemon=True) for _ in range(3)]
    for thread in printers:
        thread.start()
    starts = StartProcOrThread(busy, stop_at_last=False)
    train(None, starts, steps_per_epoch=5, max_epoch=1, monitors=[ScalarPrinter()])
    mark("done")


def _chatters():
    while True:
        logger.debug("still here")
        time.sleep(0.001)
