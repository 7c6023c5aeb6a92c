"""What the tests of layers share: running a tensor, images to feed, graphs to compare."""

import numpy as np

from tensorpack.compat import tfv1 as tf


def run(fetches, feed=None):
    """Initializes all variables of the default graph and returns the values."""
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches, feed)


def image(*shape, seed=0):
    """Random numbers as a constant float32 tensor, and as an array."""
    values = np.random.RandomState(seed).randn(*shape).astype(np.float32)
    return tf.constant(values), values


def variable_shapes():
    """Trainable variables of the default graph: name -> shape, in order of creation."""
    return {each.op.name: each.shape.as_list() for each in tf.trainable_variables()}


def normalize(values, axes, epsilon=1e-5):
    """The values with mean 0 and variance 1 over the axes."""
    mean = values.mean(axes, keepdims=True)
    return (values - mean) / np.sqrt(values.var(axes, keepdims=True) + epsilon)


def graph_of(build):
    """What `build()` adds to an empty graph, as something that can be compared."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        build()
        nodes = graph.as_graph_def().node
    return [str(node) for node in nodes]
