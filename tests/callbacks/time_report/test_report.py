import itertools
import json
import threading
import time
import types
from contextlib import contextmanager

import pytest

from tensorpack.callbacks import Callback, EnableCallbackIf, PeriodicTrigger, TimeReport
from tensorpack.callbacks.time_report.report import _WARMUP_STEPS
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
    monkeypatch.setattr("tensorpack.callbacks.time_report.report.usable_cores", lambda: 2)
    monkeypatch.setattr("tensorpack.callbacks.time_report.report.cpu_seconds", lambda: 0.0)
    monkeypatch.setattr("tensorpack.callbacks.time_report.report.machine_seconds", lambda: None)
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
    report, _, trainer = reported(1000)
    with in_epoch(trainer):
        said_before = []
        for _ in range(800):
            trainer.step()
            said_before += [trainer.global_step for _ in paragraphs(capsys)]
    # a look comes within about a tenth of a second
    assert len(said_before) == 1
    assert _WARMUP_STEPS + 300 < said_before[0] <= _WARMUP_STEPS + 303


@pytest.mark.parametrize("given", [False, True])
def test_the_source_knows_more(given, waits, capsys):
    class Games:
        @property
        def env_steps(self):
            return 1000 + 4 * trainer.global_step

        def bottleneck_hint(self, limit):
            return f"a hint about {limit}"

    games = Games()
    options = {"source": games} if given else {}
    _, _, trainer = reported(_WARMUP_STEPS + 301, after_seconds=29.99, **options)
    if not given:
        trainer.config = types.SimpleNamespace(dataflow=games, data=None)
    trainer.train()
    assert paragraphs(capsys) == [PARAGRAPH]


def test_a_clock_that_stands_still_is_no_error(waits, capsys):
    source = types.SimpleNamespace(env_steps=7)
    report, costs, trainer = reported(50, after_seconds=1e9, source=source)
    costs.inside = costs.outside = 0.0
    with trainer.session():
        trainer.callbacks.before_train()
        trainer.run_epoch(1)
        trainer.callbacks.cbs[1].trigger()
    (line,) = paragraphs(capsys)
    assert "of 0 seconds with 30 steps" in line and ", 0 environment steps/s" in line


def test_short_epochs_add_up_and_their_ends_do_not_count(waits, capsys):
    _, _, trainer = reported(100, max_epoch=5)
    trainer.train()
    said = paragraphs(capsys)
    assert len(said) == 1
    # 80 steps of the first epoch, which is not over the warm-up before
    assert "callbacks 10 %, of 38 seconds with 380 steps; 10 updates/s" in said[0]


@pytest.mark.parametrize("seconds, steps", [(1e9, 0), (0, 10**9)])
def test_too_little_says_nothing(seconds, steps, waits, capsys):
    _, _, trainer = reported(400, max_epoch=2, after_seconds=seconds, after_steps=steps)
    trainer.train()
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
    assert lines[2] == [
        "Where the time goes has changed: The data keeps up; the limit is the step itself, which "
        "leaves some of the cores idle."
    ]
    assert "Callbacks take 50 % between the steps" in lines[4][0]


@pytest.fixture
def running(waits, tmp_path):
    """A report that says nothing of its own accord, its costs and its trainer, in an epoch."""
    with log_directory(tmp_path):
        report, costs, trainer = reported(10**6, after_seconds=1e9)
        with in_epoch(trainer):
            yield report, costs, trainer


def test_a_file_asks(running, capsys, tmp_path):
    report, _, trainer = running
    for _ in range(60):
        trainer.step()
    assert paragraphs(capsys) == []
    (tmp_path / "report").write_text("")
    for _ in range(25):
        trainer.step()
    (said,) = paragraphs(capsys)
    (kept,) = map(json.loads, (tmp_path / "time_reports.jsonl").read_text().splitlines())
    assert kept["text"] == said and kept["limit"] == "data" and kept["epoch"] == 1
    shares = [kept[name] for name in ("waiting", "stepping", "callbacks")]
    assert sum(shares) == pytest.approx(1, abs=0.001) and kept["steps"] > 10
    assert not (tmp_path / "report").exists()
    (tmp_path / "report").write_text("what I found")
    for _ in range(60):
        trainer.step()
    assert paragraphs(capsys) == []
    assert (tmp_path / "report").read_text() == "what I found"
    report.trigger()
    assert len((tmp_path / "time_reports.jsonl").read_text().splitlines()) == 2


