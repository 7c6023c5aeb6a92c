"""What every callback must do: a test class per callback inherits `CallbackContract`."""

import threading
import weakref

import numpy as np
import pytest

from tensorpack.callbacks import Callback
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_directory, when
from tests.contracts.dataflow import assert_plain, assert_same

__all__ = ["CallbackContract", "assert_plain", "contract_of", "frozen"]


class CallbackContract:
    """Tests of the callback of `make_callback`, in the graph of `make_graph`."""

    name = None  # how the callback's name begins, if not with that of its class
    scopes = ()  # name scopes of its ops, beside its own
    make_trainer = MiniTrainer

    def make_callback(self):
        """Returns a new callback; called in the graph of `make_graph`."""
        raise NotImplementedError

    def make_graph(self):
        """Builds the graph and returns the op of a step."""
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        cost = tf.multiply(weight, 2.0, name="cost")
        tf.summary.scalar("cost-summary", cost)
        tf.add_to_collection("MOVING_SUMMARY_OPS", tf.identity(cost, name="moving").op)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.identity(cost, name="update").op)
        return tf.assign_add(weight, 1.0).op

    @pytest.fixture
    def trainer(self, tmp_path, monkeypatch):
        """A `MiniTrainer` of one epoch of two steps with the callback; it has a log directory."""
        monkeypatch.chdir(tmp_path)
        self.threads_before = threading.active_count()
        with log_directory(tmp_path / "log"):
            (tmp_path / "log").mkdir()
            train_op = self.make_graph()
            self.callback = self.make_callback()
            yield self.make_trainer([put_cost(), self.callback], train_op=train_op)

    def test_it_is_a_callback_with_a_name_and_a_chief(self, trainer):
        assert isinstance(self.callback, Callback)
        assert str(self.callback).startswith(self.name or type(self.callback).__name__)
        assert self.callback.set_chief_only(False) is self.callback
        assert not self.callback.chief_only
        self.callback.chief_only = True
        assert self.callback.chief_only

    def test_a_run_goes_through_on_a_finalised_graph(self, trainer):
        before = len(trainer.graph.get_operations())
        self.make_callback()
        assert len(trainer.graph.get_operations()) == before
        trainer.train()
        assert trainer.global_step == 2
        self.callback.after_train()  # again
        assert threading.active_count() == self.threads_before

    def test_its_ops_are_in_its_own_scope_and_it_does_not_keep_the_trainer(self, trainer):
        before = {op.name for op in trainer.graph.get_operations()}
        with tf.name_scope("elsewhere"):
            trainer.callbacks.setup_graph(weakref.proxy(trainer))
        assert isinstance(self.callback.trainer, weakref.ProxyTypes)
        added = {op.name for op in trainer.graph.get_operations()} - before
        scopes = {name.partition("/")[0] for name in added}
        assert scopes <= {"elsewhere", "global_step", "global_step_incr", *self.scopes}

    def test_after_train_is_harmless_if_the_training_never_began(self, trainer):
        with trainer.session():
            self.callback.after_train()
        assert threading.active_count() == self.threads_before

    def test_after_train_may_come_in_the_middle(self, trainer):
        with trainer.session():
            trainer.callbacks.before_train()
            trainer.epoch_num = 1
            trainer.callbacks.before_epoch()
            trainer.step()
        assert threading.active_count() == self.threads_before

    def test_its_state_is_a_tree_of_plain_values_and_does_not_change_any_more(self, trainer):
        with trainer.session():
            assert_plain(self.callback.state_dict())
            self.go_half_an_epoch(trainer)
            state = self.callback.state_dict()
            assert_plain(state)
            before = frozen(state)
            trainer.step()
            trainer.callbacks.after_epoch()
            trainer.callbacks.trigger_epoch()
            assert_same(state, before)

    def test_its_state_is_the_same_after_it_was_loaded(self, trainer):
        with trainer.session():
            self.go_half_an_epoch(trainer)
            state = self.callback.state_dict()
        with tf.Graph().as_default():
            train_op = self.make_graph()
            other = self.make_callback()
            later = self.make_trainer([other], train_op=train_op)
            later.resumed = True
            with later.session():
                if state:
                    other.load_state_dict(frozen(state))
                    assert_same(other.state_dict(), state)
                self.go_half_an_epoch(later)

    def go_half_an_epoch(self, trainer):
        trainer.callbacks.before_train()
        trainer.epoch_num, trainer.local_step = 1, -1
        trainer.callbacks.before_epoch()
        trainer.step()


def contract_of(make_callback, **attributes):
    """Returns a test class of the contract, with these attributes; see `make_callback` there."""
    body = {**attributes, "make_callback": lambda self: make_callback()}
    return type("TestContract", (CallbackContract,), body)


def put_cost():
    """A callback that logs the scalar `cost`, without a value that could be the best."""
    return when(before_epoch=lambda cb: cb.trainer.monitors.put_scalar("cost", float("nan")))


def frozen(value):
    """A copy of a state, with arrays that cannot be written to."""
    if isinstance(value, dict):
        return {key: frozen(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(frozen(each) for each in value)
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
    return value
