"""Flows with worker processes under an input source: forked before the session, ended after it."""

import multiprocessing

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import MapData
from tensorpack.dataflow._processes import start_method
from tensorpack.dataflow.process_map import MultiProcessMapData
from tensorpack.dataflow.processes import MultiProcessRunnerZMQ
from tensorpack.input_source import FeedInput, QueueInput
from tensorpack.input_source.aliasing import private, stays_as_it_is
from tensorpack.train import QueueInputTrainer, TrainConfig
from tests.dataflow.process_functions import Endless, arrays_of, numbers, ones
from tests.helpers import TinyModel

from .running import running

SIGNATURE = [tf.TensorSpec([10000], tf.uint8, "array")]


def forked(kind, source):
    """A flow that can only be forked."""
    if kind == "map":
        return MultiProcessMapData(
            source, 2, lambda dp: [np.full(10000, dp[0] % 256, np.uint8)], strict=True
        )
    ds = MapData(source, lambda dp: [np.full(10000, dp[0] % 256, np.uint8)])
    return MultiProcessRunnerZMQ(ds, 2, strict=True)


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
        assert [type(each).__name__ for each in workers] == ["_ForkWorker"] * 2
        if make_source is QueueInput:
            found = [sess.run(fetches[0]) for _ in range(60)]
            for number, array in enumerate(found):
                assert array.min() == array.max() == number
    assert multiprocessing.active_children() == []


def test_what_comes_from_processes_is_fed_without_a_copy():
    flow = MultiProcessRunnerZMQ(
        MapData(numbers(60), arrays_of), 2, strict=True, start_method="fork"
    )
    for _, large, small, other in flow:
        for array in large, small, other:
            assert stays_as_it_is(array) and private(array) is array
    flow.close()


def test_a_training_on_a_flow_with_a_lambda(no_session_before, log_dir):
    flow = MultiProcessRunnerZMQ(MapData(Endless(), lambda dp: ones(dp)), 2)
    config = TrainConfig(model=TinyModel(), dataflow=flow, steps_per_epoch=20, max_epoch=2)
    trainer = QueueInputTrainer(config)
    trainer.train()
    assert trainer.global_step == 40
    assert multiprocessing.active_children() == []


def test_a_session_is_seen():
    with tf.Session() as sess:
        sess.run(tf.ones([3]))
        assert start_method._has_session()
