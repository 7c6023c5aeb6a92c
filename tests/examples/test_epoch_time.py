"""How long an epoch will take is told where there is no GPU, once, from steps after the warm-up."""

import pytest
from epoch_time import EpochTimeWithoutGPU

from tensorpack.utils import logger
from tests.helpers import FakeClock


class Device:
    def __init__(self, kind):
        self.device_type = kind


class FakeTrainer:
    """As much of a trainer as the callback looks at."""

    steps_per_epoch = 25000

    def __init__(self, kinds, global_step=0):
        self.sess = self
        self.global_step = global_step
        self._devices = [Device(kind) for kind in kinds]

    def list_devices(self):
        return self._devices


@pytest.fixture
def lines(monkeypatch):
    """What is logged as information."""
    logged = []
    monkeypatch.setattr(logger, "info", logged.append)
    return logged


def run_steps(trainer, count):
    """Each step takes 10 seconds at first, and half a second after twenty of them."""
    clock = FakeClock()
    callback = EpochTimeWithoutGPU(clock=clock)
    callback.trainer = trainer
    callback.before_train()
    for step in range(count):
        clock.advance(10 if step < 20 else 0.5)
        trainer.global_step += 1
        callback.trigger_step()


def test_told_once_from_the_steps_after_the_warm_up(lines):
    run_steps(FakeTrainer(["CPU"]), 300)
    assert lines == [
        "TensorFlow has no GPU here: training on the CPU.",
        "An epoch of 25000 steps will take about 3 hours 28 minutes 20 seconds, at 2.0 steps/s.",
    ]


def test_told_after_a_hundred_steps_of_this_run(lines):
    run_steps(FakeTrainer(["CPU"], global_step=777), 99)
    assert len(lines) == 1
    run_steps(FakeTrainer(["CPU"], global_step=777), 100)
    assert len(lines) == 3


def test_what_is_between_epochs_does_not_count(lines):
    clock, trainer = FakeClock(), FakeTrainer(["CPU"])
    callback = EpochTimeWithoutGPU(clock=clock)
    callback.trainer = trainer
    callback.before_train()
    for _ in range(12):
        callback.before_epoch()
        for _ in range(9):
            clock.advance(0.5)
            trainer.global_step += 1
            callback.trigger_step()
        callback.after_epoch()
        clock.advance(1000)
    assert lines[1:] == [
        "An epoch of 25000 steps will take about 3 hours 28 minutes 20 seconds, at 2.0 steps/s."
    ]


def test_with_a_gpu_nothing_is_said(lines):
    run_steps(FakeTrainer(["CPU", "XLA_GPU", "GPU"]), 300)
    assert lines == []
