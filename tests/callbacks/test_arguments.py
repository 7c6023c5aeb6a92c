"""Arguments of callbacks: what they cannot use is refused when they are made, and named."""

import numpy as np
import pytest

from tensorpack.callbacks import (
    EstimatedTimeLeft,
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
from tests.helpers import CallbackSpy


def stat(last_k):
    return StatMonitorParamSetter("lr", "cost", lambda old: old, 0.1, last_k)


COUNTS = [
    ("every_k_steps", lambda number: PeriodicTrigger(CallbackSpy(), every_k_steps=number)),
    ("every_k_epochs", lambda number: PeriodicCallback(CallbackSpy(), every_k_epochs=number)),
    ("every_k_epochs", lambda number: PeriodicTrigger(CallbackSpy(), every_k_epochs=number)),
    ("every_k_steps", lambda number: PeriodicCallback(CallbackSpy(), every_k_steps=number)),
    ("every_k_steps", lambda number: PeriodicRunHooks(CallbackSpy(), number)),
    ("last_k_epochs", EstimatedTimeLeft),
    ("timeout_in_ms", SessionRunTimeout),
    ("window_size", lambda number: SimpleMovingAverage(["cost"], number)),
    ("last_k", stat),
    ("period", MergeAllSummaries),
]


@pytest.mark.parametrize("name, make", COUNTS)
def test_counts(name, make):
    for number in -1, 1.5, float("inf"), float("nan"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number .* got {number}"):
            make(number)
    for number in True, "3", [3]:
        with pytest.raises(TypeError, match=f"{name} must be a number, but got "):
            make(number)
    for number in 3.0, np.int64(3), np.float32(3):
        make(number)


@pytest.mark.parametrize(
    "name, make", [("samples_per_step", ThroughputTracker), ("timeout", Watchdog)]
)
def test_positive_numbers(name, make):
    for number in 0, -1, float("inf"), float("nan"):
        with pytest.raises(ValueError, match=f"{name} must be a positive, finite .* got {number}"):
            make(number)
    with pytest.raises(TypeError, match=f"{name} must be a number"):
        make("32")
    for number in 0.5, np.int64(32), np.float32(2):
        make(number)


def test_one_value_cannot_be_compared():
    with pytest.raises(ValueError, match="last_k must be a whole number of at least 2"):
        stat(1)


def test_a_string_is_not_a_list_of_letters():
    with pytest.raises(TypeError, match="ScalarPrinter: whitelist must be a list, but got 'cost'"):
        ScalarPrinter(whitelist="cost")
    assert StopIfNonFinite("cost").tensors == ["cost"]
    assert SimpleMovingAverage("cost", 3)._names == ["cost"]
    with pytest.raises(TypeError, match="ProcessTensors: names must be a list of names, but has 3"):
        ProcessTensors([3], print)
