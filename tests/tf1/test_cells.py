"""The cells that stand for those of `tf.contrib.rnn` are the same as the real ones."""

import numpy as np
import pytest

from tensorpack.compat import is_tfv2
from tensorpack.compat import tfv1 as tf

if is_tfv2():
    pytest.skip("only TensorFlow 1 has the real ones", allow_module_level=True)

from tensorpack.tf1 import _cells


def results(cell_of):
    """Returns the variables' names and shapes, and outputs and state with fixed weights."""
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs = tf.constant(3 * np.random.RandomState(0).randn(4, 5, 3).astype("f"))
        outputs, state = tf.nn.dynamic_rnn(cell_of(), inputs, dtype=tf.float32)
        variables = sorted(tf.trainable_variables(), key=lambda each: each.name)
        sess.run(tf.global_variables_initializer())
        biases = [sess.run(v) for v in variables if "bias" in v.name or "b_" in v.name]
        rng = np.random.RandomState(1)
        for each in variables:
            each.load(rng.randn(*each.shape.as_list()), sess)
        values = sess.run([outputs, state])
    return {v.op.name: v.shape.as_list() for v in variables}, [*biases, values[0], *values[1]]


@pytest.mark.parametrize(
    "name, args",
    [
        ("LSTMBlockCell", {}),
        ("LSTMBlockCell", {"forget_bias": 0.5, "cell_clip": 0.7, "name": "mine"}),
        ("LSTMBlockCell", {"use_peephole": True, "cell_clip": 0.7}),
        ("GRUBlockCell", {}),
        ("GRUBlockCellV2", {"name": "mine"}),
    ],
)
def test_variables_and_results_are_those_of_the_real_cell(name, args):
    rnn = pytest.importorskip("tensorflow.contrib.rnn")
    real = results(lambda: getattr(rnn, name)(4, **args))
    ours = results(lambda: getattr(_cells, name)(4, **args))
    assert ours[0] == real[0]
    for one, other in zip(ours[1], real[1]):
        np.testing.assert_allclose(one, other, atol=1e-6)
