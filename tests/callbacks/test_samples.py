"""Tests of the count of samples and of schedules by it."""

from contextlib import nullcontext

import numpy as np
import pytest

from tensorpack.callbacks import (
    Callback,
    HyperParam,
    PeriodicTrigger,
    SampleCounter,
    SampleScheduledHyperParamSetter,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import QueueInput
from tensorpack.tfutils.collectives import add_up_workers_by
from tensorpack.train import SimpleTrainer, SyncMultiGPUTrainerParameterServer
from tests.callbacks.driver import MiniTrainer, a_rate, log_lines, when
from tests.callbacks.resuming import Killer, ResumableTrainer
from tests.contracts.callback import contract_of
from tests.helpers import TinyModel, config
from tests.train.test_multi_tower import two_towers

TestSampleCounter = contract_of(lambda: SampleCounter(samples_per_step=5))
TestSampleScheduledHyperParamSetter = contract_of(
    lambda: SampleScheduledHyperParamSetter(a_rate(), [(0, 1.0)], SampleCounter(5))
)


def batches(*sizes):
    """A flow of batches of the tiny model, of these sizes."""
    return DataFromList([[np.ones(n, np.float32)] * 2 for n in sizes], shuffle=False)


def counts_of_steps(counter):
    """A callback that keeps the count after each step, in the returned list."""
    counts = []
    return counts, when(trigger_step=lambda _: counts.append(counter.count))


def test_batches_of_all_sizes_count_and_nothing_is_taken_for_it(capsys):
    counter = SampleCounter(pass_size=20)
    counts, after_step = counts_of_steps(counter)
    trainer = SimpleTrainer(
        config(
            [counter, after_step],
            model=TinyModel(),
            data=QueueInput(batches(3, 1, 4, 2)),
            steps_per_epoch=2,
            max_epoch=2,
        )
    )
    trainer.train()
    assert counts == [3, 4, 8, 10]
    assert counter.passes == 0.5
    history = trainer.monitors.get_history("samples")
    assert [(each.global_step, each.value) for each in history] == [(2, 4), (4, 10)]
    told = "A step takes 3 samples, an epoch of 2 steps 6, which is 0.3 passes over 20."
    assert [line for line in log_lines(capsys) if "A step" in line] == [told]


def test_a_step_has_the_samples_of_all_towers(capsys):
    counter = SampleCounter()
    counts, after_step = counts_of_steps(counter)
    options = two_towers(
        [counter, after_step], dataflow=batches(3, 1, 4, 2), steps_per_epoch=2, max_epoch=1
    )
    SyncMultiGPUTrainerParameterServer(options).train()
    assert counts == [4, 10]
    told = [line for line in log_lines(capsys) if "A step" in line]
    assert told in (
        ["A step takes 4 samples (3 + 1), an epoch of 2 steps 8."],
        ["A step takes 4 samples (1 + 3), an epoch of 2 steps 8."],
    )


def test_the_training_ends_with_the_epoch_in_which_enough_are_reached():
    counter = SampleCounter(samples_per_step=5, max_samples=14)
    trainer = SimpleTrainer(config([counter], model=TinyModel(), dataflow=batches(5), max_epoch=9))
    trainer.train()
    assert (counter.count, trainer.epoch_num) == (20, 2)
    assert trainer.monitors.get_latest("samples") == 20


class Both(Callback):
    """Runs the session twice in each step, and once beside it."""

    def _trigger_step(self):
        self.trainer.hooked_sess.run([])


def test_a_step_counts_once_however_many_runs_it_has():
    counter = SampleCounter(samples_per_step=5)
    MiniTrainer([Both(), counter], steps_per_epoch=3).train()
    assert counter.count == 15


def test_a_trainer_whose_batches_are_not_known_is_refused():
    with pytest.raises(ValueError, match="Give samples_per_step"):
        MiniTrainer([SampleCounter()]).train()
    with pytest.raises(ValueError, match="pass_size"):
        SampleCounter().passes  # noqa: B018


@pytest.mark.parametrize("name", ["samples_per_step", "pass_size", "max_samples"])
def test_counts_are_whole_numbers(name):
    with pytest.raises(ValueError, match=f"SampleCounter: {name} must be a whole number"):
        SampleCounter(**{name: 0})


class Rates(Callback):
    """Keeps the value of the variable `rate` at the begin of each step."""

    def __init__(self):
        self.seen = []

    def _setup_graph(self):
        self._request = tf.train.SessionRunArgs(tf.get_variable("rate", initializer=1.0))

    def _before_run(self, ctx):
        return self._request

    def _after_run(self, ctx, values):
        self.seen.append(round(float(values.results), 3))


def rates(schedule, interp=None, killer=None, snapshot=None):
    with tf.Graph().as_default():
        counter, seen = SampleCounter(samples_per_step=10), Rates()
        setter = SampleScheduledHyperParamSetter("rate", schedule, counter, interp)
        callbacks = [seen, counter, setter, killer or Killer()]
        ResumableTrainer(callbacks, steps_per_epoch=3, max_epoch=2).go(snapshot)
    return seen.seen


@pytest.mark.parametrize(
    "schedule, interp, values",
    [
        ([(0, 0.5), (25, 0.25)], None, [0.5, 0.5, 0.5, 0.25, 0.25, 0.25]),
        ([(20, 0.5)], None, [1.0, 1.0, 0.5, 0.5, 0.5, 0.5]),
        ([(0, 0.4), (40, 0.0)], "linear", [0.4, 0.3, 0.2, 0.1, 0.0, 0.0]),
    ],
)
def test_a_schedule_by_samples(schedule, interp, values):
    assert rates(schedule, interp) == values


@pytest.mark.parametrize("turn", range(8))
def test_a_resumed_schedule_continues(turn):
    """Saved and killed after each step, and after each epoch."""
    schedule = [(0, 0.6), (60, 0.0)]
    killer = Killer(turn, turn)
    rates(schedule, "linear", killer)
    steps = [1, 2, 3, 3, 4, 5, 6, 6][turn]
    whole = [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    assert rates(schedule, "linear", snapshot=killer.snapshot) == whole[steps:]


def test_a_schedule_that_was_changed_wins_when_a_run_is_resumed():
    killer = Killer(1, 1)
    rates([(0, 0.5)], killer=killer)
    assert rates([(0, 0.25)], snapshot=killer.snapshot) == [0.25] * 4


def test_a_resumed_run_sets_what_can_only_be_set():
    class Mute(HyperParam):
        readable_name = "mute"

        def set_value(self, v):
            values.append(v)

    def run(killer, snapshot=None):
        with tf.Graph().as_default():
            counter = SampleCounter(samples_per_step=10)
            setter = SampleScheduledHyperParamSetter(Mute(), [(0, 0.5), (30, 0.25)], counter)
            ResumableTrainer([counter, setter, killer], steps_per_epoch=3, max_epoch=2).go(snapshot)

    values, killer = [], Killer(1, 1)
    run(killer)
    assert values == [0.5]
    run(Killer(), killer.snapshot)
    assert values == [0.5, 0.5, 0.25]


@pytest.mark.parametrize("per_step", [None, 10])
def test_workers_that_train_together_need_a_count_that_is_the_same(per_step):
    with tf.Graph().as_default():
        tf.get_variable("rate", initializer=8.0, trainable=False)
        add_up_workers_by(lambda tensor: tensor)
        counter = SampleCounter(samples_per_step=per_step)
        setter = SampleScheduledHyperParamSetter("rate", [(0, 1.0)], counter)
        with nullcontext() if per_step else pytest.raises(ValueError, match="each of the workers"):
            setter.setup_graph(MiniTrainer([]))


def test_the_samples_are_put_when_the_counter_is_triggered():
    counter = SampleCounter(samples_per_step=10)
    trainer = MiniTrainer([PeriodicTrigger(counter, every_k_epochs=2)], max_epoch=2)
    trainer.train()
    assert trainer.monitors.get_latest("samples") == 10 * trainer.global_step


def test_wrong_arguments_of_a_schedule():
    with pytest.raises(TypeError, match="must be a SampleCounter, got int"):
        SampleScheduledHyperParamSetter("rate", [(0, 1.0)], 32)
    with pytest.raises(ValueError, match="interp"):
        SampleScheduledHyperParamSetter("rate", [(0, 1.0)], SampleCounter(5), "cubic")
