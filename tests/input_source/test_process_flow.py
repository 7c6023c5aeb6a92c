"""Flows with worker processes under an input source: forked before the session, ended after it,
also if there was none.
"""

import multiprocessing
import os
import signal
import time

import numpy as np
import pytest

from tensorpack.callbacks import Callback, Callbacks, PeriodicTrigger
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import MapData
from tensorpack.dataflow._processes import start_method
from tensorpack.dataflow.process_map import MultiProcessMapData
from tensorpack.dataflow.processes import MultiProcessRunnerZMQ
from tensorpack.input_source import FeedInput, QueueInput, StagingInput
from tensorpack.input_source.enqueue_thread import private
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.train import SimpleTrainer
from tensorpack.utils.packing.packed_arrays import is_immutable
from tests import helpers
from tests.dataflow.process_functions import Endless, arrays_of, numbers, ones
from tests.helpers import TinyModel

from .run_source import running

SIGNATURE = [tf.TensorSpec([10000], tf.uint8, "array")]


def forked(kind, source):
    """A flow that can only be forked."""
    if kind == "map":
        return MultiProcessMapData(
            source, 2, lambda dp: [np.full(10000, dp[0] % 256, np.uint8)], strict=True
        )
    ds = MapData(source, lambda dp: [np.full(10000, dp[0] % 256, np.uint8)])
    return MultiProcessRunnerZMQ(ds, 2)


@pytest.fixture
def no_session_before(monkeypatch):
    """Other tests of this process may have had sessions, and so threads."""
    monkeypatch.setattr(start_method, "_has_session", lambda: False)


@pytest.mark.parametrize("make_source", [QueueInput, FeedInput])
@pytest.mark.parametrize("kind", ["flow", "map"])
def test_processes_are_forked_before_the_session_and_ended_behind_it(
    kind, make_source, no_session_before
):
    source = make_source(forked(kind, Endless()))
    with running(source, SIGNATURE) as (_, sess, fetches, callbacks):
        workers = multiprocessing.active_children()
        assert [worker._start_method for worker in workers] == ["fork"] * 2
        if make_source is QueueInput:
            for number in range(60):
                array = sess.run(fetches[0])
                assert array.min() == array.max()
                assert kind == "flow" or array[0] == number
    assert multiprocessing.active_children() == []


def test_what_comes_from_processes_is_fed_without_a_copy():
    flow = MultiProcessRunnerZMQ(MapData(numbers(60), arrays_of), 2, start_method="fork")
    datapoints = list(flow)
    assert len(datapoints) == 60
    for _, large, small, other in datapoints:
        for array in large, small, other:
            assert is_immutable(array) and private(array) is array
        assert large.ctypes.data % 64 == other.ctypes.data % 64 == 0
    flow.close()


class Evaluates(Callback):
    """Makes its flow with the graph, and iterates it in the run, as many evaluations do."""

    has_session = False

    def __init__(self, keep=lambda flow: [flow]):
        self._keep = keep

    def _setup_graph(self):
        SETTINGS["scale"] = 10.0
        flow = MultiProcessMapData(numbers(3), 1, lambda dp: [dp[0] * SETTINGS["scale"]])
        self.flows = self._keep(flow)

    def _before_train(self):
        self.has_session = True

    def _trigger(self):
        self.values = [value for (value,) in self.flows[0]]
        self.flows[0].close()


SETTINGS = {}


@pytest.mark.parametrize(
    "keep, wrap",
    [
        (lambda flow: [flow], lambda callback: callback),
        (lambda flow: {0: flow}, lambda callback: PeriodicTrigger(callback, every_k_epochs=1)),
        (lambda flow: (flow,), lambda callback: Callbacks([callback])),
    ],
)
def test_the_flow_of_a_callback_is_forked_before_the_session_too(monkeypatch, log_dir, keep, wrap):
    # its processes have what the program has set, and a function that cannot be pickled
    callback = Evaluates(keep)
    monkeypatch.setattr(start_method, "_has_session", lambda: callback.has_session)
    SimpleTrainer(config(FeedInput(MapData(Endless(), ones)), callbacks=[wrap(callback)])).train()
    assert callback.values == [0, 10, 20]


def fail(*args):
    """Fails where the processes of the flow are at work, of which nobody has told the training."""
    assert len(multiprocessing.active_children()) == 2
    raise OSError("it did not get that far")


def interrupt(*args):
    assert len(multiprocessing.active_children()) == 2
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)


class FailingModel(TinyModel):
    build_graph = fail


class FailingCreator(NewSessionCreator):
    create_session = fail


class FailingStart(Callback):
    _before_train = fail


class Interrupted(Callback):
    _setup_graph = interrupt


def process_flow():
    return MultiProcessRunnerZMQ(MapData(Endless(), lambda dp: ones(dp)), 2)


def config(data, **options):
    return helpers.config(**{"model": TinyModel(), "data": data, **options})


def staged(flow):
    return StagingInput(QueueInput(flow))


@pytest.mark.parametrize(
    "make_source, options",
    [
        (QueueInput, {"model": FailingModel()}),
        (staged, {"session_creator": FailingCreator()}),
        (FeedInput, {"callbacks": [FailingStart()]}),
    ],
)
def test_processes_end_with_a_run_that_did_not_come_to_train(
    make_source, options, no_session_before, log_dir
):
    flow = process_flow()
    with pytest.raises(OSError, match="did not get that far"):
        SimpleTrainer(config(make_source(flow), **options)).train()
    assert multiprocessing.active_children() == []
    assert next(iter(flow))  # there is the flow still, and it may be used again
    flow.close()


@pytest.mark.parametrize("make_source", [QueueInput, FeedInput])
def test_a_signal_before_the_training_ends_the_processes_at_once(
    make_source, no_session_before, log_dir
):
    flow = process_flow()
    trainer = SimpleTrainer(config(make_source(flow), callbacks=[Interrupted()]))
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert time.monotonic() - start < 8
    assert multiprocessing.active_children() == []


def test_processes_end_with_a_graph_that_was_set_up_by_hand(no_session_before):
    flow, model = process_flow(), FailingModel()
    with pytest.raises(OSError, match="did not get that far"):
        SimpleTrainer().setup_graph(
            model.get_input_signature(), QueueInput(flow), model.build_graph, model.get_optimizer
        )
    assert multiprocessing.active_children() == []
