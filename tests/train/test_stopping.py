"""How a run ends, in this process; `tests/faults` has the signals and errors of real processes."""

import importlib
import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest

from tensorpack.callbacks import Callback, ModelSaver, StartProcOrThread
from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFlow, DataFromList, RepeatedData
from tensorpack.input_source import FeedInput, QueueInput, TensorInput
from tensorpack.predict import MultiThreadAsyncPredictor
from tensorpack.tfutils.queues import all_queues
from tensorpack.train import (
    DataEnded,
    SimpleTrainer,
    TrainingInterrupted,
)
from tensorpack.utils import fix_rng_seed
from tensorpack.utils.concurrency import ShareSessionThread
from tensorpack.utils.stopping import Failed, Finished, Interrupted
from tensorpack.utils.workers.worker_errors import WorkerDied
from tests import helpers
from tests.helpers import CallbackSpy, TinyModel
from tests.processes import wait_until
from tests.tiers import first_fast


def config(**options):
    options = {"model": TinyModel(), "steps_per_epoch": 10, "max_epoch": 2, **options}
    return helpers.config(**options)


def flow(length=3):
    return DataFromList([[np.ones(2, np.float32)] * 2] * length, shuffle=False)


class Blocks(DataFlow):
    """Interrupts the process while it makes a datapoint, and then waits for ever."""

    def __init__(self, at):
        self._at = at
        self.begun = 0

    def __iter__(self):
        while True:
            self.begun += 1
            if self.begun == self._at:
                os.kill(os.getpid(), signal.SIGINT)
                threading.Event().wait()
            yield [np.ones(2, np.float32)] * 2

    def state_dict(self):
        return {"begun": self.begun}

    def load_state_dict(self, state):
        self.begun = state["begun"]


def test_a_feed_that_waits_is_interrupted_and_saved_where_it_was(log_dir):
    options = {"callbacks": [ModelSaver()], "max_epoch": 1}
    trainer = SimpleTrainer(config(data=FeedInput(Blocks(at=3)), **options))
    with pytest.raises(TrainingInterrupted):
        trainer.train()
    assert os.path.exists(f"{log_dir}/model-2.index")

    data = Blocks(at=None)
    with tf.Graph().as_default():
        SimpleTrainer(config(data=FeedInput(data), resume="must", **options)).train()
    assert data.begun == 10  # the third datapoint is made again


class Held(TensorInput):
    """Zeros; has something to be released.

    Args:
      at_release: the error that the release raises, or None.
      at_setup: the error that the setup raises, or None.
    """

    def __init__(self, at_release=None, at_setup=None):
        super().__init__(lambda: [tf.zeros([4]), tf.zeros([4])])
        self._at_release, self._at_setup = at_release, at_setup
        self.held = False

    def _setup(self, input_signature):
        self.held = True
        if self._at_setup is not None:
            raise self._at_setup

    def _release(self):
        self.held = False
        if self._at_release is not None:
            raise self._at_release


class ModelThatFails(TinyModel):
    def build_graph(self, x, y):
        raise ValueError("no such layer")


@pytest.mark.skipif(not is_tfv2(), reason="TensorFlow 1 has its names")
def test_a_script_of_tensorflow_1_is_told_how_to_run(capsys):
    class OldModel(TinyModel):
        def optimizer(self):
            return importlib.import_module("tensorflow").train.AdamOptimizer(0.1)

    with pytest.raises(AttributeError, match="no attribute 'AdamOptimizer'"):
        SimpleTrainer(config(data=Held(), model=OldModel())).train()
    assert "by `python -m tensorpack.tf1 script.py args...`" in capsys.readouterr().out


@pytest.mark.parametrize("at_release", [None, OSError("still in use"), SystemExit(3)])
def test_an_input_is_released_and_its_error_does_not_hide_the_first(at_release, capsys):
    data = Held(at_release)
    with pytest.raises(ValueError, match="no such layer"):
        SimpleTrainer(config(data=data, model=ModelThatFails())).train()
    assert not data.held
    said = f"Held could not be released: {at_release!r}"
    assert (said in capsys.readouterr().out) == (at_release is not None)


def test_an_input_is_released_if_its_setup_failed():
    data = Held(at_setup=ValueError("no such file"))
    with pytest.raises(ValueError, match="no such file"):
        SimpleTrainer(config(data=data)).train()
    assert not data.held


def test_an_input_is_released_at_the_end_and_an_error_of_it_is_that_of_the_run():
    data = Held(OSError("still in use"))
    trainer = SimpleTrainer(config(data=data))
    with pytest.raises(OSError, match="still in use"):
        trainer.train()
    assert not data.held
    assert trainer.global_step == 20
    with pytest.raises(RuntimeError, match="closed"):
        trainer.sess.run([])


def of_dataset(length):
    """The input of a model, from a dataset of so many batches."""
    dataset = tf.data.Dataset.from_tensors(np.ones(4, np.float32)).repeat(length)
    batch = tf.data.make_one_shot_iterator(dataset).get_next()
    return TensorInput(lambda: [batch, batch])


