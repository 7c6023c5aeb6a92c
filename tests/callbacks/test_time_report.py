import itertools
import json
import multiprocessing
import os
import time
import types

import pytest

from tensorpack.callbacks import Callback, PeriodicTrigger, TimeReport
from tensorpack.callbacks.time_report import Figures, bottleneck, cpu_seconds
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import FeedInput, QueueInput
from tensorpack.train import SimpleTrainer
from tests.callbacks.driver import MiniTrainer, log_directory, log_lines, when
from tests.clock import FakeClock
from tests.contracts.callback import contract_of
from tests.helpers import config

TestTimeReport = contract_of(TimeReport)


SLOW = {"callbacks": 0.4, "waiting": 0.3, "in_callbacks": {"Slow": 9.0, "Quick": 0.1}}
STEP = "The data keeps up; the limit is the step itself, "


@pytest.mark.parametrize(
    "measured, limit, what, advice",
    [
        ({"waiting": 0.15}, "data", "Waiting for data takes 15%: ", "the data is the limit; make"),
        ({"callbacks": 0.3, "waiting": 0.4}, "data", "Waiting for data takes 40%: ", "the data is"),
        (SLOW, "callbacks", "Callbacks take 40% between the steps, 30% in Slow; ", "let them run"),
        ({"callbacks": 0.4}, "callbacks", "Callbacks take 40% between the steps; ", "let them run"),
        ({"busy": 0.9}, "processor", "The processor is the limit, its cores are busy; ", "bfloat"),
        (
            {"waiting": 0.14, "callbacks": 0.14},
            "step",
            f"{STEP}which leaves some of the cores idle; ",
            "larger batches, lower precision or XLA may help",
        ),
        ({"busy": 0.9, "on_gpu": True, "waiting": None}, "step", f"{STEP}on the GPU; ", "larger"),
        ({"steps": 60000}, "step", f"{STEP}which is very short; ", "do more in each"),
    ],
)
def test_one_sentence_names_the_bottleneck_and_the_next_move(measured, limit, what, advice):
    known = {"seconds": 30.0, "steps": 300, "waiting": 0.0, "callbacks": 0.01, "stepping": 0.9}
    figures = Figures(**{**known, **measured})
    found_limit, said = bottleneck(figures, lambda limit: None)
    assert found_limit == limit and said.startswith(what + advice)
    assert bottleneck(figures, "a hint on {}".format) == (limit, f"{what}a hint on {limit}")


class StepTrainer(MiniTrainer):
    @property
    def step_op(self):
        return self.train_op


class Costs(Callback):
    """Lets a step take 90 ms, what is behind it 10 ms, and the end of an epoch a thousand s."""

    def __init__(self, clock):
        self._clock = clock

    def _before_run(self, ctx):
        self._clock.advance(0.09)

    def _trigger_step(self):
        self._clock.advance(0.01)

    def _trigger_epoch(self):
        self._clock.advance(1000)


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    monkeypatch.setattr("tensorpack.callbacks.time_report.usable_cores", lambda: 2)


def reported(steps_per_epoch, max_epoch=1, others=(), wrap=lambda report: report):
    """A report with a clock and costs of its own, and a trainer whose steps wait 70 ms."""
    clock = FakeClock(50.0)
    report = TimeReport(clock=clock)
    source = FeedInput(Numbers())  # whose clock is in the graph
    trainer = StepTrainer(
        [wrap(report), Costs(clock), *others],
        train_op=tf.no_op(),
        steps_per_epoch=steps_per_epoch,
        max_epoch=max_epoch,
    )
    trainer.config = types.SimpleNamespace(dataflow=Games(trainer), data=source)
    return report, trainer


class Games:
    def __init__(self, trainer):
        self._trainer = trainer

    @property
    def env_steps(self):
        return 1000 + 4 * self._trainer.steps_taken

    def bottleneck_hint(self, limit):
        return f"a hint about {limit}"


