"""Cases that a signal is sent to: in each phase of a run, and to those that do not let go."""

import os
import signal
import threading
import time

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.sessinit import SessionInit
from tensorpack.train import QueueInputTrainer
from tensorpack.utils import fix_rng_seed, logger
from tests.helpers import TinyModel, config

from .data import Flow, blocks, ignores_everything
from .marks import mark
from .training import FOR_EVER, At, case, train


def stays(phase):
    """Returns an action that marks a phase and stays there, as long as the run goes on."""

    def stay(callback):
        mark(phase)
        while True:
            callback.trainer.check_stop()
            time.sleep(0.001)

    return stay


# --- Phases of a run --------------------------------------------------------------------------


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


class Computes(TinyModel):
    """Calls a function with the cost in each step."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def build_graph(self, x, y):
        cost = super().build_graph(x, y)
        with tf.control_dependencies([tf.py_func(self._function, [cost], tf.float32)]):
            return tf.identity(cost)


@case
def compute():
    def slow(cost):
        if next(steps) == 30:
            mark("compute")
            time.sleep(3)
        return cost

    steps = iter(range(FOR_EVER))
    train(model=Computes(slow), max_epoch=FOR_EVER)


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


def never_returns(cost):
    mark("hangs")
    while True:
        time.sleep(1)


@case
def op_hangs():
    train(model=Computes(never_returns), grace=2.0)


@case
def op_hangs_in_lockstep():
    fix_rng_seed(1)
    train(model=Computes(never_returns), grace=2.0, deterministic=True)


@case
def reader_stops():
    def talk(callback):
        mark("talking")
        while True:
            mark("x" * 200)

    train(None, At("trigger_step", talk, step=30), max_epoch=FOR_EVER, grace=2.0)


@case
def descriptors():
    def note(_):
        links = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
        with open(os.path.join(logger.get_logger_dir(), "descriptors"), "w") as file:
            file.write("\n".join(links))

    train(None, At("trigger_step", note, step=30))


class StartsTimer(TinyModel):
    """Starts a timer early in the setup."""

    def __init__(self, timer):
        super().__init__()
        self._timer = timer

    def inputs(self):
        if self._timer.ident is None:
            self._timer.start()
        return super().inputs()


@case
def signals_in_the_setup():
    """Is sent a signal in each of many setups, by itself, at another moment each time."""
    for number in range(int(os.environ["SETUPS"])):
        signum = (signal.SIGINT, signal.SIGTERM)[number % 2]
        when = (number * 0.618) % 1.0 * float(os.environ["SPAN"])
        timer = threading.Timer(when, os.kill, (os.getpid(), signum))
        waits = At("before_train", lambda each: each.trainer.stop_token.wait(5))
        options = {"model": StartsTimer(timer), "dataflow": Flow(), "extra_callbacks": None}
        with tf.Graph().as_default():
            try:
                QueueInputTrainer(config([waits], **options)).train()
            except BaseException as error:
                mark(f"{number} ended by {error!r}")
            timer.join()


@case
def patient_callback():
    train(None, At("trigger_epoch", lambda _: ignores_everything()))