def test_an_exhausted_dataset_is_not_a_closed_queue():
    with pytest.raises(DataEnded, match="ran out at step 4 of 10 of epoch 1") as caught:
        SimpleTrainer(config(data=of_dataset(3))).train()
    assert isinstance(caught.value.__cause__, tf.errors.OutOfRangeError)


@pytest.mark.parametrize("hook", ["before_run", "after_run", "trigger_step"])
def test_a_callback_that_runs_out_of_its_own_data_is_not_the_end_of_the_data(hook, capsys):
    def evaluate(*args):
        raise tf.errors.OutOfRangeError(None, None, "End of sequence")

    callback = type("Evaluates", (Callback,), {f"_{hook}": evaluate})()
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        SimpleTrainer(config(data=of_dataset(100), callbacks=[callback])).train()
    assert "failed at global_step=1 with OutOfRangeError" in capsys.readouterr().out


class InterruptedWhileSaved(Callback):
    """Interrupts the run in step 2; takes its own time for its state, and looks at the stop."""

    def __init__(self, more_signals=0):
        self._more_signals = more_signals

    def _trigger_step(self):
        if self.global_step == 2:
            os.kill(os.getpid(), signal.SIGINT)
            self.trainer.stop_token.wait(5)

    def state_dict(self):
        if self.trainer.stop_token.requested:
            for _ in range(self._more_signals):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)
            self.trainer.check_stop()
        return {}


@pytest.mark.parametrize("more_signals", [0, 1])
def test_a_state_that_looks_at_the_stop_is_saved_unless_a_second_signal_comes(
    more_signals, log_dir, capsys
):
    spy = CallbackSpy()
    callbacks = [InterruptedWhileSaved(more_signals), ModelSaver(), spy]
    with pytest.raises(TrainingInterrupted) as caught:
        SimpleTrainer(config(data=of_dataset(100), callbacks=callbacks)).train()
    assert caught.value.code == 130
    assert spy.tape[-1] == "after_train"
    saved = tf.train.latest_checkpoint(log_dir)
    assert (saved is None) == (more_signals > 0)
    assert ("was not saved where it ends" in capsys.readouterr().out) == (more_signals > 0)


def test_a_failure_reported_by_a_thread_does_not_hide_that_of_the_main_thread(capsys):
    class Reports(Callback):
        def _trigger_step(self):
            self.trainer.stop_token.request(Failed(OSError("disk on fire"), "reader"))
            raise LookupError("no such picture")

    with pytest.raises(OSError, match="disk on fire") as caught:
        SimpleTrainer(config(data=of_dataset(100), callbacks=[Reports()])).train()
    assert isinstance(caught.value.__context__, LookupError)
    said = capsys.readouterr().out
    assert "Training failed at global_step=1 because of reader." in said
    assert "The main thread failed as well: LookupError('no such picture')" in said


def test_a_stop_through_the_token_is_an_end_in_order(capsys):
    class Stops(Callback):
        def _trigger_step(self):
            self.trainer.stop_token.request(Finished())

    trainer = SimpleTrainer(config(data=of_dataset(100), callbacks=[Stops()]))
    trainer.train()
    assert trainer.global_step == 1


class ScreenModel(TinyModel):
    def inputs(self):
        return [tf.TensorSpec([None, 32, 32], tf.float32, "screen")]

    def build_graph(self, screen):
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.reduce_max(screen, name="latest")
        return tf.reduce_mean(screen * weight)


class Player(ShareSessionThread):
    """Enqueues the screens of a game, full of 1, 2 and so on, until it is told to stop."""

    def __init__(self, enqueue, placeholder):
        super().__init__()
        self._enqueue, self._placeholder = enqueue, placeholder

    def run(self):
        number = 0
        while not self.stopped():
            number += 1
            screen = np.full([32, 32], number, np.float32)
            self._enqueue.run(feed_dict={self._placeholder: screen})


class Heedless(Player):
    """Never looks at its stop flag."""

    def stopped(self):
        return False


@pytest.mark.parametrize("kind", first_fast([Player, Heedless]))
def test_games_in_threads_fill_the_users_own_shuffle_queue(kind, capfd):
    queue = tf.RandomShuffleQueue(100, 10, tf.float32, shapes=[[32, 32]], name="experience_replay")
    screen = tf.placeholder(tf.float32, [32, 32])
    enqueue = queue.enqueue(screen)
    players = [kind(enqueue, screen) for _ in range(4)]
    latest = []

    class Watch(Callback):
        def _before_run(self, ctx):
            return ["latest:0"]

        def _after_run(self, ctx, run_values):
            latest.append(run_values.results[0])

    SimpleTrainer(
        config(
            data=TensorInput(lambda: [queue.dequeue_many(8)]),
            model=ScreenModel(),
            callbacks=[StartProcOrThread(players), Watch()],
            steps_per_epoch=20,
        )
    ).train()
    assert len(latest) == 40 and latest[-1] > latest[0]
    assert not any(each.is_alive() for each in players)
    printed = capfd.readouterr()
    assert "Skipping cancelled" not in printed.err


