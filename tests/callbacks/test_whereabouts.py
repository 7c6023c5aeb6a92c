import sys
import threading

import pytest

from tensorpack.callbacks import Callback, Callbacks, PeriodicTrigger
from tensorpack.callbacks._whereabouts import Whereabouts, callback_at_work
from tests.helpers import CallbackSpy


class Inner(Callback):
    """Says what a look finds while it is at work."""

    found = None

    def _trigger(self):
        self.found = [callback_at_work(sys._getframe())]

    def _trigger_step(self):
        self._trigger()


def group(*callbacks):
    everyone = Callbacks(callbacks)
    for each in callbacks:
        each.trainer = CallbackSpy  # has a global step
    return everyone


def test_the_callback_is_found_below_the_group():
    inner = Inner()
    group(inner).trigger_step()
    assert inner.found == ["Inner"]


@pytest.mark.parametrize("hook", ["before_run", "after_run"])
def test_the_hooks_of_a_run_are_found(hook):
    class Hooked(Inner):
        def _before_run(self, ctx):
            self._trigger()

        def _after_run(self, ctx, run_values):
            self._trigger()

    inner = Hooked()
    getattr(inner, hook)(*[None] * (2 if hook == "after_run" else 1))
    assert inner.found == ["Hooked"]


def test_a_look_that_does_not_count_finds_nobody():
    class Busy(Callback):
        def _trigger_step(self):
            whereabouts.look(threading.get_ident())

    for counts in (False, True):
        whereabouts = Whereabouts(lambda counts=counts: counts)
        group(Busy()).trigger_step()
        assert whereabouts.slowest() == ("Busy" if counts else "")


def test_a_proxy_counts_and_not_what_is_inside(monkeypatch):
    inner = Inner()
    outer = PeriodicTrigger(inner, every_k_steps=1)
    monkeypatch.setattr(CallbackSpy, "global_step", 4)
    group(outer).trigger_step()
    assert inner.found == ["PeriodicTrigger-Inner"]


def test_elsewhere_there_is_none():
    assert callback_at_work(None) is None
    assert callback_at_work(sys._getframe()) is None

    def trigger_step(self):
        return callback_at_work(sys._getframe())

    assert trigger_step("no callback") is None


def test_another_thread_is_watched_and_counted():
    class Busy(Callback):
        def _trigger_step(self):
            whereabouts.look(threading.get_ident())

    class Busier(Busy):
        def _trigger_step(self):
            super()._trigger_step()
            super()._trigger_step()

    whereabouts = Whereabouts()
    assert whereabouts.slowest() == ""
    group(Busy(), Busier()).trigger_step()
    assert whereabouts.slowest() == "Busier"
    whereabouts.forget()
    assert whereabouts.slowest() == ""


def test_its_thread_looks_and_leaves():
    class Waiting(Callback):
        def _trigger_step(self):
            for _ in range(200):
                if whereabouts.slowest():
                    return
                threading.Event().wait(0.05)

    whereabouts = Whereabouts()
    whereabouts.stop()
    whereabouts.start()
    group(Waiting()).trigger_step()
    whereabouts.stop()
    whereabouts.stop()
    assert whereabouts.slowest() == "Waiting"
    assert "Whereabouts" not in [each.name for each in threading.enumerate()]
