"""Towers share variables, keep out of each other's names, and are found again."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import tower
from tensorpack.tfutils.tower import (
    BaseTowerContext,
    TowerContext,
    TowerFunc,
    TowerTensorHandle,
    TowerTensorHandles,
    get_current_tower_context,
)

SPEC = [tf.TensorSpec([None, 2], tf.float32, "x")]


def dense(x):
    weight = tf.get_variable("weight", [2, 3])
    tf.add_to_collection(tf.GraphKeys.SUMMARIES, tf.constant(0))
    return tf.matmul(x, weight, name="out")


def test_context_is_known_inside_only_and_left_after_an_error():
    assert get_current_tower_context() is None
    with TowerContext("", is_training=True) as context:
        assert get_current_tower_context() is context
        assert context.is_training and context.is_main_training_tower and context.has_own_variables
    with pytest.raises(ZeroDivisionError):
        with TowerContext("towerp0", is_training=False):
            raise ZeroDivisionError
    assert get_current_tower_context() is None
    assert tf.get_variable_scope().reuse is False
    assert tf.add(1, 1, name="plain").name == "plain:0"


def test_towers_share_variables_and_keep_their_own_names():
    function = TowerFunc(dense, SPEC)
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with TowerContext("", is_training=True):
        function(x)
    with TowerContext("towerp0", is_training=False):
        function(x)
    assert [var.op.name for var in tf.trainable_variables()] == ["weight"]
    assert isinstance(function.towers, TowerTensorHandles)
    assert function.towers[0].get_tensor("out").name == "out:0"
    assert function.towers["towerp0"]["out"].name == "towerp0/out:0"
    assert function.towers["towerp0"].get_tensor("x") is x
    assert function.towers.training()[0].get_variable("weight") is tf.trainable_variables()[0]
    assert [tower.ns_name for tower in function.towers.inference()] == ["towerp0"]
    # only the main training tower adds summaries
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 1


def test_layers_without_a_name_share_their_variables():
    def unnamed(x):
        with tf.variable_scope(None, default_name="layer"):
            dense(x)
        with tf.variable_scope(None, default_name="layer"):
            tf.get_variable("bias", [3])

    for is_training, name in (True, ""), (False, "towerp0"), (False, "towerp1"):
        with TowerContext(name, is_training=is_training):
            unnamed(tf.zeros([1, 2]))
    assert [var.op.name for var in tf.global_variables()] == ["layer/weight", "layer_1/bias"]


def test_an_unnamed_inference_tower_makes_its_variables():
    with TowerContext("", is_training=False):
        dense(tf.zeros([1, 2]))
    assert [var.op.name for var in tf.global_variables()] == ["weight"]


def test_a_sharing_tower_may_not_make_variables():
    with pytest.raises(RuntimeError, match="created stray"):
        with TowerContext("towerp0", is_training=False):
            with tf.name_scope(None):
                tf.Variable(1.0, name="stray")


def test_towers_do_not_nest_and_a_name_can_be_used_once():
    context = TowerContext("towerp0", is_training=False)
    with TowerContext("", is_training=True), pytest.raises(RuntimeError, match="leave that cont"):
        context.__enter__()
    with context:
        tf.constant(0)
    with pytest.raises(RuntimeError, match="exists already"):
        TowerContext("towerp0", is_training=False).__enter__()


def test_the_positions_of_the_later_spelling():
    with TowerContext("tower0", True, "replica") as context:
        dense(tf.zeros([1, 2]))
    assert (context.index, context.vs_name) == (0, "replica")
    assert context.filter_vars_by_vs_name(varlist=tf.global_variables())[0].op.name == (
        "replica/weight"
    )
    assert TowerContext("tower1", True, 1, "replica").index == 1
    assert BaseTowerContext("tower1", "replica").vs_name == "replica"
    assert tower.TrainTowerContext("tower1", "replica", 1, total=2).index == 1
    assert not tower.PredictTowerContext("test").is_training


def test_a_context_may_be_made_in_another_graph():
    context = TowerContext("towerp0")
    assert (context.name, context.is_training, context.has_own_variables) == ("towerp0", 0, 0)
    with tf.Graph().as_default() as graph, context as entered:
        assert entered is context is get_current_tower_context() and context.graph is graph


def test_a_handle_takes_both_names_of_its_arguments():
    with TowerContext("tower0", is_training=True) as context:
        summary = tf.constant(0)
        tf.add_to_collection("mine", summary)
    handle = TowerTensorHandle(ctx=context, input=[summary], output="cost")
    assert (handle.input, handle.output) == (handle.inputs, handle.outputs) == ([summary], "cost")
    assert handle.get_collection("mine") == handle.get_collection(name="mine") == [summary]
    with pytest.raises(TypeError, match="both 'name' and 'key'"):
        handle.get_collection(key="mine", name="mine")


def test_a_tower_function_says_what_is_wrong_with_a_call():
    function, x = TowerFunc(dense, SPEC), tf.zeros([1, 2])
    with pytest.raises(RuntimeError, match="inside of a TowerContext"):
        function(x)
    with pytest.raises(ValueError, match="a name of its own, got .'x', 'x'"):
        TowerFunc(dense, [tf.TensorSpec([2], tf.float32, "x")] * 2)


@pytest.mark.parametrize(
    "name, meant",
    [("ouut", "'out'"), ("last", "'scope/last'"), ("xx", "'x'")],
)
def test_a_name_like_that_of_a_tensor_is_suggested(name, meant):
    def tower(x):
        with tf.name_scope("scope"):
            tf.identity(x, "last")
        return dense(x)

    function = TowerFunc(tower, SPEC)
    with TowerContext("towerp0", is_training=False, vs_name="own"):
        function(tf.placeholder(tf.float32, [None, 2]))
    with pytest.raises(KeyError, match=f"no tensor 'towerp0/{name}.*Did you mean {meant}.*: x:0"):
        function.towers[0].get_tensor(name)
