"""Rewrites happen where they are asked for, and nowhere else.

What a machine can do is tried on it, by TensorFlow's own partition graphs, so the tests that need a
rewrite skip where there is none.
"""

import numpy as np
import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.models import Conv2D, FullyConnected
from tensorpack.tfutils import precision
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.tfutils.precision import ComputeOptions
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tests.computing import compiled, need_bf16, ops_in, run_nodes

on_tf2 = pytest.mark.skipif(not is_tfv2(), reason="TensorFlow 1 has no bfloat16 on CPUs")
BATCH = np.random.RandomState(0).rand(16, 12, 12, 4).astype(np.float32)


@pytest.fixture
def has_bf16():
    need_bf16()


def build():
    """A small network; returns its cost, its gradients, and the op that trains it."""
    image = tf.constant(BATCH) + tf.get_variable("zero", initializer=0.0, trainable=False)
    x = Conv2D("conv0", image, 8, 3, activation=tf.nn.relu)
    x = Conv2D("conv1", x, 16, 3, activation=tf.nn.relu)
    x = FullyConnected("fc0", x, 32, activation=tf.nn.relu)
    x = FullyConnected("fc1", x, 4)
    labels = tf.constant(np.arange(16) % 4, tf.int32)
    cost = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))
    optimizer = tf.train.AdamOptimizer(1e-3)
    grads = optimizer.compute_gradients(cost)
    return cost, [each for each, _ in grads], optimizer.apply_gradients(grads)


def run(computing, steps):
    """Returns the costs of so many steps, the gradients of the first, and the nodes that ran."""
    config = computing.apply_to(get_default_sess_config())
    with tf.Graph().as_default() as graph:
        graph.seed = 1
        with computing.scope():
            cost, grads, step = build()
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            first, nodes = run_nodes(sess, [cost] + grads)
            costs = [sess.run([cost, step])[0] for _ in range(steps)]
    return costs, first, nodes


def distance(exact, rounded):
    return np.linalg.norm(rounded - exact) / np.linalg.norm(exact)


def test_bf16_is_what_convolutions_and_products_run_in(has_bf16):
    in_bf16 = ops_in(tf.bfloat16, run(ComputeOptions("bf16"), 0)[2])
    for kind in "Conv2D", "Conv2DBackpropFilter", "MatMul", "Cast":
        assert any(op.endswith(kind) for op in in_bf16), kind


@pytest.mark.parametrize("asked", [None, "fp32"])
def test_nothing_runs_in_bf16_otherwise(asked):
    nodes = run(ComputeOptions(asked), 0)[2]
    assert ops_in(tf.bfloat16, nodes) == ops_in(tf.float16, nodes) == []


@on_tf2
def test_fp32_undoes_what_a_config_asks_for():
    config = ComputeOptions("bf16").apply_to(tf.ConfigProto())
    rewrites = ComputeOptions("fp32").apply_to(config).graph_options.rewrite_options
    assert rewrites.auto_mixed_precision_onednn_bfloat16 == rewrites.OFF
    rewrites = ComputeOptions(None).apply_to(config).graph_options.rewrite_options
    assert rewrites.auto_mixed_precision_onednn_bfloat16 == rewrites.ON


def test_bf16_costs_and_gradients_are_near_those_of_fp32(has_bf16):
    """bfloat16 has 8 bits of precision, 0.4 % of a number; what is added up is added in float32."""
    costs, first, _ = run(ComputeOptions("fp32"), 50)
    costs16, first16, _ = run(ComputeOptions("bf16"), 50)
    assert abs(first16[0] - first[0]) < 0.01 * abs(first[0])
    pairs = list(zip(first[1:], first16[1:]))
    joint = [np.concatenate([np.ravel(each) for each in side]) for side in zip(*pairs)]
    assert 0 < distance(*joint) < 0.03
    # those of biases are sums of numbers that nearly cancel each other
    assert all(0 < distance(*each) < 0.15 for each in pairs)
    assert costs[-1] < 0.8 * costs[0]
    np.testing.assert_allclose(costs16, costs, atol=0.02 * costs[0])


@pytest.mark.slow
def test_xla_computes_the_same():
    costs, first, nodes = run(ComputeOptions(), 20)
    costs_compiled, first_compiled, compiled_nodes = run(ComputeOptions(xla=True), 20)
    assert compiled(compiled_nodes) and not compiled(nodes)
    for expected, found in zip(first, first_compiled):  # the same initial values, too
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(costs_compiled, costs, rtol=1e-3)


def test_fp16_needs_a_gpu():
    if tf.test.is_gpu_available():
        pytest.skip("there is one")
    creator = NewSessionCreator(precision="fp16")
    with pytest.raises(RuntimeError, match=r"precision='fp16' has no effect here: .* sees no GPU"):
        creator.create_session()


@pytest.mark.skipif(is_tfv2(), reason="TensorFlow 2 has it")
def test_bf16_on_tensorflow_1_is_refused_at_once():
    with pytest.raises(RuntimeError, match="needs TensorFlow 2: TensorFlow 1.*newer TensorFlow"):
        NewSessionCreator(precision="bf16")


@on_tf2
def test_a_cpu_that_emulates_bf16_is_warned_of(monkeypatch, tmp_path, log_lines):
    cpu_info = tmp_path / "cpuinfo"
    monkeypatch.setattr(precision, "_CPU_INFO", str(cpu_info))
    for flags, warned in ("fpu avx512f", 1), ("fpu avx512f avx512_bf16", 0), (None, 0):
        if flags is None:
            cpu_info.unlink()
        else:
            cpu_info.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n")
        del log_lines[:]
        NewSessionCreator(precision="bf16").create_session().close()
        assert len([1 for level, text in log_lines if "by way of float32" in text]) == warned


def test_a_users_config_is_kept_and_not_changed():
    config = tf.ConfigProto(inter_op_parallelism_threads=3)
    before = config.SerializeToString()
    creator = NewSessionCreator(config=config, xla=True)
    assert config.SerializeToString() == before
    assert creator.config.inter_op_parallelism_threads == 3
    assert creator.config.graph_options.optimizer_options.global_jit_level == 2
