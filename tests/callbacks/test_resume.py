"""A run that is killed at any place and resumed equals a run that is not killed."""

import itertools
import json
from functools import partial

import pytest

from tensorpack.callbacks import (
    Callback,
    EstimatedTimeLeft,
    GraphVarParam,
    HyperParam,
    HyperParamSetterWithFunc,
    JSONWriter,
    MergeAllSummaries,
    ObjAttrParam,
    PeriodicTrigger,
    ProgressBar,
    RunOp,
    ScalarPrinter,
    ScheduledHyperParamSetter,
    SendMonitorData,
    SimpleMovingAverage,
    StatMonitorParamSetter,
    TFEventWriter,
)
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import log_lines, shown_scalars, when
from tests.callbacks.resuming import Killer, ResumableTrainer
from tests.tiers import first_fast

STEPS, EPOCHS = 3, 3
TURNS = EPOCHS * (STEPS + 1)  # of a callback that has one in each step and each epoch
PLACES = ("first", "middle", "last")


def make_trainer(callbacks, monitors, killer, place):
    """A trainer in the default graph; a killer before, between or behind all others."""
    callbacks, monitors = list(callbacks), list(monitors)
    if place == "last":
        monitors.append(killer)
    else:
        callbacks.insert(0 if place == "first" else len(callbacks) // 2, killer)
    weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
    tf.get_variable("rate", [], initializer=tf.constant_initializer(0.7), trainable=False)
    cost = tf.sin(weight, name="cost")
    tf.summary.scalar("cost-summary", cost)
    with tf.control_dependencies([cost]):  # or it would be of before or after, by chance
        train_op = tf.assign_add(weight, 1.0).op
    return ResumableTrainer(
        callbacks, monitors, train_op=train_op, steps_per_epoch=STEPS, max_epoch=EPOCHS
    )


def run(make, killer, place="first", snapshot=None):
    """One process. `make` returns callbacks and monitors; returns the trainer."""
    with tf.Graph().as_default():
        trainer = make_trainer(*make(), killer, place)
        trainer.ended = trainer.go(snapshot)
    return trainer


def run_with_deaths(make, save, place, deaths=(2, 1)):
    """Saves in one turn, dies twice after that, each time so many turns later, then is resumed."""
    killer = Killer(save, save + deaths[0])
    trainer = run(make, killer, place)
    for death in deaths[1:]:
        if not trainer.ended:
            trainer = run(make, Killer(None, save + death), place, killer.snapshot)
    if not trainer.ended:
        trainer = run(make, Killer(), place, killer.snapshot)
    assert trainer.ended
    return trainer


class Putting(Callback):
    """Puts scalars in steps and in epochs."""

    def __init__(self, name):
        self._name = name

    def _trigger_step(self):
        self.trainer.monitors.put_scalar(f"{self._name}/step", self.global_step**0.5)

    def _trigger_epoch(self):
        value = float("nan") if self.epoch_num == 2 else 1 / self.epoch_num
        self.trainer.monitors.put_scalar(f"{self._name}/epoch", value)


EVERY_FAULT = list(itertools.product(range(TURNS), PLACES))
# in which turn, and where in the list: in a step, the last step, the end of an epoch, another epoch
FAULTS = [(0, "first"), (2, "last"), (3, "middle"), (3, "last"), (5, "middle"), (7, "first")]
each_fault = pytest.mark.parametrize("fault", FAULTS, ids="{0[0]}-{0[1]}".format)


def histories(monitors):
    names = ("a/step", "a/epoch", "b/step", "b/epoch", "cost", "cost/SMA")
    return {name: repr(monitors.get_history(name)) for name in names}


def everything(directory):
    callbacks = [
        Putting("a"),
        MergeAllSummaries(2),
        SimpleMovingAverage(["cost"], 2),
        EstimatedTimeLeft(),
        ProgressBar(["cost"]),
        Putting("b"),
    ]
    return callbacks, [TFEventWriter(str(directory), max_queue=0), JSONWriter(str(directory))]


def events_in(directory):
    return [(step, tag, repr(value)) for step, tag, value in shown_scalars(directory)]


def runs_that_differ(directory, faults):
    """Which of the runs that are killed and resumed are not like one that is not killed."""
    one = run(lambda: everything(directory / "one"), Killer())
    (stats, events), expected = read(directory / "one"), histories(one.monitors)
    assert len(set(events)) == len(events) > 0
    assert [step for step, _, _ in events] == sorted(step for step, _, _ in events)
    differing = []
    for save, place in faults:
        other = directory / f"{save}-{place}"
        trainer = run_with_deaths(partial(everything, other), save, place)
        if (histories(trainer.monitors), *read(other)) != (expected, stats, events):
            differing.append((save, place))
    return differing


def read(directory):
    return json.loads((directory / "stats.json").read_text()), events_in(directory)


def test_the_history_and_the_files_are_those_of_one_run(tmp_path):
    assert runs_that_differ(tmp_path, FAULTS) == []


@pytest.mark.nightly
@pytest.mark.one_row
@pytest.mark.slow
def test_they_are_wherever_the_state_is_taken(tmp_path):
    assert runs_that_differ(tmp_path, set(EVERY_FAULT) - set(FAULTS)) == []


@each_fault
def test_files_of_their_own_for_each_epoch_are_in_order_too(tmp_path, fault):
    def make():
        return [Putting("a")], [TFEventWriter(str(tmp_path), split_files=True, max_queue=0)]

    run_with_deaths(make, *fault, deaths=(5, 5, 1))
    events = events_in(tmp_path)
    steps = [(step, "a/step") for step in range(1, 1 + STEPS * EPOCHS)]
    epochs = [(STEPS * epoch, "a/epoch") for epoch in range(1, 1 + EPOCHS)]
    assert sorted((step, tag) for step, tag, _ in events) == sorted(steps + epochs)
    assert [step for step, _, _ in events] == sorted(step for step, _, _ in events)


@each_fault
def test_what_waits_to_be_told_is_told_once(fault, capsys):
    class Collecting(SendMonitorData):
        told = []

        def _trigger(self):
            if len(self._values) == 2:
                self.told.append((self.global_step, sorted(self._values)))
            super()._trigger()

    def make():
        monitors = [ScalarPrinter(), Collecting("true", ["a/epoch", "b/epoch"])]
        return [Putting("a"), Putting("b")], monitors

    save, place = fault
    run(make, Killer())
    whole = [line for line in log_lines(capsys) if "/" in line]
    told, Collecting.told[:] = list(Collecting.told), []
    killer = Killer(save, save)  # dies in the turn in which it saves
    run(make, killer, place)
    before = [line for line in log_lines(capsys) if "/" in line]
    run(make, Killer(), place, killer.snapshot)
    assert before + [line for line in log_lines(capsys) if "/" in line] == whole
    assert Collecting.told == told


class Thing:
    rate = 0.7


class Local(GraphVarParam):
    """A variable that no checkpoint has."""

    def setup_graph(self):
        tf.get_variable(
            "local_rate",
            [],
            initializer=tf.constant_initializer(0.7),
            trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
        )
        super().setup_graph()


PARAMS = {
    "variable": lambda: GraphVarParam("rate"),
    "attribute": lambda: ObjAttrParam(Thing(), "rate"),
    "local": lambda: Local("local_rate"),
}


class Noting(Callback):
    """Notes the value of a hyper-parameter in every turn, in a list that outlives the process."""

    def __init__(self, param, notes):
        self._param, self._notes = param, notes

    def _trigger(self):
        self._notes.append((self.global_step, float(self._param.get_value()).hex()))

    _trigger_step = _trigger


def schedule(interp, step_based):
    points = [(0, 0.1), (1, 0.3), (3, 1 / 3)] if not step_based else [(2, 0.1), (7, 1 / 3)]
    return lambda param: ScheduledHyperParamSetter(param, points, interp, step_based)


SETTERS = {
    "steps": schedule(None, False),
    "linear": schedule("linear", False),
    "linear, by step": schedule("linear", True),
    "func": lambda param: HyperParamSetterWithFunc(param, lambda epoch, old: old * 0.9),
    "stat": lambda param: StatMonitorParamSetter(param, "a/epoch", lambda old: old / 3, 0.0, 2),
    "stat, by step": lambda param: PeriodicTrigger(
        StatMonitorParamSetter(param, "a/epoch", lambda old: old / 3, 0.0, 2), every_k_steps=1
    ),
    "every second epoch": lambda param: PeriodicTrigger(
        schedule("linear", False)(param), every_k_epochs=2
    ),
}


def faults_that_matter(setter, kind, faults):
    """After which of the faults a setter does not set what it sets in a run without one."""

    def make_with(notes):
        param = PARAMS[kind]()
        noting = [Noting(param, notes), Noting(param, notes)]
        return [Putting("a"), noting[0], SETTERS[setter](param), noting[1]], []

    whole, mattering = [], []
    run(lambda: make_with(whole), Killer())
    assert len({value for _, value in whole}) > 1
    for save, place in faults:
        notes = []
        killer = Killer(save, save)
        make = partial(make_with, notes)
        run(make, killer, place)
        run(make, Killer(), place, killer.snapshot)
        if notes != whole:
            mattering.append((save, place))
    return mattering


@pytest.mark.parametrize("setter", first_fast(sorted(SETTERS), 2))
def test_a_hyper_parameter_has_the_same_values_to_the_bit(setter):
    assert faults_that_matter(setter, "variable", [(5, "first"), (2, "last")]) == []
    assert faults_that_matter(setter, "attribute", [(3, "first"), (3, "last")]) == []
    assert faults_that_matter(setter, "local", [(6, "middle")]) == []


BY_EPOCH = {"schedule": [(0, 0.5), (1, 1.0), (2, 2.0)]}
BY_STEP = {"schedule": [(0, 0.25), (STEPS + 2, 4.0)], "step_based": True}


class Mute(HyperParam):
    """A parameter that can only be set."""

    readable_name = "mute"

    def __init__(self):
        self.values = []

    def set_value(self, v):
        self.values.append(v)


@pytest.mark.parametrize(
    "before, after, expected",
    [
        ({"schedule": [(0, 0.25), (9, 0.5)]}, BY_EPOCH, [1.0, 2.0]),
        (BY_EPOCH, BY_EPOCH, [1.0, 2.0]),
        (BY_EPOCH, BY_STEP, [4.0]),
        (BY_STEP, BY_EPOCH, [1.0, 2.0]),
    ],
)
def test_the_schedule_of_the_resumed_run_is_in_force(before, after, expected):
    param = Mute()
    killer = Killer(STEPS + 3, STEPS + 3)  # in the last step of epoch 2
    run(lambda: ([ScheduledHyperParamSetter(param, **before)], []), killer)
    del param.values[:]
    run(
        lambda: ([ScheduledHyperParamSetter(param, **after)], []),
        Killer(),
        "first",
        killer.snapshot,
    )
    assert param.values == expected


def test_what_belongs_to_the_beginning_is_not_done_again():
    done = []

    def make():
        variable = tf.get_variable("count", [], initializer=tf.zeros_initializer())
        run_op = RunOp(lambda: tf.assign_add(variable, 1.0), run_as_trigger=False)
        doing = when(trigger=lambda callback: done.append(callback.global_step))
        return [run_op, PeriodicTrigger(doing, every_k_epochs=3, before_train=True)], []

    killer = Killer(1, 1)
    run(make, killer)
    assert done == [0]
    end = Killer(TURNS - 1)
    run(make, end, "last", killer.snapshot)
    assert done == [0, STEPS * EPOCHS]
    assert end.snapshot["variables"]["count"] == 1


def test_a_step_that_has_more_runs_to_come_has_its_summaries_once():
    def make():
        again = when(trigger_epoch=lambda callback: callback.trainer.hooked_sess.run(()))
        return [MergeAllSummaries(), again], []

    killer = Killer(STEPS, STEPS)  # at the end of the first epoch
    run(make, killer)
    trainer = run(make, Killer(), "first", killer.snapshot)
    steps = [record.global_step for record in trainer.monitors.get_history("cost")]
    assert steps == [STEPS, 2 * STEPS, 3 * STEPS]
