import multiprocessing
import os
import time
import types

import pytest

from tensorpack.callbacks.time_report import _measure as measure
from tensorpack.callbacks.time_report._measure import (
    Meters,
    SampleSchedule,
    StepProbe,
    Window,
    cpu_seconds,
    machine_seconds,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import FakeData
from tensorpack.input_source import FeedInput
from tensorpack.input_source.dequeue import WaitReading


def chosen(schedule, durations, now=0.0):
    """The durations of the steps that are chosen, with their weights."""
    found = []
    for each in durations:
        weight = schedule.weight(now)
        now += each
        if weight:
            found.append((weight, each))
    return found


def test_fast_steps_are_chosen_now_and_then_at_no_period_and_slow_ones_each():
    schedule = SampleSchedule(0.1)
    chosen(schedule, [0.001] * 1000)
    found = chosen(schedule, [0.001] * 20000, 1.0)
    assert len(found) == pytest.approx(200, rel=0.02)
    assert len(chosen(SampleSchedule(0.1), [1.0] * 30)) >= 25


@pytest.mark.parametrize(
    "durations",
    [
        [0.001, 0.009] * 5000,  # each second step is slow
        [0.005] * 4000 + [0.1] * 200,  # the speed changes
        [0.1] * 200 + [0.005] * 4000,
        ([0.001] * 63 + [1.0]) * 30,  # rare halts
    ],
)
def test_the_chosen_steps_stand_for_all(durations):
    def share(weighted):
        """Of the time in slow steps."""
        slow = sum(weight * each for weight, each in weighted if each > 0.005)
        return slow / sum(weight * each for weight, each in weighted)

    found = chosen(SampleSchedule(0.1), durations)
    assert share(found) == pytest.approx(share([(1, each) for each in durations]), abs=0.03)
    assert len(found) < len(durations) / 4


def test_the_time_between_epochs_belongs_to_no_step():
    schedule = SampleSchedule(0.1)
    chosen(schedule, [0.001] * 1000)
    schedule.resume(1000.0)
    assert len(chosen(schedule, [0.001] * 1000, 1000.0)) < 25


def test_figures():
    window = Window(Meters())
    window.take(WaitReading(0.1, 1.0), 0.4, weight=10)
    window.take(WaitReading(0.3, 0.0), 0.35, weight=10)
    found = window.figures(Meters(10.0, 20, 7.5, 8.0, 6.0, 80), cores=2, env_steps=8.0)
    assert (found.seconds, found.steps, found.env_steps) == (10.0, 20, 8.0)
    assert found.waiting == pytest.approx(0.2 * 20 / 10)
    assert (found.callbacks, found.busy, found.machine) == (0.25, 0.4, 0.6)
    assert (found.fill, found.trend) == (0.5, pytest.approx(-1.0))


def test_shares_are_shares():
    window = Window(Meters())
    window.take(WaitReading(5.0, None), 0.75, weight=1)
    found = window.figures(Meters(1.0, 10, 0.75))
    assert (found.waiting, found.callbacks, found.fill) == (0.75, 0.25, None)
    found = window.figures(Meters(1.0, 10, -3.0))
    assert (found.waiting, found.callbacks, found.fill) == (0.0, 1.0, None)


def test_what_was_not_measured_is_not_told():
    assert Window(Meters()).figures(Meters(1.0, 10)).waiting is None
    assert Window(Meters()).figures(Meters(1.0, 10, 3.0)).callbacks == 0.0
    empty = Window(Meters()).figures(Meters())
    assert (empty.seconds, empty.updates, empty.callbacks) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "fills, change",
    [([], 0.0), ([0.3], 0.0), ([1.0, 0.5, 0.0], -1.0), ([0.2] * 5, 0.0), ([0, 1, 0, 1, 0], 0.0)],
)
def test_the_trend_is_that_of_a_fitted_line(fills, change):
    window = Window(Meters())
    for each in fills:
        window.take(WaitReading(0.0, each), 1.0, 1)
    assert window.figures(Meters(1.0, 1)).trend == pytest.approx(change, abs=1e-6)


def test_the_wait_of_a_fed_step_ends_when_the_graph_begins(monkeypatch):
    data = FeedInput(FakeData([[2]]))
    trainer = types.SimpleNamespace(
        step_op=tf.no_op(), config=types.SimpleNamespace(data=data, dataflow=None)
    )
    probe = StepProbe(trainer)
    monkeypatch.setattr(measure.time, "time", lambda: 100.0)
    assert probe.ask() is probe.request
    assert probe.read(100.25, longest=1.0) == (0.25, None)
    assert probe.read(102.0, longest=1.0) == (1.0, None)  # the clock was set
    assert probe.read(99.0, longest=1.0) == (0.0, None)


def burn(seconds):
    """Uses the processor for so many seconds of it."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.mark.timed
def test_what_this_process_uses():
    before, of_machine = cpu_seconds(), machine_seconds()
    burn(0.5)
    assert 0.4 <= cpu_seconds() - before < 5
    if of_machine is not None:
        assert 0.4 / os.cpu_count() <= machine_seconds() - of_machine < 60
    before = cpu_seconds()
    time.sleep(0.2)
    assert cpu_seconds() - before < 0.15


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc")
def test_what_a_child_uses_while_it_lives_and_after_it():
    def of_children():
        return cpu_seconds() - time.process_time()

    before = of_children()
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=sum, args=(range(10**12),))
    child.start()
    deadline = time.monotonic() + 60
    while of_children() - before < 0.3 and time.monotonic() < deadline:
        time.sleep(0.05)
    alive = of_children() - before
    child.terminate()
    child.join()
    assert 0.3 <= alive < 30
    assert of_children() - before >= alive - 0.05


@pytest.fixture
def proc(monkeypatch, tmp_path):
    """Writes the file that is read instead of those in /proc."""
    path = tmp_path / "stat"
    monkeypatch.setattr(measure, "open", lambda _, **__: open(str(path)), raising=False)
    return path.write_text


@pytest.mark.parametrize("text", ["", "cpu 1 2 three"])
def test_a_machine_that_does_not_tell(text, proc):
    proc(text)
    assert machine_seconds() is None


def test_the_kinds_of_time_that_count(monkeypatch, proc):
    proc("cpu  100 20 30 4000 500 6 7 8 90 9\ncpu0 1 2 3\n")
    monkeypatch.setattr(measure.os, "cpu_count", lambda: 3)
    monkeypatch.setattr(measure.os, "sysconf", lambda name: 100)
    assert machine_seconds() == pytest.approx(1.71 / 3)
