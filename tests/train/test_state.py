"""A run that is left anywhere and gone on with does what it would have done in one piece."""

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tensorpack.callbacks import (
    Callback,
    JSONWriter,
    ModelSaver,
    PeriodicTrigger,
    TFEventWriter,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tensorpack.tfutils.sessinit import VariableMismatch
from tensorpack.train import Trainer, TrainingInterrupted
from tensorpack.utils import fix_rng_seed, get_rng, logger
from tensorpack.utils.cluster import Cluster
from tests.callbacks.driver import shown_scalars
from tests.helpers import CallbackSpy, LargeState, config
from tests.tiers import first_fast
from tests.train.test_base import Counting

STEPS, EPOCHS = 2, 3
# What each process does by itself, and how epochs begin.
NOT_REPEATED = ("setup_graph", "before_train", "before_epoch", "after_train")


@pytest.fixture(autouse=True)
def log_dir(log_dir):
    return Path(log_dir)


class Dies(Exception):
    """Ends a run in the middle."""


class Leaves(CallbackSpy):
    """Ends the run at its n-th turn in any hook, after it has saved the state."""

    def __init__(self, tape, saver, at):
        super().__init__(tape, "leaves")
        self._saver, self._at = saver, at
        self._turns = 0

    def _note(self, hook):
        super()._note(hook)
        if hook in ("trigger_step", "after_epoch", "trigger_epoch"):
            self._turns += 1
            if self._turns == self._at:
                self._saver.trigger()
                raise Dies(hook)


class Never(ModelSaver):
    """Saves only when it is told to."""

    def _trigger_epoch(self):
        pass


class Puts(Callback):
    def _trigger_epoch(self):
        self.trainer.monitors.put_scalar("epoch", self.epoch_num)


def run(callbacks, saver, make=Counting, **options):
    options = {"steps_per_epoch": STEPS, "max_epoch": EPOCHS, **options}
    with tf.Graph().as_default():
        trainer = make(config([saver, *callbacks], **options))
        trainer.train()
        return trainer


def essence(tape):
    return [each for each in tape if each.partition(".")[2] not in NOT_REPEATED]


@pytest.mark.slow
def test_a_run_that_is_left_at_any_turn_continues_at_the_next_one():
    def spies(tape, at):
        saver = Never()
        last = CallbackSpy(tape, "last")
        return saver, [CallbackSpy(tape, "first"), Leaves(tape, saver, at), last]

    whole = []
    saver, callbacks = spies(whole, at=-1)
    run(callbacks, saver)
    turns = EPOCHS * (STEPS + 2)
    for at in range(1, turns + 1):
        logger.set_logger_dir(logger.get_logger_dir(), "delete")
        tape = []
        saver, callbacks = spies(tape, at)
        with pytest.raises(Dies):
            run(callbacks, saver)
        saver, callbacks = spies(tape, at=-1)
        trainer = run(callbacks, saver, resume="must")
        assert essence(tape) == essence(whole), at
        assert trainer.global_step == STEPS * EPOCHS


def test_the_streams_of_the_process_continue():
    class Draws(Callback):
        def __init__(self):
            self.drawn = []

        def _trigger_epoch(self):
            numpy = get_rng().randint(10**9), np.random.randint(10**9)
            self.drawn.append((*numpy, random.gauss(0, 1)))  # leaves one of a pair for the next

    def seed(number):
        fix_rng_seed(number)
        np.random.seed(number + 1)
        random.seed(number + 2)

    seed(3)
    whole = Draws()
    run([whole], Never())
    logger.set_logger_dir(logger.get_logger_dir(), "delete")

    seed(3)
    first, saver = Draws(), Never()
    with pytest.raises(Dies):
        run([first, Leaves([], saver, at=STEPS + 2)], saver)
    seed(99)
    second = Draws()
    run([second], Never(), resume="must")
    assert first.drawn + second.drawn == whole.drawn


class InGroup(Counting):
    cluster = Cluster(["a:1", "b:1", "c:1"])


class TwoTowers(Counting):
    tower_ids = (0, 1)


@pytest.mark.parametrize(
    "name, before, now, make, options",
    [
        ("steps_per_epoch", 2, 3, Counting, {"steps_per_epoch": 3}),
        ("workers", 1, 3, InGroup, {}),
        ("towers", 1, 2, TwoTowers, {}),
    ],
)
def test_a_run_of_another_size_is_warned_of_or_refused(name, before, now, make, options, capsys):
    run([], ModelSaver(), max_epoch=1)
    said = f"The run had {name}={before} when its state was saved, and has {now} now."
    if name != "towers":
        with pytest.raises(ValueError, match=f"{said} Start it with {name}={before} to"):
            run([], ModelSaver(), make=make, resume="must", **options)
    run([], ModelSaver(), make=make, resume="auto", max_epoch=2, **options)
    assert f"WRN {said}" in capsys.readouterr().out


@pytest.mark.fault_row(23)
def test_another_graph_is_refused():
    class Other(Counting):
        def _setup(self):
            super()._setup()
            tf.get_variable("more", [])

    run([], ModelSaver(), max_epoch=1)
    with pytest.raises(VariableMismatch, match="more +float32"):
        run([], ModelSaver(), make=Other, resume="auto")


def test_variables_alone_are_resumed_as_far_as_possible(log_dir, capsys):
    class Plain(ModelSaver):
        """A saver of another program: variables, and nothing else."""

        def _trigger(self):
            self.saver.save(self.trainer.sess, str(log_dir / f"model-{self.global_step}"))

    run([], Plain(), max_epoch=2)
    with pytest.raises(RuntimeError, match='resume="must" requires: .* holds variables only'):
        run([], ModelSaver(), resume="must")
    seen = []

    class Look(Callback):
        def _trigger_step(self):
            seen.append((self.epoch_num, self.global_step))

    run([Look()], ModelSaver(), resume="auto")
    assert seen == [(3, 5), (3, 6)]
    assert "continues after epoch 2" in capsys.readouterr().out


class _Dies(Callback):
    def __init__(self, at):
        self._at = at

    def _trigger_step(self):
        if self.global_step == self._at:
            raise Dies


def test_an_asynchronous_save_holds_the_values_of_its_step(log_dir):
    run([], ModelSaver(asynchronous=True))
    for epoch in range(1, EPOCHS + 1):
        values = load_checkpoint_vars(str(log_dir / f"model-{epoch * STEPS}"))
        assert (values["counter"], values["global_step"]) == (epoch * STEPS, epoch * STEPS)
    trainer = run([], ModelSaver(asynchronous=True), resume="must", max_epoch=EPOCHS + 1)
    assert trainer.global_step == STEPS * (EPOCHS + 1)


class Parted(Trainer):
    """Its step adds one to a variable in two parts."""

    def _setup(self):
        how = {"initializer": tf.zeros_initializer(), "partitioner": tf.fixed_size_partitioner(2)}
        parts = list(tf.get_variable("parted", [4, 3], **how))
        self.train_op = tf.group(*[part.assign_add(tf.ones([2, 3])) for part in parts])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_parts_of_a_variable_continue(asynchronous, log_dir):
    run([], ModelSaver(asynchronous=asynchronous), Parted)
    run([], ModelSaver(asynchronous=asynchronous), Parted, resume="must", max_epoch=EPOCHS + 1)
    values = load_checkpoint_vars(str(log_dir / f"model-{STEPS * (EPOCHS + 1)}"))
    for part in range(2):
        assert np.array_equal(values[f"parted/part_{part}"], np.full([2, 3], STEPS * (EPOCHS + 1)))


class Interrupts(Callback):
    """Sends signals to the process at a step, and waits until the run has heard of them."""

    def __init__(self, at, hook="trigger_step", signum=signal.SIGINT, times=1):
        self._at, self._signum, self._times = at, signum, times
        setattr(self, "_" + hook, self._do)

    def _do(self):
        if self.global_step != self._at:
            return
        for _ in range(self._times):
            os.kill(os.getpid(), self._signum)
            time.sleep(0.1)
        assert self.trainer.stop_token.wait(5)


@pytest.mark.parametrize("signum", first_fast([signal.SIGINT, signal.SIGTERM], 2))
@pytest.mark.parametrize("hook", ["trigger_step", "after_epoch", "trigger_epoch"])
def test_a_signal_saves_where_the_run_ends(hook, signum, log_dir):
    step = 3 if hook == "trigger_step" else 2 * STEPS
    with pytest.raises(TrainingInterrupted) as ended:
        run([Interrupts(step, hook, signum)], Never())
    assert ended.value.code == 128 + signum
    assert str(ended.value) == f"{signal.Signals(signum).name} ended the training in order."
    assert load_checkpoint_vars(str(log_dir / f"model-{step}"))["counter"] == step
    spy = CallbackSpy()
    assert run([spy], Never(), resume="must").global_step == EPOCHS * STEPS
    assert spy.tape.count("trigger_step") == EPOCHS * STEPS - step


def test_a_second_signal_leaves_the_save_out(log_dir):
    with pytest.raises(TrainingInterrupted):
        run([Interrupts(3, times=2)], Never())
    assert not list(log_dir.glob("model-*"))


class Evaluates(Interrupts):
    """Is interrupted in the middle of its turn."""

    def _do(self):
        super()._do()
        self.trainer.check_stop()


def test_what_is_saved_already_is_not_saved_again(log_dir, capsys):
    with pytest.raises(TrainingInterrupted):
        run([Evaluates(4, "trigger_epoch")], ModelSaver())
    assert capsys.readouterr().out.count("Model saved to") == 2


class Last(CallbackSpy):
    """A spy with a name of its own."""


def test_turns_since_the_last_save_are_saved(log_dir, capsys):
    with pytest.raises(TrainingInterrupted):
        run([CallbackSpy(), Evaluates(4, "trigger_epoch")], ModelSaver())
    saved = [line for line in capsys.readouterr().out.splitlines() if "Model saved" in line]
    assert sum(line.endswith("/model-4.") for line in saved) == 2
    first, last = CallbackSpy(), Last()
    run([first, last], ModelSaver(), resume="must", max_epoch=2)
    assert "trigger_epoch" not in first.tape
    assert "trigger_epoch" in last.tape


def test_a_failing_last_save_is_said_and_the_signal_counts(log_dir, capsys):
    class Breaks(Never):
        def _write(self, *args):
            raise LookupError("the disk is gone")

    with pytest.raises(TrainingInterrupted):
        run([Interrupts(3)], Breaks())
    assert "The run was not saved where it ends." in capsys.readouterr().out


def test_a_step_that_was_cut_off_is_not_saved(log_dir, capsys):
    class Twice(Counting):
        """Does two runs a step, and finds its input closed at the second of the third."""

        def run_step(self):
            super().run_step()
            if self.global_step == 3:
                os.kill(os.getpid(), signal.SIGINT)
                assert self.stop_token.wait(5)
                raise tf.errors.OutOfRangeError(None, None, "the queue is closed")

    with pytest.raises(TrainingInterrupted):
        run([], Never(), make=Twice)
    assert "a step was cut off in the middle" in capsys.readouterr().out
    assert not list(log_dir.glob("model-*"))


def test_events_of_a_run_that_was_killed_before_its_first_save_are_not_shown(log_dir):
    with pytest.raises(Dies):
        run([Puts(), _Dies(at=2 * STEPS)], Never(), monitors=[TFEventWriter()])
    run([Puts()], Never(), resume="auto", monitors=[TFEventWriter()])
    assert [step for step, *_ in shown_scalars(log_dir)] == [STEPS, 2 * STEPS, 3 * STEPS]


def test_two_savers_need_two_directories(tmp_path):
    with pytest.raises(ValueError, match="Two ModelSavers of this run write to"):
        run([ModelSaver()], ModelSaver())
    logger.set_logger_dir(logger.get_logger_dir(), "delete")
    run([ModelSaver(checkpoint_dir=str(tmp_path / "other"))], ModelSaver())
    assert (tmp_path / "other" / "checkpoint").exists()


@pytest.mark.parametrize("wrap", [lambda cb: cb, lambda cb: PeriodicTrigger(cb, every_k_epochs=1)])
def test_states_are_looked_for_where_they_are_saved(tmp_path, wrap):
    def saver():
        return wrap(ModelSaver(checkpoint_dir=str(tmp_path / "models")))

    run([], saver(), max_epoch=1)
    assert run([], saver(), resume="must", max_epoch=2).resumed


def test_a_model_from_before_the_training_is_not_resumed(log_dir, capsys):
    def saver():
        return PeriodicTrigger(ModelSaver(), every_k_epochs=1, before_train=True)

    class Begins(Callback):
        ran = False

        def _before_train(self):
            self.ran = not self.trainer.resumed

    with pytest.raises(Dies):
        run([_Dies(at=1)], saver())
    assert (log_dir / "model-0.index").exists()
    begins = Begins()
    run([begins], saver(), resume="auto")
    assert begins.ran
    assert "saved before the first step, so a new run starts" in capsys.readouterr().out


def test_a_run_resumed_from_an_older_one_stays_on_that_branch(log_dir):
    def go(*callbacks, **options):
        return run([Puts(), *callbacks], ModelSaver(), monitors=[JSONWriter()], **options)

    go(max_epoch=5)
    with pytest.raises(Dies):
        go(_Dies(at=2 * STEPS + 1), resume=str(log_dir / f"model-{2 * STEPS}"), max_epoch=5)
    go(resume="auto", max_epoch=5)
    epochs = json.loads((log_dir / "stats.json").read_text())
    assert [each["epoch_num"] for each in epochs] == [1, 2, 3, 4, 5]


def test_a_background_that_cannot_start_lets_the_state_go(monkeypatch):
    def start(thread):
        if thread.name.startswith("ModelSaver"):
            raise RuntimeError("can't start new thread")
        starts(thread)

    large, starts = LargeState(), threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        run([large], ModelSaver(asynchronous=True))
    assert large.told == ("done", None)
