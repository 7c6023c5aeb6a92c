import json

import pytest

from tensorpack.callbacks import GraphProfiler, MonitorBase, PeriodicCallback
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_directory
from tests.contracts.callback import contract_of

TestGraphProfiler = contract_of(GraphProfiler)


def train(callback, monitors=()):
    """Four steps, in which two matrices are multiplied."""
    matrix = tf.random_uniform([50, 50], name="random")
    product = tf.matmul(matrix, matrix, name="product")
    MiniTrainer([callback], monitors, train_op=product.op, steps_per_epoch=4).train()


@pytest.fixture
def directory(tmp_path):
    with log_directory(tmp_path):
        yield tmp_path


def files(directory):
    return sorted(path.name for path in directory.iterdir())


def test_each_step_has_a_trace_of_its_ops(directory):
    train(GraphProfiler())
    assert files(directory) == [f"chrome-trace-{step}.json" for step in (1, 2, 3, 4)]
    events = json.loads((directory / "chrome-trace-4.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["ph"] == "X"}
    assert any(name.startswith("product") for name in names), names


def test_the_metadata_can_be_read_back(directory):
    train(PeriodicCallback(GraphProfiler(dump_metadata=True, dump_tracing=False), 4))
    assert files(directory) == ["runmetadata-4.pb"]
    metadata = tf.RunMetadata.FromString((directory / "runmetadata-4.pb").read_bytes())
    nodes = [node.node_name for dev in metadata.step_stats.dev_stats for node in dev.node_stats]
    assert any(name.startswith("product") for name in nodes)


def test_an_event_needs_no_directory():
    monitor, events = MonitorBase(), []
    monitor.process_event = events.append
    profiler = GraphProfiler(dump_tracing=False, dump_event=True)
    train(PeriodicCallback(profiler, every_k_steps=4), [monitor])
    (event,) = events
    assert (event.tagged_run_metadata.tag, event.step) == ("trace-4", 4)
    assert tf.RunMetadata.FromString(event.tagged_run_metadata.run_metadata).step_stats.dev_stats