@pytest.fixture
def waits(monkeypatch):
    """The clock of the graph is 70 ms ahead."""
    now = lambda name=None: tf.constant(100.07, tf.float64)  # noqa: E731
    monkeypatch.setattr(tf, "timestamp", now)
    monkeypatch.setattr("tensorpack.callbacks.time_report.time.time", lambda: 100.0)
    monkeypatch.setattr("tensorpack.callbacks.time_report.cpu_seconds", lambda: 0.0)


def paragraphs(capsys):
    return [line for line in log_lines(capsys) if line.startswith("Where the time goes")]


PARAGRAPH = (
    "Where the time goes: waiting for data 70%, stepping 20%, callbacks 10%, of {} seconds with {} "
    "steps; 10 updates/s, 40 environment steps/s; 0.0 of 2 cores busy. Waiting for data takes 70%: "
    "a hint about data."
)


def test_it_reports_in_the_first_epoch_and_at_the_end_of_each(waits, capsys):
    _, trainer = reported(400, max_epoch=3)
    trainer.train()
    # twenty steps are the warm-up, 30 seconds the time before the first report
    assert paragraphs(capsys) == [
        PARAGRAPH.format(*of) for of in [(30, 300), (8, 80), (40, 400), (40, 400)]
    ]


def test_a_few_steps_are_no_report(waits, capsys):
    reported(9, max_epoch=5)[1].train()
    assert paragraphs(capsys) == []


def test_a_trigger_reports_on_the_epoch_so_far(waits, capsys, tmp_path):
    with log_directory(tmp_path):
        reported(60, wrap=lambda report: PeriodicTrigger(report, every_k_steps=35))[1].train()
    lines = paragraphs(capsys)
    assert [" with 15 steps;" in line for line in lines] == [True, False]
    assert " with 25 steps;" in lines[1]
    first, last = map(json.loads, (tmp_path / "time_reports.jsonl").read_text().splitlines())
    assert first["text"] == lines[0] and first["limit"] == "data" and first["epoch"] == 1
    assert [first[part] for part in ("waiting", "stepping", "callbacks")] == pytest.approx(
        [0.7, 0.2, 0.1], abs=0.01
    )
    assert first["in_callbacks"].keys() >= {"Costs"} and last["step"] == 60


def test_a_log_directory_that_cannot_be_written_is_a_warning(waits, capsys, tmp_path):
    with log_directory(tmp_path / "gone"):
        reported(60)[1].train()
    assert "The time report is in the log alone" in log_lines(capsys)[1]


@pytest.mark.parametrize("deterministic", [True, False])
def test_clocks_are_fetched_with_a_step_and_nothing_else(deterministic, waits, capsys):
    other, asked = tf.constant(1), []
    reading = when(trigger_step=lambda callback: callback.trainer.hooked_sess.run(other))
    report, trainer = reported(35, others=[reading])
    trainer.deterministic = deterministic
    before_run = report.before_run

    def noting(ctx):
        request = before_run(ctx)
        asked.extend([] if request is None else [trainer.global_step])
        return request

    report.before_run = noting
    trainer.train()
    assert asked == ([] if deterministic else list(range(1, 36)))
    assert ("waiting for data unknown" in paragraphs(capsys)[0]) == deterministic


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
    data = make(Numbers())
    callbacks = [TimeReport(), *others]
    SimpleTrainer(config(callbacks, data=data, model=Summing(), steps_per_epoch=40)).train()


@pytest.mark.parametrize("make", [QueueInput, FeedInput])
def test_slow_data_is_found_and_the_training_is_the_same(make, capsys):
    totals = []

    def read(callback):
        totals.extend(callback.trainer.sess.run(tf.trainable_variables()))

    train(make, when(trigger_epoch=read))
    assert totals == [sum(range(40))]
    (line,) = paragraphs(capsys)
    share = int(line.partition("waiting for data ")[2].partition("%")[0])
    assert share >= 15  # a step alone takes far less than the data
    assert "the data is the limit" in line
