import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import DummyConstantInput, TensorInput
from tensorpack.tfutils.tower import TowerContext
from tensorpack.utils import logger
from tests.contracts.input_source import InputSourceContract

SIGNATURE = [tf.TensorSpec([2, 3], tf.float32, "image"), tf.TensorSpec([], tf.int32, "label")]


def zeros():
    return [tf.zeros([2, 3]), tf.zeros([2], tf.int32)]


class TestTensorInput(InputSourceContract):
    size = 7

    def make_source(self):
        return TensorInput(zeros, size=7)


class TestDummyConstantInput(InputSourceContract):
    def make_source(self):
        return DummyConstantInput([[2, 3], [2]])


def test_arrays_become_tensors():
    source = TensorInput(lambda: [np.ones([2, 3], np.float32), 1])
    source.setup(SIGNATURE)
    with tf.Session() as sess:
        assert sess.run(source.get_input_tensors()[1]) == 1


def test_the_function_is_called_for_each_tower():
    calls = []

    def get():
        calls.append(tf.get_default_graph().get_name_scope())
        return [tf.ones([2, 3]), tf.constant(1)]

    source = TensorInput(get)
    source.setup(SIGNATURE)
    assert calls == []
    for name in "tower0", "tower1":
        with TowerContext(name, is_training=False):
            source.get_input_tensors()
    assert calls == ["tower0", "tower1"]


@pytest.mark.parametrize("reads", [True, False])
def test_what_reads_tf_data_has_a_position_that_is_not_kept(reads):
    def get():
        numbers = tf.data.make_one_shot_iterator(tf.data.Dataset.range(9))
        image = tf.fill([2, 3], tf.cast(numbers.get_next(), tf.float32))
        return [image if reads else tf.ones([2, 3]), tf.constant(1)]

    source = TensorInput(get)
    (position,) = source.setup(SIGNATURE)
    source.get_input_tensors()
    position.before_train()
    assert bool(position.state_dict()) == reads


def test_dummies_are_zeros_of_that_name(monkeypatch):
    warned = []
    monkeypatch.setattr(logger, "warn", warned.append)  # as scripts do
    source = DummyConstantInput([[2, 3], []])
    assert warned == ["Using dummy input for debug!"]
    source.setup(SIGNATURE)
    with TowerContext("", is_training=True):
        image, label = source.get_input_tensors()
    with TowerContext("tower1", is_training=False):
        other = source.get_input_tensors()[0]
    assert (image.op.name, label.op.name) == ("dummy-image", "dummy-label")
    assert other.op.name == "tower1/dummy-image-tower1"
    with tf.Session() as sess:
        assert sess.run(image).tolist() == [[0.0] * 3] * 2
        assert sess.run(label) == 0
