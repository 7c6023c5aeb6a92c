"""What the base class of callbacks adds to its subclasses."""

import weakref

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import Callback, TrainerContract


class Trainer(TrainerContract):
    epoch_num, local_step, global_step = 3, 4, 34


class Adder(Callback):
    def _setup_graph(self):
        self.op = tf.constant(0, name="zero")

    def _before_run(self, ctx):
        return self.request


@pytest.fixture
def callback():
    trainer, adder = Trainer(), Adder()
    adder.setup_graph(trainer)
    yield adder
    assert adder.trainer == trainer  # alive until here


def test_ops_go_under_the_class_name_unique_in_the_graph(callback):
    second = Adder()
    second.setup_graph(callback.trainer)
    assert callback.op.name == "Adder/zero:0"
    assert second.op.name == "Adder_1/zero:0"
    assert callback.graph is tf.get_default_graph()


def test_knows_its_trainer_weakly(callback):
    assert (callback.epoch_num, callback.local_step, callback.global_step) == (3, 4, 34)
    assert isinstance(callback.trainer, weakref.ProxyTypes)


def test_before_run_takes_fetches_in_every_form(callback):
    callback.request = None
    assert callback.before_run(None) is None
    callback.request = tf.train.SessionRunArgs(callback.op)
    assert callback.before_run(None) is callback.request
    for request in (["Adder/zero:0"], [callback.op]):
        callback.request = request
        assert callback.before_run(None).fetches == [callback.op]


def test_tensors_are_looked_for_by_name(callback):
    assert callback.get_tensors_maybe_in_tower(["Adder/zero:0"]) == [callback.op]
    with pytest.raises(KeyError):
        callback.get_tensors_maybe_in_tower(["nothing"])
