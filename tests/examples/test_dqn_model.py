"""The graph of the DQN model: variables, names, shape lines, target network, algorithms."""

import DQNModel
import numpy as np
import pytest
from DQNModel import Model, as_images

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.tower import TowerContext, TowerFunc

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
        return [tf.placeholder(each.dtype, each.shape) for each in self.tower_func.input_signature]


def names(variables):
    return [each.op.name for each in variables]


def test_variables_shapes_and_names_that_predictors_and_users_rely_on(lines):
    built = Built()
    assert lines == SHAPES + ["target/" + line for line in SHAPES]  # logged once
    assert names(tf.trainable_variables()) == VARIABLES
    assert sum(each.shape.num_elements() for each in tf.trainable_variables()) == 4045479
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


def test_the_copy_sets_every_target_variable_and_says_so(lines):
    built = Built()
    del lines[:]
    copy = built.model.update_target()
    assert copy.name == "update_target_network"
    assert lines == [f"target/{name} <- {name}" for name in VARIABLES]
    by_name = {each.op.name: each for each in tf.global_variables()}
    pairs = [(by_name["target/" + name], by_name[name]) for name in VARIABLES]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert not np.array_equal(*sess.run(pairs[0]))
        sess.run(copy)
        for target, online in sess.run(pairs):
            np.testing.assert_array_equal(target, online)


def test_update_target_comes_after_the_graph():
    with pytest.raises(RuntimeError, match="no target network yet"):
        Model(4).update_target()


def test_dueling_adds_value_and_centred_advantage():
    Built("Dueling", num_actions=3, frame_shape=(12, 12))
    assert names(tf.trainable_variables())[-4:] == ["fctV/W", "fctV/b", "fctA/W", "fctA/b"]
    biases = {each.op.name: each for each in tf.trainable_variables()}
    state = np.zeros([1, 12, 12, 4], np.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run([biases["fctV/b"].assign([10.0]), biases["fctA/b"].assign([1.0, 2.0, 6.0])])
        q = sess.run("towerp0/Qvalue:0", {"towerp0/state:0": state})
    np.testing.assert_allclose(q, [[8.0, 9.0, 13.0]], rtol=1e-5)


@pytest.fixture(params=[True, False], ids=["words", "transposed"])
def way(request, monkeypatch):
    """Which way the frames go, whatever the machine."""
    monkeypatch.setattr(DQNModel, "_words_are_faster", lambda: request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("count, history", [(5, 4), (4, 4), (9, 4), (4, 3), (3, 2), (2, 1)])
def test_values_are_those_of_the_first_and_last_frames(count, history):
    frames = np.random.RandomState(0).randint(0, 256, (3, count, 7, 9)).astype(np.uint8)
    frames[0, :, 0, 0], frames[0, :, 0, 1], frames[0, :, 0, 2] = 255, 128, 127  # signs and carries
    fed = tf.placeholder(tf.uint8, [None, count, 7, 9])
    images = as_images(fed, history)
    with tf.Session() as sess:
        first, last = sess.run(images, {fed: frames})
    channels = frames.transpose(0, 2, 3, 1)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, channels[..., :history])
    np.testing.assert_array_equal(last, channels[..., -history:])
    assert [each.shape.as_list() for each in images] == [[None, 7, 9, history]] * 2


@pytest.mark.parametrize("shape", [[2, 3, 8, 8], [2, None, 8, 8], [2, 8, 8]])
def test_refuses_frames_that_are_not_enough_or_not_counted(shape):
    with pytest.raises(ValueError, match="known N >= history=4, got shape"):
        as_images(tf.placeholder(tf.uint8, shape), 4)


def test_words_need_no_transposition(monkeypatch):
    monkeypatch.setattr(DQNModel, "_words_are_faster", lambda: True)
    as_images(tf.zeros([2, 5, 8, 8], tf.uint8), 4)
    types = {op.type for op in tf.get_default_graph().get_operations()}
    assert not types & {"Transpose", "StridedSlice"}


def test_a_gpu_transposes(monkeypatch):
    monkeypatch.setattr(DQNModel, "get_num_gpu", lambda: 1)
    as_images(tf.zeros([2, 5, 8, 8], tf.uint8), 4)
    assert "Transpose" in {op.type for op in tf.get_default_graph().get_operations()}
