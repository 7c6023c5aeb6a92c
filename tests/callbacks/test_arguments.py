"""Arguments of callbacks: what they cannot use is refused when they are made, and named."""

import numpy as np
import pytest

from tensorpack.callbacks import (
    DumpTensorAsImage,
    DumpTensors,
    EstimatedTimeLeft,
    GraphProfiler,
    HumanHyperParamSetter,
    MergeAllSummaries,
    PeriodicCallback,
    PeriodicRunHooks,
    PeriodicTrigger,
    ProcessTensors,
    ScalarPrinter,
    SessionRunTimeout,
    SimpleMovingAverage,
    StatMonitorParamSetter,
    StopIfNonFinite,
    ThroughputTracker,
    Watchdog,
)
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer
from tests.helpers import CallbackSpy


def stat(last_k):
    return StatMonitorParamSetter("lr", "cost", lambda old: old, 0.1, last_k)


COUNTS = [
    ("every_k_steps", lambda number: PeriodicTrigger(CallbackSpy(), every_k_steps=number)),
    ("every_k_epochs", lambda number: PeriodicCallback(CallbackSpy(), every_k_epochs=number)),
    ("every_k_steps", lambda number: PeriodicRunHooks(CallbackSpy(), number)),
    ("last_k_epochs", EstimatedTimeLeft),
    ("timeout_in_ms", SessionRunTimeout),
    ("window_size", lambda number: SimpleMovingAverage(["cost"], number)),
    ("last_k", stat),
    ("period", MergeAllSummaries),
]


@pytest.mark.parametrize("name, make", COUNTS)
def test_counts(name, make):
    with pytest.raises(ValueError, match=f"{name} must be a whole number .* got -1"):
        make(-1)
    make(np.float32(3))


@pytest.mark.parametrize(
    "name, make", [("samples_per_step", ThroughputTracker), ("timeout", Watchdog)]
)
def test_positive_numbers(name, make):
    with pytest.raises(ValueError, match=f"{name} must be a positive, finite .* got 0"):
        make(0)
    make(0.5)


def test_a_string_is_not_a_list_of_letters():
    with pytest.raises(TypeError, match="ScalarPrinter: whitelist must be a list, but got 'cost'"):
        ScalarPrinter(whitelist="cost")
    assert StopIfNonFinite("cost").tensors == ["cost"]
    assert SimpleMovingAverage("cost", 3)._names == ["cost"]
    with pytest.raises(TypeError, match="ProcessTensors: names must be a list of names, but has 3"):
        ProcessTensors([3], print)


IN_THE_LOG_DIRECTORY = [
    lambda: DumpTensors(["one"]),
    lambda: DumpTensorAsImage("one"),
    GraphProfiler,
    lambda: HumanHyperParamSetter("one"),
]


@pytest.mark.parametrize("make", IN_THE_LOG_DIRECTORY)
def test_what_has_files_in_the_log_directory_needs_one(make):
    tf.constant(1, name="one")
    with pytest.raises(RuntimeError, match=r"call logger.set_logger_dir\(\)"):
        MiniTrainer([make()]).train()