def test_threads_that_ask_a_predictor_of_the_training_end_with_it(capsys):
    futures, latest = [], []

    class Asks(Callback):
        def _setup_graph(self):
            towers = self.trainer.get_predictors(["x"], ["predicted"], 2)
            self.predictor = MultiThreadAsyncPredictor(towers)

        def _before_train(self):
            self.predictor.start()

        def _after_train(self):
            latest.append(self.predictor.put_task([np.float32(1)]).result(5))

        def ask(self):
            while True:
                done = threading.Event()
                futures.append(
                    self.predictor.put_task([np.float32(1)], lambda _, done=done: done.set())
                )
                done.wait(5)

    asks = Asks()
    thread = threading.Thread(target=asks.ask, daemon=True)
    callbacks = [asks, StartProcOrThread(thread)]
    SimpleTrainer(config(data=QueueInput(flow()), callbacks=callbacks)).train()
    assert not thread.is_alive() and not any(each.is_alive() for each in asks.predictor._threads)
    assert futures and latest and not any(each.cancelled() for each in futures)
    assert asks.predictor.put_task([np.float32(1)]).cancelled()
    printed = capsys.readouterr().out
    assert "still runs" not in printed and "failed" not in printed


@pytest.mark.parametrize(
    "compute", [lambda cb: time.sleep(1.0), lambda cb: cb.trainer.sess.run(cb.slow)]
)
def test_a_signal_while_a_callback_computes_cancels_no_enqueue(compute, capfd):
    class Computes(Callback):
        def _setup_graph(self):
            self.queues = all_queues(tf.get_default_graph())
            self.slow = tf.py_func(lambda: (time.sleep(1.0), 1.0)[1], [], tf.float64)

        def _trigger_epoch(self):
            wait_until(lambda: self.queues[0].is_full(self.trainer.sess))
            self.trainer.signal_token.request(Interrupted(signal.SIGTERM))
            compute(self)  # longer than a step is waited for

    endless = RepeatedData(flow(), -1)
    with pytest.raises(TrainingInterrupted):
        SimpleTrainer(config(data=QueueInput(endless), callbacks=[Computes()])).train()
    assert "cancelled" not in capfd.readouterr().err


def test_a_step_that_waits_for_room_in_a_full_queue_is_ended():
    full = tf.FIFOQueue(1, tf.float32, shapes=[[]])
    waits = full.enqueue_many([tf.zeros([2])])

    class Waits(Callback):
        def _trigger_step(self):
            self.trainer.signal_token.request(Interrupted(signal.SIGTERM))
            self.trainer.sess.run(waits)

    with pytest.raises(TrainingInterrupted):
        SimpleTrainer(config(data=QueueInput(flow()), callbacks=[Waits()])).train()


class Dies(DataFlow):
    """Its worker is ended by a signal, of which the run hears a little later."""

    at, loaded = 0, None

    def __init__(self, hear):
        self._hear = hear

    def __iter__(self):
        while True:
            self.at += 1
            if self.at == 6 and self.loaded is None:  # the second of a batch
                threading.Timer(0.1, self._hear).start()
                raise WorkerDied("Loader-0", 1, -signal.SIGTERM)
            yield [np.float32(1)] * 2

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = self.loaded = state["at"]


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_signal_to_the_group_that_a_worker_hears_first(deterministic, log_dir):
    fix_rng_seed(1)

    def made():
        token = []
        flow = Dies(lambda: token[0].request(Interrupted(signal.SIGTERM)))
        options = {"deterministic": deterministic, "resume": "auto", "callbacks": [ModelSaver()]}
        trainer = SimpleTrainer(config(data=QueueInput(BatchData(flow, 4)), **options))
        token.append(trainer.signal_token)
        return trainer, flow

    trainer, flow = made()
    with pytest.raises(TrainingInterrupted) as caught:
        trainer.train()
    assert caught.value.code == 143 and trainer.loop.steps_taken == 1
    with tf.Graph().as_default():
        trainer, flow = made()
        trainer.train()
    assert flow.loaded == 4
    assert flow.at == 20 * 4 or not deterministic


def test_a_deterministic_run_waits_for_the_data_of_its_step():
    fix_rng_seed(1)

    class Late(DataFlow):
        def __iter__(self):
            for number in itertools.count():
                if number == 2:
                    wait_until(lambda: trainer.loop.in_step)
                    trainer.signal_token.request(Interrupted(signal.SIGTERM))
                    time.sleep(1.0)  # longer than another run waits for its step
                yield [np.float32([1]), np.float32([2])]

    trainer = SimpleTrainer(config(model=TinyModel(), data=QueueInput(Late()), deterministic=True))
    with pytest.raises(TrainingInterrupted):
        trainer.train()
    assert trainer.loop.steps_taken == 3
