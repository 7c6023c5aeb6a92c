"""Tests of summaries: the moving average, exact tags, and who may add them."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.summary import (
    MOVING_SUMMARY_OPS_KEY,
    add_activation_summary,
    add_moving_summary,
    add_param_summary,
    add_tensor_summary,
    create_histogram_summary,
    create_scalar_summary,
)
from tensorpack.tfutils.tower import TowerContext


def values_of(serialized):
    """Tag -> simple value of a serialised summary; None for a histogram."""
    values = tf.Summary.FromString(serialized).value
    return {v.tag: v.simple_value if v.HasField("simple_value") else None for v in values}


def collected_tags(session):
    merged = tf.summary.merge(tf.get_collection(tf.GraphKeys.SUMMARIES))
    return values_of(session.run(merged))


def reference_average(numbers, decay):
    biased = 0.0
    for number in numbers:
        biased = decay * biased + (1 - decay) * number
    return biased / (1 - decay ** len(numbers))


def test_moving_average_follows_its_formula_and_has_the_exact_tag(session):
    x = tf.placeholder(tf.float32, [], name="model/cost")
    (average,) = add_moving_summary(x, decay=0.9)
    update = tf.get_collection(MOVING_SUMMARY_OPS_KEY)
    sess = session()
    assert sess.run(average) == 0
    seen = []
    for number in [3.0, 5.0, -1.0]:
        sess.run(update, {x: number})
        seen.append(number)
        expected = reference_average(seen, 0.9)
        np.testing.assert_allclose(sess.run(average), expected, rtol=1e-5)
        np.testing.assert_allclose(collected_tags(sess)["model/cost"], expected, rtol=1e-5)
    for number in [float("nan"), 1.0]:
        sess.run(update, {x: number})
    assert np.isnan(sess.run(average))


def test_a_run_that_updates_an_average_reads_it_as_it_was_before(session):
    x = tf.placeholder(tf.float32, [], name="cost")
    (average,) = add_moving_summary(x, decay=0.5)
    (update,) = tf.get_collection(MOVING_SUMMARY_OPS_KEY)
    sess = session()
    last = 0.0
    for number in range(1, 200):
        assert sess.run([update, average], {x: number})[1] == last
        last = sess.run(average)
        assert last == np.float32(last) and last > number - 2


def test_moving_average_keeps_one_saved_untrainable_variable_each(session):
    pair = tf.unstack(tf.constant([3.0, 4.0]), name="pair")
    add_moving_summary(tf.constant(2, name="size"), [tf.constant(1.0, name="a"), pair], decay=0.5)
    names = ["size", "a", "pair", "pair_1"]
    assert [v.op.name for v in tf.global_variables()] == ["EMA/" + each for each in names]
    assert tf.trainable_variables() == []
    assert len(tf.get_collection(MOVING_SUMMARY_OPS_KEY)) == 4
    sess = session()
    sess.run(tf.get_collection(MOVING_SUMMARY_OPS_KEY))
    assert collected_tags(sess) == dict(zip(names, [2.0, 1.0, 3.0, 4.0]))


def test_moving_average_leaves_names_reuse_and_arguments_alone():
    tensors = [tf.constant(1.0, name="x")]
    with tf.variable_scope("scope"):
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            y = tf.constant(1.0, name="y")
            add_moving_summary(tensors, y)
    assert [t.op.name for t in tensors] == ["x"]
    assert [v.op.name for v in tf.global_variables()] == ["EMA/x", "EMA/" + y.op.name]
    assert tf.constant(0, name="summary").op.name == "summary"


def test_second_average_of_a_tensor_is_the_first():
    x = tf.constant(1.0, name="x")
    assert add_moving_summary(x)[0] is add_moving_summary(v=x)[0]
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 1
    with pytest.raises(ValueError, match="'x' has a moving average"):
        add_moving_summary(x, decay=0.5)


def test_moving_average_goes_to_the_collections_asked_for():
    add_moving_summary(tf.constant(1.0, name="x"), collection="mine", summary_collections=["s"])
    assert len(tf.get_collection("mine")) == len(tf.get_collection("s")) == 1
    assert not tf.get_collection(MOVING_SUMMARY_OPS_KEY)
    assert not tf.get_collection(tf.GraphKeys.SUMMARIES)


def test_moving_average_refuses_other_than_scalars():
    with pytest.raises(ValueError, match="vector:0"):
        add_moving_summary(tf.placeholder(tf.float32, [1], name="vector"))


def test_only_the_main_training_tower_is_summarised(session):
    with TowerContext("tower0", is_training=True):
        assert len(add_moving_summary(tf.constant(1.0, name="cost"))) == 1
        tf.get_variable("W", [2])
        add_param_summary(("W", ["rms"]))
    before = len(tf.get_default_graph().get_operations())
    with TowerContext("tower1", is_training=True, index=1):
        cost = tf.constant(1.0, name="cost")
        assert add_moving_summary(cost) == []
        add_param_summary(("W", ["mean"]))
        add_tensor_summary(cost, ["scalar"])
    assert len(tf.get_default_graph().get_operations()) == before + 1
    assert set(collected_tags(session())) == {"cost", "param-summary/W-rms"}


def test_tags_are_exact_even_when_given_twice(session):
    create_scalar_summary("a tag", 1)
    create_scalar_summary(name="a tag", v=2.5)
    create_histogram_summary("a tag", [1.0, 2.0])
    sess = session()
    run = [values_of(sess.run(each)) for each in tf.get_collection(tf.GraphKeys.SUMMARIES)]
    assert run == [{"a tag": 1.0}, {"a tag": 2.5}, {"a tag": None}]


def test_param_summary_has_every_type_under_its_tag(session):
    with tf.variable_scope("conv0"):
        tf.get_variable("W", initializer=[3.0, 0.0, -4.0, 0.0])
        tf.get_variable("b", initializer=2.0)
        tf.get_variable("frozen", initializer=2.0, trainable=False)
    add_param_summary(
        (".*/W", ["histogram", "rms", "mean", "sparsity"]), ("conv0/(b|frozen)", ["scalar"])
    )
    assert collected_tags(session()) == {
        "param-summary/conv0/W-histogram": None,
        "param-summary/conv0/W-rms": 2.5,
        "param-summary/conv0/W-mean": -0.25,
        "param-summary/conv0/W-sparsity": 0.5,
        "param-summary/conv0/b-scalar": 2.0,
    }


def test_param_summary_matches_whole_names_and_says_when_nothing_does(log_lines):
    tf.get_variable("conv0/W", [1])
    add_param_summary(("W", ["rms"]))
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == []
    assert [level for level, text in log_lines if "'W'" in text] == ["warn"]


def test_activation_summary_of_a_layer(session, log_lines):
    x = tf.constant([[3.0, 0.0], [-4.0, 0.0]], name="fc/output")
    add_activation_summary(x)
    add_activation_summary(x, types=["mean"], name="other")
    add_activation_summary(tf.constant([1.0], name="vector"))
    assert collected_tags(session()) == {
        "activation-summary/fc/output-sparsity": 0.5,
        "activation-summary/fc/output-rms": 2.5,
        "activation-summary/fc/output-histogram": None,
        "activation-summary/other-mean": -0.25,
    }
    assert [level for level, text in log_lines if "vector" in text] == ["warn"]


def test_a_string_after_the_activation_is_its_name(session):
    add_activation_summary(tf.ones([1, 2]), "foo", collections=["mine"])
    sess = session()
    tags = {tag for each in tf.get_collection("mine") for tag in values_of(sess.run(each))}
    assert tags == {f"activation-summary/foo-{kind}" for kind in ("sparsity", "rms", "histogram")}
    for name in ("foo", None):
        with pytest.raises(TypeError, match=r"types=\['mean'\]"):
            add_activation_summary(tf.ones([1, 2]), "mean", name)


@pytest.mark.parametrize("x, mean", [([1, 2], 1.5), (np.full([100000], 0.5, np.float16), 0.5)])
def test_statistics_are_computed_in_float32(session, x, mean):
    add_tensor_summary(tf.constant(x), ["mean"], name="x", collections=["mine"])
    (summary,) = tf.get_collection("mine")
    assert values_of(session().run(summary)) == {"x-mean": mean}


@pytest.mark.parametrize("use_resource", [True, False])
def test_a_variable_keeps_its_name(use_resource, session):
    with tf.variable_scope("model", use_resource=use_resource):
        rate = tf.get_variable("rate", initializer=0.5, trainable=False)
    with TowerContext("tower0", is_training=True), tf.variable_scope("", use_resource=use_resource):
        mine = tf.Variable(0.25, trainable=False, name="mine")
        add_moving_summary(rate, [mine], decay=0.5)
        add_tensor_summary(rate, ["scalar"])
        pair = tf.get_variable("pair", initializer=[[3.0, -4.0]])
        add_activation_summary(pair, types=["mean"])
    sess = session()
    sess.run(tf.get_collection(MOVING_SUMMARY_OPS_KEY))
    assert collected_tags(sess) == {
        "model/rate": 0.5,
        "mine": 0.25,
        "model/rate-scalar": 0.5,
        "activation-summary/pair-mean": -0.5,
    }
