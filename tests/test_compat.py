"""Tests that compat names the installed TensorFlow and offers what the package builds on."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tensorpack import compat
from tests.checks import ROOT
from tests.helpers import eagerly


@pytest.mark.parametrize(
    "text, numbers",
    [
        ("1.15.5", (1, 15, 5)),
        ("2.22.0.dev2026", (2, 22, 0)),
        ("3.0", (3, 0, 0)),
    ],
)
def test_version_of_release_candidates_and_nightlies(monkeypatch, text, numbers):
    monkeypatch.setattr(compat.tfv1, "__version__", text)
    assert compat.tf_version() == numbers
    assert compat.is_tfv2() == (numbers[0] >= 2)


SESSION = """
import os
{first}
from tensorpack.compat import tfv1 as tf
with tf.Graph().as_default(), tf.Session() as sess:
    sess.run(tf.zeros([]) + 1)
print("level", os.environ.get("TF_CPP_MIN_LOG_LEVEL"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "first, level, quiet",
    [
        ("", "1", True),
        pytest.param(
            "os.environ['TF_CPP_MIN_LOG_LEVEL'] = '0'", "0", False, marks=pytest.mark.one_row
        ),
    ],
)
def test_tensorflow_tells_nothing_of_itself_unless_it_is_asked_to(first, level, quiet):
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    environ.pop("TF_CPP_MIN_LOG_LEVEL", None)
    done = subprocess.run(
        [sys.executable, "-c", SESSION.format(first=first)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environ,
        check=True,
    )
    told = ("cpu_feature_guard", "mlir_graph", "service.cc", "CPU Frequency")
    assert f"level {level}" in done.stdout
    assert not any(word in done.stdout for word in told) == quiet, done.stdout


COLLECTIONS = """
import gc
{first}
full = []
gc.callbacks.append(lambda phase, info: full.append(info["generation"] == 2))
before = gc.isenabled(), gc.get_freeze_count()
import tensorpack.compat
print(sum(full), before == (gc.isenabled(), gc.get_freeze_count()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["", "gc.disable()"])
def test_tensorflow_is_loaded_without_a_full_collection_and_the_collector_stays_as_it_was(first):
    done = subprocess.run(
        [sys.executable, "-c", COLLECTIONS.format(first=first)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert done.stdout.split() == [b"0", b"True"]


def raw(sess, fetches=(), targets=(), feeds=(), **options):
    return compat.make_raw_callable(sess, fetches, targets, feeds, **options)


@pytest.mark.parametrize("in_caller", [False, True])
def test_raw_callables_exist_and_run(in_caller):
    tf = compat.tfv1
    x = tf.placeholder(tf.float32, [])
    total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
    add = total.assign_add(x).op
    with tf.Session() as sess:
        sess.run(total.initializer)
        assert raw(sess, [x * 2], [add], [x], in_caller=in_caller)(np.float32(3)) == [6]
        assert raw(sess, [], [add], [x], in_caller=in_caller)(np.float32(4)) == []
        assert sess.run(total) == 7


@pytest.mark.parametrize("with_graphs_of_their_own", [False, True])
def test_a_loop_is_a_branch(with_graphs_of_their_own):
    tf = compat.tfv1
    in_body = []

    def body(i):
        in_body.append(compat.in_branch())
        return i + 1

    switch = {False: tf.disable_control_flow_v2, True: tf.enable_control_flow_v2}
    before = tf.control_flow_v2_enabled()
    switch[with_graphs_of_their_own]()
    try:
        tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])
    finally:
        switch[before]()
    assert set(in_body) == {True} and not compat.in_branch()


@pytest.mark.parametrize("of_graph, seed", [(None, 7), (0, 0)])
def test_a_seed_that_was_set_eagerly_is_kept(of_graph, seed, monkeypatch):
    tf, ended = compat.tfv1, []
    monkeypatch.setattr(tf, "disable_eager_execution", lambda: ended.append(True))
    with eagerly():
        tf.get_default_graph().seed = of_graph
        tf.set_random_seed(7)
        compat.end_eager_execution()
        tf.set_random_seed(None)
    compat.end_eager_execution()
    assert tf.get_default_graph().seed == seed and ended == [True]
