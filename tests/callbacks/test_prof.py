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
    return sorted(each.name for each in directory.iterdir())


def test_each_step_has_a_trace(directory):
    train(GraphProfiler())
    assert files(directory) == [f"chrome-trace-{step}.json" for step in (1, 2, 3, 4)]


def test_a_trace_is_what_viewers_load(directory):
    train(PeriodicCallback(GraphProfiler(), every_k_steps=4))
    trace = json.loads((directory / "chrome-trace-4.json").read_text())
    ops = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    for each in ops:
        assert set(each) >= {"ph", "ts", "dur", "pid", "tid", "name"}
        assert each["dur"] >= 0 and each["ts"] >= 0
    names = {each["args"]["name"] for each in ops}
    assert any(name.startswith("product") for name in names), names
    assert any(name.startswith("random") for name in names), names
    processes = {
        each["pid"]: each["args"]["name"]
        for each in trace["traceEvents"]
        if each["name"] == "process_name"
    }
    assert {each["pid"] for each in ops} <= set(processes)
    assert any("CPU" in name.upper() for name in processes.values())


def test_the_metadata_can_be_read_back(directory):
    train(PeriodicCallback(GraphProfiler(dump_metadata=True, dump_tracing=False), 4))
    assert files(directory) == ["runmetadata-4.pb"]
    metadata = tf.RunMetadata.FromString((directory / "runmetadata-4.pb").read_bytes())
    nodes = [node.node_name for each in metadata.step_stats.dev_stats for node in each.node_stats]
    assert any(name.startswith("product") for name in nodes)


def test_an_event_needs_no_directory():
    monitor, events = MonitorBase(), []
    monitor.process_event = events.append
    profiler = GraphProfiler(dump_tracing=False, dump_event=True)
    train(PeriodicCallback(profiler, every_k_steps=4), [monitor])
    (event,) = events
    assert (event.tagged_run_metadata.tag, event.step) == ("trace-4", 4)
    assert tf.RunMetadata.FromString(event.tagged_run_metadata.run_metadata).step_stats.dev_stats
