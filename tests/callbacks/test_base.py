import pytest

from tensorpack.callbacks import (
    Callback,
    CallbackFactory,
    PeriodicTrigger,
    ProxyCallback,
)
from tests.callbacks.driver import MiniTrainer
from tests.contracts.callback import contract_of
from tests.helpers import HOOKS, CallbackSpy

TestCallback = contract_of(Callback)
TestCallbackFactory = contract_of(lambda: CallbackFactory(trigger=lambda callback: None))
TestProxyCallback = contract_of(lambda: ProxyCallback(CallbackSpy()))


def test_a_proxy_forwards_everything():
    spy = CallbackSpy()
    MiniTrainer([ProxyCallback(ProxyCallback(spy))], steps_per_epoch=1).train()
    assert spy.tape == list(HOOKS)


def test_a_proxy_has_the_other_parts_of_the_contract_too():
    class Inner(Callback):
        sets_up_last, sees_runs = True, False

        def run_along(self, sess, fetches):
            return [fetches]

    proxy = PeriodicTrigger(ProxyCallback(Inner()), every_k_steps=1)
    assert (proxy.sets_up_last, proxy.sees_runs) == (True, False)
    assert proxy.run_along(None, "fetches") == ["fetches"]


def test_a_proxy_has_the_chief_only_of_what_is_inside():
    spy = CallbackSpy().set_chief_only(False)
    proxy = ProxyCallback(spy)
    assert not proxy.chief_only
    proxy.chief_only = True
    assert spy.chief_only


def test_a_proxy_wraps_callbacks_only():
    with pytest.raises(TypeError, match="wraps must be a Callback, got int"):
        ProxyCallback(3)


def test_a_factory_calls_the_functions_with_the_callback():
    tape = []

    def note(name):
        return lambda callback: tape.append((name, callback))

    callback = CallbackFactory(
        setup_graph=note("setup"),
        before_train=note("before"),
        trigger=note("trigger"),
        after_train=note("after"),
    )
    MiniTrainer([callback]).train()
    assert tape == [(name, callback) for name in ["setup", "before", "trigger", "after"]]


def test_a_factory_with_trigger_epoch_is_not_triggered_by_the_epoch():
    tape = []
    callback = CallbackFactory(
        trigger=lambda _: tape.append("trigger"), trigger_epoch=lambda _: tape.append("epoch")
    )
    MiniTrainer([callback]).train()
    assert tape == ["epoch"]
