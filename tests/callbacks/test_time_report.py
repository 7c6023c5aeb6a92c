import itertools
import json
import multiprocessing
import os
import time
import types
from contextlib import contextmanager

import pytest

from tensorpack.callbacks import Callback, PeriodicTrigger, TimeReport
from tensorpack.callbacks.time_report import (
    _WARMUP_STEPS,
    Figures,
    advice,
    cpu_seconds,
    diagnose,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import FeedInput, QueueInput
from tensorpack.input_source.dequeue import WaitProbe, WaitReading
from tensorpack.train import SimpleTrainer
from tests.callbacks.driver import MiniTrainer, log_directory, log_lines, when
from tests.clock import FakeClock
from tests.contracts.callback import contract_of
from tests.helpers import config

TestTimeReport = contract_of(TimeReport)


def figures(**known):
    return Figures(**{"seconds": 30.0, "steps": 300, "waiting": 0.0, "callbacks": 0.01, **known})


@pytest.mark.parametrize(
    "known, limit",
    [
        ({"waiting": 0.15}, "data"),
        ({"waiting": 0.14, "callbacks": 0.14}, "step"),
        ({"waiting": None}, "step"),
        ({"callbacks": 0.3, "waiting": 0.4}, "data"),
        ({"callbacks": 0.4, "waiting": 0.3}, "callbacks"),
        ({"busy": 0.9}, "processor"),
        ({"busy": 0.8}, "step"),
        ({"busy": 0.9, "on_gpu": True}, "step"),
    ],
)
def test_diagnosis(known, limit):
    assert diagnose(figures(**known)) == limit


def said(limit, hint=None, **known):
    return advice(limit, figures(**known), hint)


def test_advice_on_data():
    players = "the players are the limit; try --num-players 8"
    assert said("data", players, waiting=0.71) == f"Waiting for data takes 71 %: {players}"
    assert said("data", waiting=0.2) == (
        "Waiting for data takes 20 %: the data is the limit; make it with more workers, or do less "
        "for a datapoint"
    )
    assert said("data", "make it", waiting=0.2, busy=0.97, cores=4) == (
        "Waiting for data takes 20 %: make it (all 4 cores are busy, so it has to become cheaper, "
        "too)"
    )


@pytest.mark.parametrize(
    "seconds, named", [({"Slow": 9.0, "Quick": 0.1}, ", 30 % in Slow"), ({"Quick": 0.1}, "")]
)
def test_advice_on_callbacks(seconds, named):
    assert said("callbacks", callbacks=0.31, in_callbacks=seconds) == (
        f"Callbacks take 31 % between the steps{named}; let them run more rarely (PeriodicTrigger, "
        "PeriodicCallback)"
    )


@pytest.mark.parametrize("cores, share", [(2, "all 2 cores are busy"), (1, "the core is busy")])
def test_advice_on_the_processor(cores, share):
    text = f"The processor is the limit, {share}; "
    assert said("processor", cores=cores) == (
        f"{text}bfloat16, a GPU, more cores or fewer summaries help"
    )
    assert said("processor", "buy one", cores=cores) == f"{text}buy one"


def test_advice_on_the_step():
    limit = "The data keeps up; the limit is the step itself, "
    assert said("step") == f"{limit}which leaves some of the cores idle"
    assert said("step", "try this", on_gpu=True) == f"{limit}on the GPU; try this"
    assert said("step", steps=60000) == (
        "The data keeps up and a step is very short; do more in each, with larger batches"
    )


class StepTrainer(MiniTrainer):
    @property
    def step_op(self):
        return self.train_op


class Costs(Callback):
    """Lets a step take 90 ms, what is behind it 10 ms, and the end of an epoch a thousand s."""

    def __init__(self, clock):
        self._clock = clock
        self.inside, self.outside = 0.09, 0.01

    def _before_run(self, ctx):
        self._clock.advance(self.inside)

    def _trigger_step(self):
        self._clock.advance(self.outside)

    def _trigger_epoch(self):
        self._clock.advance(1000)


@pytest.fixture
def waits(monkeypatch):
    """What the probe says of each step, as a list that a test may change."""
    found = [WaitReading(0.07, 0.5)]
    monkeypatch.setattr(WaitProbe, "read", lambda self, values: found[0])
    monkeypatch.setattr("tensorpack.callbacks.time_report.usable_cores", lambda: 2)
    monkeypatch.setattr("tensorpack.callbacks.time_report.cpu_seconds", lambda: 0.0)
    return found


def reported(steps_per_epoch, max_epoch=1, others=(), deterministic=False, **options):
    """A report with a clock and costs of its own, and a trainer whose queue never ends."""
    clock = FakeClock(50.0)
    queue = tf.FIFOQueue(4, [tf.int32], shapes=[[]])
    probe = WaitProbe(queue)
    with tf.control_dependencies([queue.enqueue(1)]):
        taken = queue.dequeue()
    probe.watch([taken])
    report = TimeReport(clock=clock, **options)
    costs = Costs(clock)
    trainer = StepTrainer(
        [report, costs, *others],
        train_op=tf.identity(taken).op,
        steps_per_epoch=steps_per_epoch,
        max_epoch=max_epoch,
    )
    trainer.deterministic = deterministic
    return report, costs, trainer


@contextmanager
def in_epoch(trainer):
    """A session in which the first epoch has begun."""
    with trainer.session():
        trainer.callbacks.before_train()
        trainer.epoch_num = 1
        trainer.callbacks.before_epoch()
        yield


def paragraphs(capsys):
    return [line for line in log_lines(capsys) if line.startswith("Where the time goes")]


PARAGRAPH = (
    "Where the time goes: waiting for data 70 %, stepping 20 %, callbacks 10 %, of 30 seconds with "
    "300 steps; 10 updates/s, 40 environment steps/s; the input queue is 50 % full; 0.0 of 2 cores "
    "busy. Waiting for data takes 70 %: a hint about data."
)


def test_it_is_reported_once_in_the_middle_of_a_long_epoch(waits, capsys):
    _, _, trainer = reported(1000)
    with in_epoch(trainer):
        said_before = []
        for _ in range(800):
            trainer.step()
            said_before += [trainer.global_step for _ in paragraphs(capsys)]
    assert len(said_before) == 1
    assert _WARMUP_STEPS + 300 < said_before[0] <= _WARMUP_STEPS + 312  # it looks once a second


@pytest.mark.parametrize("given", [False, True])
def test_the_source_knows_more(given, waits, capsys):
    class Games:
        @property
        def env_steps(self):
            return 1000 + 4 * trainer.loop.steps_taken

        def bottleneck_hint(self, limit):
            return f"a hint about {limit}"

    games = Games()
    options = {"source": games} if given else {}
    _, _, trainer = reported(_WARMUP_STEPS + 300, after_seconds=29.9, **options)
    if not given:
        trainer.config = types.SimpleNamespace(dataflow=games, data=None)
    trainer.train()
    assert paragraphs(capsys) == [PARAGRAPH]


def test_short_epochs_add_up_and_their_ends_do_not_count(waits, capsys):
    reported(100, max_epoch=5)[2].train()
    (line,) = paragraphs(capsys)
    # 80 steps of the first epoch, which is not over the warm-up before
    assert "callbacks 10 %, of 38 seconds with 380 steps; 10 updates/s" in line


@pytest.mark.parametrize("seconds, steps", [(1e9, 0), (0, 10**9)])
def test_too_little_says_nothing(seconds, steps, waits, capsys):
    reported(400, max_epoch=2, after_seconds=seconds, after_steps=steps)[2].train()
    assert paragraphs(capsys) == []


def test_a_change_is_logged_at_the_end_of_the_epoch_and_nothing_else(waits, capsys):
    _, costs, trainer = reported(400, max_epoch=6)
    lines = []
    with trainer.session():
        trainer.callbacks.before_train()
        for epoch in range(1, 7):
            if epoch == 3:
                waits[0] = WaitReading(0.0, 1.0)
            if epoch == 5:
                costs.outside = 0.09
            trainer.run_epoch(epoch)
            lines.append(paragraphs(capsys))
    assert [len(each) for each in lines] == [1, 0, 1, 0, 1, 0]
    assert "The data keeps up; the limit is the step itself" in lines[2][0]
    assert "Callbacks take 50 % between the steps" in lines[4][0]


def test_a_file_asks_when_there_are_some_steps(waits, capsys, tmp_path):
    with log_directory(tmp_path):
        report, _, trainer = reported(10**6, after_seconds=1e9)
        (tmp_path / "report").write_text("")
        with in_epoch(trainer):
            for _ in range(_WARMUP_STEPS + 10):
                trainer.step()
            assert paragraphs(capsys) == []
            for _ in range(30):
                trainer.step()
            (text,) = paragraphs(capsys)
            (kept,) = map(json.loads, (tmp_path / "time_reports.jsonl").read_text().splitlines())
            assert kept["text"] == text and kept["limit"] == "data" and kept["epoch"] == 1
            shares = [kept[name] for name in ("waiting", "stepping", "callbacks")]
            assert sum(shares) == pytest.approx(1, abs=0.001) and kept["steps"] >= 10
            assert "Costs" in kept["in_callbacks"]
            assert not (tmp_path / "report").exists()
            (tmp_path / "report").write_text("what I found")
            for _ in range(60):
                trainer.step()
            assert paragraphs(capsys) == []
            assert (tmp_path / "report").read_text() == "what I found"
            report.trigger()
    assert len((tmp_path / "time_reports.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("elsewhere", [True, False])
def test_without_a_log_directory_only_a_full_path_may_ask(
    elsewhere, waits, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "report"
    path.write_text("")
    request = {"request_file": str(path)} if elsewhere else {}
    reported(100, after_seconds=1e9, **request)[2].train()
    assert len(paragraphs(capsys)) == elsewhere != path.exists()


def test_each_triggered_report_is_on_the_time_since_the_last_one(waits, capsys):
    report, _, trainer = reported(40, after_seconds=1e9)
    trainer.callbacks.cbs[1] = PeriodicTrigger(report, every_k_epochs=1)
    with trainer.session():
        trainer.callbacks.before_train()
        report.trigger()  # there is nothing yet
        trainer.run_epoch(1)
        waits[0] = WaitReading(0.0, 1.0)
        trainer.run_epoch(2)
        report.trigger()  # nothing since then
    first, second = paragraphs(capsys)
    assert "waiting for data 70 %," in first and " with 20 steps;" in first
    assert "waiting for data 0 %," in second and " with 40 steps;" in second


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_step_is_asked_and_nothing_else_is_taken_from_the_queue(deterministic, waits, capsys):
    other, asked = tf.constant(1), []
    reading = when(trigger_step=lambda callback: callback.trainer.hooked_sess.run(other))
    report, _, trainer = reported(30, others=[reading], deterministic=deterministic)
    before_run = report.before_run

    def noting(ctx):
        request = before_run(ctx)
        asked.extend([] if request is None else [trainer.global_step])
        return request

    report.before_run = noting
    trainer.train()
    assert asked == ([] if deterministic else list(range(1, 31))) and paragraphs(capsys) == []


def test_an_input_that_the_step_does_not_take_is_not_taken_for_it(capsys):
    queue = tf.FIFOQueue(4, [tf.int32], shapes=[[]])
    WaitProbe(queue).watch([queue.dequeue()])
    report = TimeReport(after_seconds=0, after_steps=10)
    StepTrainer([report], train_op=tf.no_op(), steps_per_epoch=50).train()  # does not block
    assert "(waiting for data could not be told from it)" in paragraphs(capsys)[0]


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc")
def test_what_a_child_uses_counts_while_it_lives_and_after_it():
    before = cpu_seconds() - time.process_time()
    child = multiprocessing.get_context("spawn").Process(target=sum, args=(range(10**12),))
    child.start()
    alive, deadline = 0.0, time.monotonic() + 60
    while alive < 0.3 and time.monotonic() < deadline:
        time.sleep(0.05)
        alive = cpu_seconds() - time.process_time() - before
    child.terminate()
    child.join()
    assert 0.3 <= alive < 30
    assert cpu_seconds() - time.process_time() - before >= alive - 0.05


class Numbers(DataFlow):
    """Whole numbers from 0, each after a while."""

    def __iter__(self):
        for number in itertools.count():
            time.sleep(0.02)
            yield [number]


class Summing(ModelDesc):
    """Adds up what it is given, in a variable."""

    def inputs(self):
        return [tf.TensorSpec([], tf.float32, "number")]

    def build_graph(self, number):
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        return -total * number

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(1.0)


def train(make, *others):
    callbacks = [TimeReport(after_seconds=0, after_steps=18), *others]
    numbers = config(callbacks, data=make(Numbers()), model=Summing(), steps_per_epoch=40)
    SimpleTrainer(numbers).train()


@pytest.mark.parametrize("make", [QueueInput, FeedInput])
def test_slow_data_is_found_and_the_training_is_the_same(make, capsys):
    totals = []

    def read(callback):
        totals.extend(callback.trainer.sess.run(tf.trainable_variables()))

    train(make, when(trigger_epoch=read))
    assert totals == [sum(range(40))]
    (line, *_) = paragraphs(capsys)
    share = int(line.partition("waiting for data ")[2].partition(" %")[0])
    assert share >= 15  # a step alone takes far less than the data
    assert "the data is the limit" in line


def test_a_slow_callback_is_named(capsys):
    train(QueueInput, when(trigger_step=lambda _: time.sleep(0.05)))
    line = paragraphs(capsys)[-1]
    assert "Callbacks take" in line and " % in Callback; let them run more rarely" in line
