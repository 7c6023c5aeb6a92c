"""The cases of the fault matrix, as a child process runs them: one function for each, by name.

A case trains the tiny model through a queue, with a saver, the default monitors and a worker
process, and says with `mark` where it is. What is wrong with it is all that its function has.
"""

import multiprocessing
import os
import shutil
import signal
import threading
import time

import numpy as np

from tensorpack.callbacks import Callback, ModelSaver, ScalarPrinter, StartProcOrThread
from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedInput
from tensorpack.tfutils.sessinit import SessionInit
from tensorpack.train import QueueInputTrainer, SimpleTrainer, TrainConfig
from tensorpack.utils import logger
from tensorpack.utils.concurrency import ShareSessionThread
from tests.helpers import TinyModel

from .data import (
    BAD_FIELDS,
    BAD_LATER,
    Empty,
    Flow,
    bad,
    blocks,
    breaks,
    breaks_in_a_thread,
    ignores_everything,
)
from .marks import mark
from .worker import work

CASES = {}
HOOKS = (
    "setup_graph",
    "before_train",
    "before_epoch",
    "before_run",
    "after_run",
    "trigger_step",
    "after_epoch",
    "trigger_epoch",
    "after_train",
)
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


class Says(Callback):
    """Says that it had its turn at the end."""

    def __init__(self, phase):
        self._phase = phase

    def _after_train(self):
        mark(self._phase)


def stays(phase):
    """Returns an action that marks a phase and stays there, as long as the run goes on."""

    def stay(callback):
        mark(phase)
        while True:
            callback.trainer.check_stop()
            time.sleep(0.001)

    return stay


def train(flow=None, *callbacks, **options):
    """Runs one training, `max_epoch` of 3 unless told otherwise."""
    options.setdefault("model", TinyModel())
    options.setdefault("steps_per_epoch", STEPS)
    options.setdefault("max_epoch", 3)
    grace, make = options.pop("grace", 20.0), options.pop("make", QueueInputTrainer)
    process = multiprocessing.get_context("spawn").Process(target=work, name="Worker")
    if "data" not in options:
        options["dataflow"] = flow or Flow()
    everyone = [ModelSaver(), StartProcOrThread(process), Says("after_train"), *callbacks]
    everyone.append(Says("last"))
    trainer = make(TrainConfig(callbacks=everyone, **options))
    trainer.stop_grace = grace
    trainer.train()


# --- Phases that a signal is sent in ---------------------------------------------------------


@case
def graph():
    class Slow(TinyModel):
        def build_graph(self, x, y):
            mark("graph")
            time.sleep(60)

    train(model=Slow())


class SlowInit(SessionInit):
    """Takes long to restore, in Python or in an op."""

    def __init__(self, seconds=None):
        self._seconds = seconds

    def _run_init(self, sess):
        if self._seconds is None:
            mark("restore")
            time.sleep(60)
        slow = tf.py_func(
            lambda: (mark("restore"), time.sleep(self._seconds), 1.0)[2], [], tf.double
        )
        sess.run(slow)


@case
def restore():
    train(session_init=SlowInit())


@case
def restore_in_an_op():
    train(session_init=SlowInit(2.0))


@case
def populate():
    train(None, At("before_train", stays("populate")))


@case
def blocked():
    train(Flow(30, blocks), max_epoch=FOR_EVER)


@case
def step():
    train(None, At("trigger_step", lambda _: mark("step"), step=100), max_epoch=FOR_EVER)


@case
def compute():
    def slow(cost):
        if next(steps) == 30:
            mark("compute")
            time.sleep(3)
        return cost

    class Computes(TinyModel):
        def build_graph(self, x, y):
            cost = super().build_graph(x, y)
            with tf.control_dependencies([tf.py_func(slow, [cost], tf.float32)]):
                return tf.identity(cost)

    steps = iter(range(FOR_EVER))
    train(model=Computes(), max_epoch=FOR_EVER)


@case
def evaluate():
    train(None, At("trigger_epoch", stays("evaluate")))


@case
def teardown():
    def slow(_):
        mark("teardown")
        time.sleep(1.0)

    train(None, At("after_train", slow))


