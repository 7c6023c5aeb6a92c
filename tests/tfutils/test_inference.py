"""A session for inference has the weights that its towers need, or does not open."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.predict import PredictConfig
from tensorpack.tfutils.inference import open_session
from tensorpack.tfutils.sessinit import DictRestore, SessionInit


def towers(session_init):
    """Returns a config, and inputs and outputs of two towers that share their only weight."""
    signature = [tf.TensorSpec([], tf.float32, "x")]
    config = PredictConfig(
        tower_func=lambda x: x,
        input_signature=signature,
        output_names=["x"],
        session_init=session_init,
    )
    factor = tf.get_variable("factor", [])
    inputs = [tf.placeholder(tf.float32, [], name) for name in ("a", "b")]
    return config, inputs, [tf.multiply(each, factor, name="out") for each in inputs]


def test_the_weights_are_loaded():
    config, inputs, outputs = towers(DictRestore({"factor": 3.0}))
    with open_session(config, inputs, outputs) as sess:
        assert sess.run(outputs, dict(zip(inputs, [1, 2]))) == [3, 6]


def test_a_missing_weight_closes_the_session_unless_it_is_not_needed():
    opened = []

    class Nothing(SessionInit):
        missing = frozenset(["factor"])

        def _run_init(self, sess):
            opened.append(sess)

    config, inputs, outputs = towers(Nothing())
    with pytest.raises(ValueError, match="^out:0, out_1:0 cannot be computed: .* for factor. Give"):
        open_session(config, inputs, outputs)
    with pytest.raises(RuntimeError, match="closed"):
        opened[0].run([])
    with open_session(config, outputs, outputs) as sess:
        assert sess.run(outputs[0], {outputs[0]: 5}) == 5
