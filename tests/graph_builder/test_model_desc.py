"""Models in both spellings come out the same."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import InputDesc, ModelDesc
from tensorpack.tfutils.tower import TowerContext


class Later(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None, 2], tf.float32, "x"), tf.TensorSpec([None], tf.int64, "label")]

    def build_graph(self, x, label):
        return tf.reduce_sum(x, name="cost")

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(tf.get_variable("learning_rate", []))


class Of2017(ModelDesc):
    def _get_inputs(self):
        return [InputDesc(tf.float32, [None, 2], "x"), InputDesc(tf.int64, [None], "label")]

    def _build_graph(self, inputs):
        x, _ = inputs
        if self.training:
            self.cost = tf.reduce_sum(x, name="cost")

    def _get_optimizer(self):
        return tf.train.GradientDescentOptimizer(0.1)


@pytest.mark.parametrize("kind", [Later, Of2017])
def test_signature_is_the_same_in_both_spellings(kind):
    model = kind()
    signature = model.get_input_signature()
    assert signature == [
        tf.TensorSpec([None, 2], tf.float32, "x"),
        tf.TensorSpec([None], tf.int64, "label"),
    ]
    assert model.get_input_signature() is signature
    assert model.input_names == ["x", "label"]
    assert model.get_inputs_desc()[0] == InputDesc(tf.float32, (None, 2), "x")


@pytest.fixture
def tensors():
    return tf.ones([3, 2]), tf.zeros([3], tf.int64)


def test_2017_cost_gets_the_regularisation_losses_and_predictors_have_none_left_over(tensors):
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(10.0))
    tf.get_variable("regularized", [], regularizer=lambda variable: tf.constant(4.0))
    model = Of2017()
    with TowerContext("", is_training=True):
        assert model.build_graph(list(tensors)) is None  # 2017's call, followed by one of:
        cost = model.get_cost()
    assert cost.op.name == "cost_with_regularizer"
    with tf.Session() as sess:
        assert sess.run(cost) == 20
    with TowerContext("towerp0", is_training=False):
        assert model.build_graph(*tensors) is None
    assert model.cost is None


def test_2017_model_without_a_cost_is_for_trainers_that_know_its_costs(tensors):
    model = Of2017()
    model._build_graph = lambda inputs: None
    with TowerContext("", is_training=True):
        assert model.build_graph(*tensors) is None


def test_2017_cost_with_its_gradients():
    class Weights(Of2017):
        def _build_graph(self, inputs):
            weights = tf.get_variable("weights", [2], initializer=tf.ones_initializer())
            tf.get_variable("unused", [])
            self.cost = tf.reduce_sum(inputs[0] * weights)

    model = Weights()
    with TowerContext("", is_training=True):
        model.build_graph([tf.constant([[1.0, 2.0], [3.0, 4.0]]), None])
        cost, grads = model.get_cost_and_grad()
    assert [var.op.name for _, var in grads] == ["weights"]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(cost) == 10
        assert sess.run(grads[0][0]).tolist() == [4, 6]


def test_optimizer_is_made_once_per_graph():
    model = Later()
    first = model.get_optimizer()
    assert model.get_optimizer() is first
    model.optimizer = lambda: 0.1
    with tf.Graph().as_default(), pytest.raises(TypeError, match="got float"):
        model.get_optimizer()


def test_placeholders_serve_as_inputs():
    model = Later()
    model.inputs = lambda: [tf.placeholder(tf.uint8, [None, 4], "image")]
    assert model.get_input_signature() == [tf.TensorSpec([None, 4], tf.uint8, "image")]
    assert tf.get_default_graph().get_operations() == []


def test_training_is_known_only_inside_a_tower():
    with pytest.raises(RuntimeError, match="only while a tower is built"):
        assert Later().training


@pytest.mark.parametrize("is_training", [True, False])
def test_training_may_be_set_and_is_then_the_models_own(tensors, is_training):
    """As in scripts for 0.9; whether a cost is asked for still depends on the tower alone."""

    class Sets(Of2017):
        def __init__(self):
            self.training = False

        def _build_graph(self, inputs):
            assert self.training is False
            self.training = "a placeholder"
            self.cost = tf.reduce_sum(inputs[0])

    model = Sets()
    with TowerContext("", is_training=is_training):
        cost = model.build_graph(*tensors)
    assert model.training == "a placeholder" and (cost is not None) == is_training


def test_input_desc_placeholders():
    desc = InputDesc(tf.float32, [None, 3], "x")
    with tf.name_scope("scope"):
        assert desc.build_placeholder("my_").name == "my_x:0"
    assert InputDesc(tf.int64, None, "any").build_placeholder().shape.ndims is None


def test_missing_overrides_are_named():
    with pytest.raises(NotImplementedError, match=r"ModelDesc must override inputs\(\)"):
        ModelDesc().get_input_signature()
    with pytest.raises(NotImplementedError, match=r"ModelDesc must override optimizer\(\)"):
        ModelDesc().get_optimizer()
