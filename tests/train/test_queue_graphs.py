"""Graphs with queues, queue runners and coordinators of the user start and stop in order.

Most are the examples of two texts on TensorFlow's queues, as steps of a training run.
"""

import os
import signal
import threading
import time

import numpy as np
import pytest

from tensorpack.callbacks import ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import QueueInput
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.train import (
    DataEnded,
    QueueClosed,
    QueueInputTrainer,
    Trainer,
)
from tensorpack.utils import fix_rng_seed
from tests import helpers
from tests.callbacks.driver import when
from tests.harness import NEVER
from tests.helpers import TinyModel

NOISE = (*NEVER, "Local rendezvous is aborting with status: CANCELLED")


@pytest.fixture(autouse=True)
def quiet(capfd):
    """Fails if TensorFlow prints about cancelled operations; looks at the file descriptors."""
    yield
    printed = "".join(capfd.readouterr())
    assert not [each for each in NOISE if each in printed], printed


class Steps(Trainer):
    """Runs its fetches in each step, and keeps the values."""

    def __init__(self, fetches, steps, callbacks=(), **options):
        get_global_step_var()
        super().__init__(helpers.config(callbacks, steps_per_epoch=steps, **options))
        self.fetches, self.values = fetches, []

    def run_step(self):
        self.values.append(self.hooked_sess.run(self.fetches))


def values_of(fetches, steps, *callbacks, **options):
    """What each of the steps of a run gets."""
    trainer = Steps(fetches, steps, callbacks, **options)
    trainer.train()
    return trainer.values


def before(op):
    """A callback that runs an op before the training."""
    return when(before_train=lambda cb: cb.trainer.sess.run(op))


def interrupt_soon(cb):
    threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()


def test_a_queue_that_is_added_to_from_itself():
    queue = tf.FIFOQueue(2, "float")
    init, increment = queue.enqueue_many([[0, 0]]), queue.enqueue([queue.dequeue() + 1])
    ops = [before(each) for each in (init, increment, increment, increment)]
    trainer = Steps(queue.dequeue(), 3, [*ops, when(before_epoch=interrupt_soon)])
    with pytest.raises(KeyboardInterrupt):  # the third step waits until it is interrupted
        trainer.train()
    assert trainer.values == [1, 2]


@pytest.fixture
def files(tmp_path):
    """Two files of a header and three lines of two features and a label."""
    paths = [tmp_path / name for name in ("data1.csv", "data2.csv")]
    for i, path in enumerate(paths):
        path.write_text("a,b,label\n" + "".join(f"{i},{j},{i * 3 + j}\n" for j in range(3)))
    return [str(each) for each in paths]


def read(files, num_epochs=None):
    """Batches of the features and the labels of two lines."""
    names = tf.train.string_input_producer(files, num_epochs=num_epochs, shuffle=False)
    _, value = tf.TextLineReader(skip_header_lines=1).read(names)
    a, b, label = tf.decode_csv(value, [[0.0], [0.0], [0]])
    return tf.train.batch([tf.stack([a, b]), label], 2)


def test_files_that_end_end_the_data(files):
    trainer = Steps(read(files, num_epochs=2), 100)
    with pytest.raises(DataEnded, match="ran out at step 7 of 100"):
        trainer.train()
    assert sorted(np.concatenate([label for _, label in trainer.values])) == [
        each for each in range(6) for _ in range(2)
    ]


def test_what_a_queue_runner_cannot_do_ends_the_run_as_it_is():
    with pytest.raises(tf.errors.NotFoundError, match="no-such.csv"):
        values_of(read(["/no-such.csv"]), 10)


TIMEOUT = tf.ConfigProto(operation_timeout_in_ms=200, allow_soft_placement=True)


@pytest.mark.slow
def test_an_operation_timeout_is_not_for_threads_that_wait_for_room():
    queue = tf.FIFOQueue(50, tf.float32, shapes=[[4]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue_many(tf.ones([200, 4]))]))
    slow = when(trigger_step=lambda cb: time.sleep(0.5))
    data = QueueInput(DataFromList([[np.ones(2, np.float32)] * 2], shuffle=False))
    options = {"model": TinyModel(), "data": data, "steps_per_epoch": 2}
    trainer = QueueInputTrainer(helpers.config([slow], session_config=TIMEOUT, **options))
    trainer.train()
    assert trainer.global_step == 2


def test_a_queue_that_is_closed_is_named():
    queue = tf.FIFOQueue(20, tf.int32, name="mine")
    fill = queue.enqueue_many([[1, 2, 3]])
    with pytest.raises(QueueClosed, match="Queue 'mine' was closed at step 4 of 10 of epoch 1"):
        values_of(queue.dequeue(), 10, before(fill), before(queue.close()))


def test_a_queue_runner_whose_queue_is_closed(capfd):
    queue = tf.FIFOQueue(20, tf.int32)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1)]))
    close = queue.close(cancel_pending_enqueues=True)  # otherwise it waits until there is room
    with pytest.raises(QueueClosed, match="QueueRunner fifo_queue_enqueue cannot fill"):
        values_of(queue.dequeue(), 1000, before(close))
    capfd.readouterr()  # TensorFlow tells of the enqueue that it has cancelled


def test_a_deterministic_run_refuses_queue_runners(files):
    fix_rng_seed(1)
    with pytest.raises(ValueError, match="read the data in a DataFlow instead"):
        values_of(read(files), 1, deterministic=True)


def test_a_resumed_run_reads_from_the_start(files, log_dir, capfd):
    def run(steps, **options):
        with tf.Graph().as_default():
            tf.get_variable("weight", [])
            return values_of(read(files), steps, ModelSaver(), **options)

    run(2)
    assert run(2, max_epoch=2, resume="auto")[0][1].tolist() == [0, 1]
    assert "what they had read is not saved. It starts over." in capfd.readouterr().out
    with pytest.raises(RuntimeError, match="Read it in a DataFlow"):
        run(2, max_epoch=3, resume="must")
