"""Says what this machine computes in, and what of a graph was computed how."""

import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.tfutils.precision import ComputeOptions


def need_bf16():
    """Skips the test where TensorFlow computes nothing in bfloat16."""
    if not is_tfv2():
        pytest.skip("TensorFlow 1 has no bfloat16 on CPUs")
    config = ComputeOptions("bf16").apply_to(get_default_sess_config())
    with tf.Graph().as_default(), tf.Session(config=config) as sess:
        x = tf.get_variable("x", initializer=tf.ones([64, 64]))
        sess.run(x.initializer)
        product = tf.nn.relu(tf.matmul(tf.nn.relu(tf.matmul(x, x)), x))
        if not ops_in(tf.bfloat16, run_nodes(sess, product)[1]):
            pytest.skip("TensorFlow leaves all in float32 here: no AVX-512, or no oneDNN")


def run_nodes(sess, fetches, feed=None):
    """Runs something; returns its values, and the nodes that TensorFlow made of its graph."""
    options, metadata = tf.RunOptions(output_partition_graphs=True), tf.RunMetadata()
    values = sess.run(fetches, feed, options, metadata)
    return values, [node for each in metadata.partition_graphs for node in each.node]


def ops_in(dtype, nodes):
    """The kinds of the nodes that have to do with this dtype."""
    enum = dtype.as_datatype_enum
    return [each.op for each in nodes if any(a.type == enum for a in each.attr.values())]


def compiled(nodes):
    """Whether XLA has compiled any of the nodes."""
    return any("Xla" in each.op for each in nodes)
