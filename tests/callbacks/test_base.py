import pytest

from tensorpack.callbacks import (
    Callback,
    CallbackFactory,
    PeriodicTrigger,
    ProxyCallback,
)
from tensorpack.compat import tfv1 as tf
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
        sets_up_last, sees_runs, _chief_only = True, False, False

        def run_along(self, sess, fetches):
            return [fetches]

    inner = Inner()
    proxy = PeriodicTrigger(ProxyCallback(inner), every_k_steps=1)
    assert (proxy.sets_up_last, proxy.sees_runs, proxy.chief_only) == (True, False, False)
    assert proxy.run_along(None, "fetches") == ["fetches"]
    proxy.chief_only = True
    assert inner.chief_only


def test_a_proxy_wraps_callbacks_only():
    with pytest.raises(TypeError, match="wraps must be a Callback, got int"):
        ProxyCallback(3)


def test_a_factory_calls_the_functions_with_the_callback():
    tape = []

    def note(name):
        return lambda callback: tape.append((name, callback))

    names = ["setup_graph", "before_train", "trigger", "after_train"]
    callback = CallbackFactory(**{name: note(name) for name in names})
    MiniTrainer([callback]).train()
    assert tape == [(name, callback) for name in names]
    del tape[:]
    callback = CallbackFactory(trigger=note("trigger"), trigger_epoch=note("epoch"))
    with tf.Graph().as_default():
        MiniTrainer([callback]).train()
    assert tape == [("epoch", callback)]