@case
def slow_teardown():
    train(
        None,
        At("after_train", lambda _: time.sleep(0.5)),
        At("before_train", stays("slow_teardown")),
    )


# --- Those that do not let go ----------------------------------------------------------------


@case
def deaf_flow():
    train(Flow(30, ignores_everything), max_epoch=FOR_EVER)


@case
def deaf_callback():
    train(None, At("trigger_epoch", lambda _: ignores_everything()), grace=2.0)


@case
def patient_callback():
    train(None, At("trigger_epoch", lambda _: ignores_everything()))


# --- Errors ----------------------------------------------------------------------------------


@case
def finishes():
    train()
    mark("done")


@case
def item_breaks():
    train(Flow(45, breaks), max_epoch=FOR_EVER)


@case
def reset_breaks():
    train(Flow(on_reset=breaks), max_epoch=FOR_EVER)


@case
def thread_breaks():
    train(Flow(45, breaks_in_a_thread), max_epoch=FOR_EVER)


@case
def evaluation_breaks():
    def evaluates(_):
        for _ in Flow(5, breaks):
            pass

    train(None, At("trigger_epoch", evaluates))


@case
def empty():
    train(Empty())


@case
def finite():
    train(data=FeedInput(_Finite(), infinite=False), make=SimpleTrainer)


class _Finite(Flow):
    def __iter__(self):
        for _, datapoint in zip(range(25), super().__iter__()):
            yield datapoint


def _closes_queue(cancel):
    class Closes(Callback):
        def _setup_graph(self):
            queue = self.graph.get_operation_by_name("input_queue").outputs[0]
            self._close = tf.raw_ops.QueueCloseV2(handle=queue, cancel_pending_enqueues=cancel)

        def _trigger_epoch(self):
            self.trainer.sess.run(self._close)

    train(None, Closes(), max_epoch=FOR_EVER)


@case
def queue_closed_with_cancelling():
    _closes_queue(True)


@case
def queue_closed_by_another_thread():
    class Closes(Callback):
        def _setup_graph(self):
            queue = self.graph.get_operation_by_name("input_queue").outputs[0]
            self._close = tf.raw_ops.QueueCloseV2(handle=queue, cancel_pending_enqueues=True)

        def _before_train(self):
            self._thread = threading.Thread(target=self.trainer.sess.run, args=(self._close,))

        def _trigger_step(self):
            if self.global_step == 30:
                self._thread.start()

        def _after_train(self):
            self._thread.join()

    train(None, Closes(), max_epoch=FOR_EVER)


@case
def session_closed():
    train(None, At("trigger_step", lambda self: self.trainer.sess.close(), step=30))


@case
def other_graph():
    with tf.Graph().as_default():
        stranger = tf.constant(1.0, name="stranger")
    train(None, At("trigger_step", lambda self: self.trainer.sess.run(stranger), step=30))


def _hook_case(hook):
    def broken(_):
        raise LookupError("the callback is broken")

    return lambda: train(None, At(hook, broken))


CASES.update({"hook_" + hook: _hook_case(hook) for hook in HOOKS})


def _field_case(name, at):
    return lambda: train(Flow(at, bad(name)), max_epoch=FOR_EVER)


CASES.update({f"field_{name}": _field_case(name, 0) for name in BAD_FIELDS})
CASES.update({f"field_{name}_later": _field_case(name, 45) for name in BAD_LATER})


@case
def too_few_fields():
    train(Flow(45, lambda: [np.ones(4, np.float32)]), max_epoch=FOR_EVER)


# --- The log directory and the process -------------------------------------------------------


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
        config = TrainConfig(
            data=FeedInput(Flow()),
            model=TinyModel(),
            monitors=[],
            steps_per_epoch=STEPS,
            max_epoch=1,
        )
    with tf.Graph().as_default():
        trainer = SimpleTrainer(config)
        trainer.train()
    try:
        trainer.train()
    except RuntimeError as error:
        mark(f"refused: {error}")


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
    train(
        None,
        StartProcOrThread(busy, stop_at_last=False),
        steps_per_epoch=5,
        max_epoch=1,
        monitors=[ScalarPrinter()],
    )
    mark("done")


def _chatters():
    while True:
        logger.debug("still here")
        time.sleep(0.001)


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
