import sys
import threading

from tensorpack.callbacks import Callback, Callbacks, PeriodicTrigger
from tensorpack.callbacks.time_report._measure import CallbackSampler, running_callback
from tests.helpers import CallbackSpy


class Inner(Callback):
    """Notes which callback a sample finds while it is executed."""

    found = ""

    def _look(self, *_):
        self.found = running_callback(sys._getframe())

    _trigger_step = _before_run = _after_run = _look


def group(*callbacks):
    everyone = Callbacks(callbacks)
    for each in callbacks:
        each.trainer = CallbackSpy  # has a global step
    return everyone


def test_a_callback_is_found_below_the_group_and_a_proxy_instead_of_the_one_inside(monkeypatch):
    inner = Inner()
    group(inner).trigger_step()
    assert inner.found == "Inner"
    inner._trigger = inner._look
    outer = PeriodicTrigger(inner, every_k_steps=1)
    monkeypatch.setattr(CallbackSpy, "global_step", 4)
    group(outer).trigger_step()
    assert inner.found == "PeriodicTrigger-Inner"


def test_elsewhere_no_callback_runs():
    def trigger_step(self):
        return running_callback(sys._getframe())

    assert running_callback(None) is running_callback(sys._getframe()) is None
    assert trigger_step("not a callback") is None


def test_the_most_frequent_one_is_the_slowest_and_only_samples_that_count_do():
    class Busy(Callback):
        def _trigger_step(self):
            sampler.sample(threading.get_ident())

    class Busier(Busy):
        def _trigger_step(self):
            super()._trigger_step()
            super()._trigger_step()

    counts = False
    sampler = CallbackSampler(lambda: counts)
    group(Busy(), Busier()).trigger_step()
    assert sampler.slowest() == ""
    counts = True
    group(Busy(), Busier()).trigger_step()
    assert sampler.slowest() == "Busier"
    sampler.reset()
    assert sampler.slowest() == ""
