"""The graph of the DQN model: variables, names, shape lines, target network, algorithms."""

import numpy as np
import pytest
from algorithm import Algorithm
from DQNModel import Model

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.tower import TowerContext, TowerFunc
from tests.tiers import first_fast

SHAPES = """
conv0 input: [None, 84, 84, 4]
conv0 output: [None, 21, 21, 32]
conv1 input: [None, 21, 21, 32]
conv1 output: [None, 11, 11, 64]
conv2 input: [None, 11, 11, 64]
conv2 output: [None, 11, 11, 64]
fc0 input: [None, 11, 11, 64]
fc0 output: [None, 512]
fct input: [None, 512]
fct output: [None, 4]
""".split("\n")[1:-1]

VARIABLES = [
    f"{layer}/{name}"
    for layer, names in [
        ("conv0", ["W", "b", "alpha"]),
        ("conv1", ["W", "b", "alpha"]),
        ("conv2", ["W", "b", "alpha"]),
        ("fc0", ["W", "b"]),
        ("fct", ["W", "b"]),
    ]
    for name in names
]


class Built:
    """A model with its training tower and a predictor tower, and a session over both."""

    def __init__(self, algo="Double", num_actions=4, frame_shape=(84, 84)):
        tf.set_random_seed(1)
        self.model = Model(num_actions, algo, frame_shape=frame_shape)
        self.tower_func = TowerFunc(self.model.build_graph, self.model.get_input_signature())
        with TowerContext("", is_training=True):
            self.inputs = self._placeholders()
            self.cost = self.tower_func(*self.inputs)
        with TowerContext("towerp0", is_training=False):
            self.tower_func(*self._placeholders())

    def _placeholders(self):
        return [tf.placeholder(spec.dtype, spec.shape) for spec in self.tower_func.input_signature]


def names(variables):
    return [var.op.name for var in variables]


def test_variables_shapes_and_names_that_predictors_and_users_rely_on(lines):
    built = Built()
    assert lines == SHAPES + ["target/" + line for line in SHAPES]  # logged once
    assert names(tf.trainable_variables()) == VARIABLES
    assert sum(var.shape.num_elements() for var in tf.trainable_variables()) == 4045479
    assert built.cost.op.name == "cost"
    graph = tf.get_default_graph()
    state = graph.get_tensor_by_name("state:0")
    assert (state.dtype, state.shape.as_list()) == (tf.float32, [None, 84, 84, 4])
    assert graph.get_tensor_by_name("Qvalue:0").shape.as_list() == [None, 4]
    for name in ["predict_reward:0", "towerp0/state:0", "towerp0/Qvalue:0"]:
        graph.get_tensor_by_name(name)
    # a predictor tower ends at its values
    assert not [op for op in graph.get_operations() if op.name.startswith("towerp0/target")]


def test_state_is_the_first_frames_and_feeding_it_gives_the_same_values():
    built = Built()
    frames = np.random.RandomState(0).randint(0, 256, (3, 5, 84, 84)).astype(np.uint8)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        state, q = sess.run(["state:0", "Qvalue:0"], {built.inputs[0]: frames})
        np.testing.assert_array_equal(state, frames[:, :4].transpose(0, 2, 3, 1))
        predicted = sess.run("towerp0/Qvalue:0", {"towerp0/state:0": state})
    np.testing.assert_allclose(predicted, q, rtol=1e-4, atol=1e-5)


NOISY = Algorithm(noisy=True, network="dopamine")


def test_noise_is_for_acting_and_not_for_evaluations():
    built = Built(NOISY, frame_shape=(12, 12))
    assert built.model.acting_output == "Qnoisy" and Model(4).acting_output == "Qvalue"
    sigmas = [name for name in names(tf.trainable_variables()) if "_sigma" in name]
    assert sigmas == ["fc0_sigma/W", "fc0_sigma/b", "fct_sigma/W", "fct_sigma/b"]
    states = np.random.RandomState(0).randint(0, 256, (2, 1, 12, 12, 4))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())

        def values(state, name):
            return sess.run(f"towerp0/{name}:0", {"towerp0/state:0": state})[0]

        noise = [values(state, "Qnoisy") - values(state, "Qvalue") for state in states]
        np.testing.assert_array_equal(values(states[0], "Qvalue"), values(states[0], "Qvalue"))
        again = values(states[0], "Qnoisy") - values(states[0], "Qvalue")
        sess.run(tf.train.get_global_step().assign_add(1))
        later = values(states[0], "Qnoisy") - values(states[0], "Qvalue")
    np.testing.assert_array_equal(again, noise[0])  # so that a run can be repeated
    assert np.abs(noise).min() > 0
    assert not np.allclose(noise[0], noise[1], rtol=0.1)
    assert not np.allclose(noise[0], later, rtol=0.1)


@pytest.mark.parametrize("learns", first_fast(["values", "c51", "qr", "iqn"]))
def test_a_predictor_alone_has_the_weights_of_the_training(learns):
    built = Built(NOISY._replace(learns=learns, atoms=0), frame_shape=(12, 12))
    learned = names(tf.trainable_variables())
    with tf.Graph().as_default():
        with TowerContext("", is_training=False):
            built.model.build_graph(*built._placeholders())
        assert sorted(names(tf.global_variables())) == sorted(learned)
        q = tf.get_default_graph().get_tensor_by_name("Qvalue:0")
        assert q.shape.as_list() == [None, 4]
