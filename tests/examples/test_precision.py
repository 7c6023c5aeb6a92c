"""The network of the example in bfloat16, against float32."""

import numpy as np
import pytest
from DQNModel import Model

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import TensorInput
from tensorpack.train import SimpleTrainer, TrainConfig
from tests.computing import need_bf16, ops_in, run_nodes
from tests.examples.small_dqn import make_config, small_catch

BATCH, STEPS = 16, 50
RNG = np.random.RandomState(0)
ARRAYS = [
    RNG.randint(256, size=(BATCH, 5, 42, 42)).astype(np.uint8),
    RNG.randint(4, size=BATCH),
    RNG.randint(-1, 2, size=BATCH).astype(np.float32),
    RNG.rand(BATCH) < 0.1,
]


def tensors():
    screens = tf.get_variable("screens", initializer=ARRAYS[0], trainable=False, use_resource=True)
    return [tf.identity(screens)] + [tf.constant(each) for each in ARRAYS[1:]]


def learn(**options):
    """Returns 50 costs, the nodes of an update, and the Q values of a predictor at the start."""
    with tf.Graph().as_default() as graph:
        graph.seed = 1
        model = Model(4, "Double", (42, 42), 4)
        config = TrainConfig(data=TensorInput(tensors), model=model, steps_per_epoch=1, **options)
        trainer = SimpleTrainer(config)
        trainer._setup()
        predict = trainer.get_predictor(["state"], ["Qvalue"])
        cost = graph.get_tensor_by_name("cost:0")
        with config.session_creator.create_session() as sess:
            predict.bind(sess)
            q = predict(np.moveaxis(ARRAYS[0][:, :4], 1, 3))[0]
            nodes = run_nodes(sess, [cost, trainer.train_op])[1]
            costs = [sess.run([cost, trainer.train_op])[0] for _ in range(STEPS)]
    return np.array(costs), nodes, q


@pytest.mark.slow
def test_bf16_learns_what_fp32_learns():
    need_bf16()
    exact = learn()
    costs, nodes, q = learn(precision="bf16")
    assert any("Conv2D" in op for op in ops_in(tf.bfloat16, nodes))
    learning = [each for each in nodes if each.name.startswith(("td_target", "huber_loss"))]
    assert learning and ops_in(tf.bfloat16, learning) == []  # where small differences count
    assert 0 < np.abs(q - exact[2]).max() < 0.03 * np.abs(exact[2]).max()
    assert exact[0][-1] < 0.5 * exact[0][0]
    # Adam at this rate swings from the fourth update on, and no two roundings swing alike.
    np.testing.assert_allclose(costs[:4], exact[0][:4], rtol=0.03)
    assert abs(costs[-20:].mean() - exact[0][-20:].mean()) < 0.05 * exact[0][0]


def test_the_flags_reach_the_session(log_dir):
    options = make_config(small_catch(), "--xla").session_creator.config.graph_options
    assert options.optimizer_options.global_jit_level == tf.OptimizerOptions.ON_2
