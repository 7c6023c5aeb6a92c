"""Tests of names, per-graph state, the global step and the default session configuration."""

import gc
import sys
import weakref

import numpy as np
import pytest

import tensorpack
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import (
    PerGraph,
    collect_env_info,
    get_default_sess_config,
    get_global_step_value,
    get_global_step_var,
    get_op_or_tensor_by_name,
    get_op_tensor_name,
    get_tensors_by_names,
    get_tf_version_number,
)
from tests.helpers import eagerly


def test_per_graph_keeps_one_value_for_each_graph():
    state = PerGraph(list)
    state.get().append(1)
    other = tf.Graph()
    assert state.get() == [1]
    assert state.get(other) == []
    assert PerGraph(list).get() == []


def test_a_branch_and_a_loop_have_the_state_of_their_graph():
    state = PerGraph(list)
    outer, found = state.get(), []

    def noted(x):
        found.append(state.get())
        return x + 1

    tf.cond(tf.constant(True), lambda: noted(1), lambda: tf.map_fn(noted, tf.constant([2]))[0])
    assert len(found) >= 2 and all(each is outer for each in found)


def test_per_graph_does_not_keep_a_graph_alive():
    state = PerGraph(list)
    graph = tf.Graph()
    with graph.as_default():
        state.get().append(tf.constant(1))
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_session_config_leaves_the_threads_to_tensorflow():
    config = get_default_sess_config(0.5)
    assert config.allow_soft_placement
    assert config.gpu_options.allow_growth
    assert config.gpu_options.per_process_gpu_memory_fraction == 0.5
    assert config.intra_op_parallelism_threads == 0
    assert config.inter_op_parallelism_threads == 0


def test_global_step_is_the_same_variable_wherever_it_is_asked_for():
    tf.get_variable("w", [])
    with tf.variable_scope("tower", reuse=True), tf.name_scope("ops"), tf.device("/gpu:3"):
        step = get_global_step_var()
    assert step.name == "global_step:0"
    assert "CPU:0" in step.device.upper()
    assert (step.dtype.base_dtype, step.shape.as_list()) == (tf.int64, [])
    assert get_global_step_var() is tf.train.get_global_step() is step
    assert step in tf.global_variables()
    assert step not in tf.trainable_variables()


def test_global_step_ignores_getters_and_loops_around_it(session):
    def refuse(getter, *args, **kwargs):
        raise AssertionError("asked the getter")

    def body(i):
        with tf.control_dependencies([i]):
            get_global_step_var()
        return i + 1

    with tf.variable_scope("outer", custom_getter=refuse):
        tf.while_loop(lambda i: i < 1, body, [tf.constant(0)], back_prop=False)
        step = get_global_step_var()
    assert session().run(step) == 0


def test_global_step_made_by_tensorflow_is_taken():
    step = tf.train.get_or_create_global_step()
    assert get_global_step_var() is step


def test_global_step_is_in_the_graph_also_while_tensorflow_executes_eagerly():
    with eagerly():
        step = get_global_step_var()
    assert get_global_step_var() is tf.train.get_global_step() is step
    assert step.graph is tf.get_default_graph()


def test_global_step_value_is_a_python_int(session):
    step = get_global_step_var()
    with session().as_default() as sess:
        sess.run(step.assign(12))
        value = get_global_step_value()
    assert (value, type(value)) == (12, int)


def test_global_step_value_needs_a_session():
    with pytest.raises(RuntimeError, match="session"):
        get_global_step_value()


@pytest.mark.parametrize(
    "name, expected",
    [("a", ("a", "a:0")), ("a:0", ("a", "a:0")), ("s/a:10", ("s/a", "s/a:10"))],
)
def test_op_and_tensor_name(name, expected):
    assert get_op_tensor_name(name) == expected


def test_tensors_and_ops_are_found_by_name():
    parts = tf.split(tf.zeros([12]), 12, name="parts")
    found = get_tensors_by_names(["parts", "parts:10"])
    assert [each.name for each in found] == ["parts:0", "parts:10"]
    assert get_op_or_tensor_by_name("parts") == parts[0].op
    found = get_op_or_tensor_by_name(["parts:11", "parts"])
    assert [each.name for each in found] == ["parts:11", "parts"]
    for find in (lambda: get_tensors_by_names(["no"]), lambda: get_op_or_tensor_by_name("no:0")):
        with pytest.raises(KeyError):
            find()


def test_the_name_of_a_variable_means_its_value(session):
    scopes = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES]
    for i, key in enumerate(scopes):
        tf.get_variable(f"w{i}", initializer=float(i), use_resource=True, collections=[key])
    found = [*get_tensors_by_names(["w0", "w1:0"]), get_op_or_tensor_by_name("w1:0")]
    sess = session()
    tf.get_default_graph().finalize()
    assert sess.run(found) == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("version, number", [("1.2.1", 1.2), ("1.15.5", 1.9), ("2.21.0", 2.9)])
def test_version_numbers_compare_as_versions_do(monkeypatch, version, number):
    monkeypatch.setattr(tf, "__version__", version)
    assert get_tf_version_number() == number


def test_the_report_names_versions_and_what_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "lmdb", None)  # its import fails
    monkeypatch.setenv("TF_SETTING", "on")
    monkeypatch.setenv("TF_VAR_password", "secret")
    rows = dict(line.split(None, 1) for line in collect_env_info().splitlines())
    assert rows["tensorpack"] == tensorpack.__version__
    assert rows["numpy"] == np.__version__
    assert rows["lmdb"].startswith("not importable: ")
    assert rows["TF_SETTING"] == "on" and "TF_VAR_password" not in rows