def test_an_early_request_waits_for_some_steps(waits, capsys, tmp_path):
    with log_directory(tmp_path):
        _, _, trainer = reported(10**6, after_seconds=1e9)
        (tmp_path / "report").write_text("")
        with in_epoch(trainer):
            said = []
            while not said and trainer.global_step < 100:
                trainer.step()
                said = paragraphs(capsys)
    assert f" with {trainer.global_step - 1 - _WARMUP_STEPS} steps" in said[0]
    assert trainer.global_step > _WARMUP_STEPS + 10


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


def test_a_trigger_asks(waits, capsys):
    report, _, trainer = reported(50, after_seconds=1e9)
    with trainer.session():
        trainer.callbacks.before_train()
        report.trigger()  # there is nothing yet
        trainer.run_epoch(1)
        report.trigger()
        assert len(paragraphs(capsys)) == 1
        report.trigger()  # nothing since then
    assert paragraphs(capsys) == []


def test_each_triggered_report_is_on_the_time_since_the_last_one(waits, capsys):
    report, _, trainer = reported(40, after_seconds=1e9)
    trainer.callbacks.cbs[1] = PeriodicTrigger(report, every_k_epochs=1)
    with trainer.session():
        trainer.callbacks.before_train()
        trainer.run_epoch(1)
        waits[0] = WaitReading(0.0, 1.0)
        trainer.run_epoch(2)
    first, second = paragraphs(capsys)
    assert "waiting for data 70 %," in first and " with 20 steps;" in first
    assert "waiting for data 0 %," in second and " with 40 steps;" in second


def go(trainer, costs, waits, inside, wait, seconds):
    """Lets steps take so long inside, of which they wait so long, for so many seconds."""
    costs.inside, costs.outside, waits[0] = inside, 0.0, WaitReading(wait, None)
    for _ in range(round(seconds / inside)):
        trainer.step()


def test_where_the_speed_changes_waiting_is_seen_in_its_proportion(running, waits, capsys):
    report, costs, trainer = running
    go(trainer, costs, waits, 0.01, 0.0, 0.01 * _WARMUP_STEPS)
    for slow in (0, 1, 0, 1):
        inside, wait = (0.1, 0.09) if slow else (0.005, 0.0)
        go(trainer, costs, waits, inside, wait, 5)
    report.trigger()
    (line,) = paragraphs(capsys)
    share = int(line.partition("waiting for data ")[2].partition(" %")[0])
    assert 40 <= share <= 50  # it is 45


def test_a_file_is_noticed_soon_after_steps_became_slower(running, waits, capsys, tmp_path):
    report, costs, trainer = running
    go(trainer, costs, waits, 0.001, 0.0, 3)
    (tmp_path / "report").write_text("")
    costs.inside = 1.0
    said = trainer.global_step
    while not paragraphs(capsys) and trainer.global_step < said + 200:
        trainer.step()
    assert trainer.global_step - said <= 4  # two seconds since the last look for it, and a half


def test_a_deterministic_run_is_left_alone(waits, capsys):
    report, _, trainer = reported(400, deterministic=True)
    asked = asked_steps(report, trainer)
    trainer.train()
    assert paragraphs(capsys) == [] and asked == []


def asked_steps(report, trainer):
    """Notes in which steps the report asks for something."""
    asked, before_run = [], report.before_run

    def noting(ctx):
        request = before_run(ctx)
        if request is not None:
            asked.append(trainer.global_step)
        return request

    report.before_run = noting
    return asked


def test_only_the_step_is_asked_so_nothing_is_taken_from_the_queue(waits):
    other = tf.constant(1)
    reading = when(trigger_step=lambda callback: callback.trainer.hooked_sess.run(other))
    report, _, trainer = reported(30, others=[reading])
    asked = asked_steps(report, trainer)
    trainer.train()
    assert len(asked) > 20 and asked == sorted(set(asked)) and asked[-1] < 30


