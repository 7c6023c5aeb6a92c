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
    computing = ComputeOptions("bf16")
    try:
        computing.check(computing.apply_to(get_default_sess_config()))
    except RuntimeError as error:
        pytest.skip(str(error))


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
