"""Tests of custom getters: what get_variable gives, and that no scope changes."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.models import BatchNorm
from tensorpack.tfutils.tower import TowerContext
from tensorpack.tfutils.varreplace import (
    custom_getter_scope,
    freeze_get_variable,
    freeze_variables,
    remap_get_variable,
    remap_variables,
    replace_get_variable,
)


def test_getter_is_called_inside_the_block_only_and_leaves_scopes_alone():
    asked = []

    def custom(getter, name, *args, **kwargs):
        asked.append(name)
        return getter(name, *args, **kwargs)

    with tf.variable_scope("a"), tf.name_scope("n"):
        with custom_getter_scope(custom):
            v = tf.get_variable("v", [])
            op = tf.constant(0, name="op")
        tf.get_variable("w", [])
    assert asked == ["a/v"]
    assert (v.op.name, op.op.name) == ("a/v", "a/n/op")


@pytest.mark.parametrize("block", [freeze_variables, lambda: remap_variables(lambda v: v)])
def test_layers_after_the_block_have_other_names_than_those_in_it(block):
    def layer():
        with tf.variable_scope(None, "layer"):
            return tf.get_variable("w", [])

    with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
        layer()
        with block(), block():
            layer()
        with pytest.raises(KeyError), block():
            raise KeyError
        layer()
    names = [f"net/{each}/w" for each in ("layer", "layer_1", "layer_2")]
    assert [v.op.name for v in tf.global_variables()] == names


def test_remapped_variables_are_passed_on_and_the_inner_getter_asks_the_outer_one(session):
    with remap_variables(lambda v: v * 2), tf.variable_scope("s"):
        doubled = tf.get_variable("v", initializer=3.0)
        with remap_variables(lambda v: v + 1):
            more = tf.get_variable("w", initializer=4.0)
    assert session().run([*tf.trainable_variables(), doubled, more]) == [3, 4, 6, 9]


def test_frozen_variables_get_no_gradient_but_stay_in_the_collection():
    with freeze_variables():
        frozen = tf.get_variable("frozen", initializer=1.0)
    free = tf.get_variable("free", initializer=1.0)
    assert [v.op.name for v in tf.trainable_variables()] == ["frozen", "free"]
    assert tf.gradients(frozen * free, tf.trainable_variables())[0] is None


@pytest.mark.parametrize("skip_collection", [False, True])
def test_statistics_inside_of_frozen_layers_are_still_updated(skip_collection):
    with TowerContext("", is_training=True), freeze_variables(True, skip_collection):
        BatchNorm("bn", tf.placeholder(tf.float32, [None, 3]))
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    assert {each.op.name for each in tf.global_variables()} == {
        *["bn/gamma", "bn/beta", "bn/mean/EMA", "bn/variance/EMA"]
    }


def test_variables_can_be_kept_out_of_the_collection_and_trained_by_hand():
    with freeze_variables(stop_gradient=False, skip_collection=True):
        frozen = tf.get_variable("frozen", initializer=1.0)
    assert tf.trainable_variables() == []
    assert tf.global_variables() == [frozen] == tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)
    assert tf.gradients(frozen * 2.0, frozen) != [None]


def test_the_names_of_2017():
    with replace_get_variable(fn=lambda getter, *args, **kwargs: getter(*args, **kwargs) * 3.0):
        tripled = tf.get_variable("tripled", initializer=1.0)
    with freeze_get_variable(), remap_get_variable(lambda v: v * 2.0):
        doubled = tf.get_variable("doubled", initializer=1.0)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run([tripled, doubled]) == [3.0, 2.0]
    gradients = tf.gradients(tripled * doubled, tf.trainable_variables())
    assert [each is None for each in gradients] == [False, True]