def test_an_input_that_the_step_does_not_take_is_not_taken_for_it(capsys):
    queue = tf.FIFOQueue(4, [tf.int32], shapes=[[]])
    WaitProbe(queue).watch([queue.dequeue()])
    report = TimeReport(after_seconds=0, after_steps=10)
    StepTrainer([report], train_op=tf.no_op(), steps_per_epoch=50).train()  # does not block
    assert "(waiting for data could not be told from it)" in paragraphs(capsys)[0]


def test_a_switched_off_report_is_silent(waits, capsys):
    report, costs, trainer = reported(400)
    trainer.callbacks.cbs[1] = EnableCallbackIf(report, lambda self: False)
    trainer.train()
    assert paragraphs(capsys) == []


@pytest.mark.parametrize(
    "hook, first", [("trigger_step", False), ("before_run", True), ("after_run", False)]
)
def test_the_slowest_callback_is_named(hook, first, capsys):
    slow = when(**{hook: lambda _: time.sleep(0.03)})
    report = TimeReport(after_seconds=0, after_steps=20)
    both = [slow, report] if first else [report, slow]
    StepTrainer(both, train_op=tf.no_op(), steps_per_epoch=45).train()
    (line,) = paragraphs(capsys)[-1:]
    assert "Callbacks take" in line and "most often seen at work: Callback;" in line


def test_the_callback_that_is_named_was_the_slowest_in_the_time_reported(waits, capsys):
    class Sampled(Callback):
        def __init__(self, samples):
            self.samples = samples

        def _trigger_step(self):
            for _ in range(self.samples):
                report._sampler.sample(threading.get_ident())

    class Other(Sampled):
        pass

    first, second = Sampled(9), Other(1)
    report, costs, trainer = reported(40, max_epoch=2, others=[first, second], after_seconds=1e9)
    costs.outside = 0.2
    with trainer.session():
        trainer.callbacks.before_train()
        for epoch in (1, 2):
            trainer.run_epoch(epoch)
            report.trigger()
            first.samples, second.samples = 0, 1
    lines = paragraphs(capsys)
    assert ["seen at work: Sampled;" in line for line in lines] == [True, False]
    assert ["seen at work: Other;" in line for line in lines] == [False, True]


def test_a_hook_that_is_part_of_stepping_is_not_named(waits):
    found = []

    def look(_):
        report._sampler.sample(threading.get_ident())
        found.append(report._sampler.slowest())

    report, _, trainer = reported(1, others=[when(before_run=look, trigger_step=look)])
    trainer.train()
    assert found == ["", "Callback"]


def test_a_thread_looks_only_where_callbacks_take_time_and_ends_with_the_training(waits):
    names = []

    def look(_):
        names.extend(each.name for each in threading.enumerate())

    _, costs, trainer = reported(60, others=[when(trigger_step=look)])
    trainer.train()
    assert "CallbackSampler" in names
    assert "CallbackSampler" not in [each.name for each in threading.enumerate()]
    del names[:]
    with tf.Graph().as_default():
        _, costs, trainer = reported(60, others=[when(trigger_step=look)])
        costs.outside = 0.001
        trainer.train()
    assert "CallbackSampler" not in names


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


@pytest.mark.parametrize("make", [QueueInput, FeedInput])
def test_slow_data_is_found_and_the_training_is_the_same(make, capsys):
    totals = []

    def read(callback):
        totals.extend(callback.trainer.sess.run(tf.trainable_variables()))

    callbacks = [TimeReport(after_seconds=0, after_steps=18), when(trigger_epoch=read)]
    numbers = config(callbacks, data=make(Numbers()), model=Summing(), steps_per_epoch=40)
    SimpleTrainer(numbers).train()
    assert totals == [sum(range(40))]
    (line, *_) = paragraphs(capsys)
    share = int(line.partition("waiting for data ")[2].partition(" %")[0])
    assert share >= 15  # a step alone takes far less than the data
    assert "the data is the limit" in line
