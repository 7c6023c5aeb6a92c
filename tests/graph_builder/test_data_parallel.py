"""Towers are built under their scopes and devices, and their variables correspond."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import DataParallelBuilder
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.tfutils.tower import TowerTensorHandle, get_current_tower_context
from tensorpack.tfutils.variables import replicas

DEVICES = ["/device:CPU:0", "/device:CPU:1"]


def names(key):
    return [member.op.name for member in tf.get_collection(key)]


def build(func, **options):
    return DataParallelBuilder.call_for_each_tower([0, 1], func, devices=DEVICES, **options)


def tower():
    """A weight, an untrained counter, a loss of each kind, a summary and an update."""
    weight = tf.get_variable("fc/W", [2], initializer=tf.random_normal_initializer())
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer(), trainable=False)
    tf.add_to_collection(tf.GraphKeys.LOSSES, tf.nn.l2_loss(weight, name="loss"))
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(counter, 1))
    add_moving_summary(tf.reduce_sum(weight, name="size"))
    return weight, tf.trainable_variables(), tf.get_collection(tf.GraphKeys.LOSSES)


def test_towers_share_the_variables_of_the_first_one():
    first, second = build(tower)
    assert first[0] is second[0]
    assert first[1] == second[1] == [first[0]]
    assert [loss.op.name for (loss,) in (first[2], second[2])] == ["tower0/loss", "tower1/loss"]
    assert names(tf.GraphKeys.GLOBAL_VARIABLES) == ["fc/W", "counter", "EMA/size"]
    assert names(tf.GraphKeys.LOCAL_VARIABLES) == []
    assert names(tf.GraphKeys.LOSSES) == ["tower0/loss"]
    assert [loss.device for (loss,) in (first[2], second[2])] == DEVICES
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 1
    assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 1


def test_copies_are_local_and_belong_to_the_variables_of_the_first_tower():
    def with_more():
        handle = TowerTensorHandle(get_current_tower_context(), [], None)
        return [*tower(), tf.Variable(2.0, name="unnamed"), handle]

    tf.get_variable("before", [])
    first, second = build(with_more, use_vs=[False, True])
    assert [loss.op.name for (loss,) in (first[2], second[2])] == ["tower0/loss", "tower1/loss"]
    assert [var.op.name for var in second[1]] == ["tower1/fc/W"]
    assert names(tf.GraphKeys.TRAINABLE_VARIABLES) == ["before", "fc/W", "tower0/unnamed"]
    copies = {"tower1/fc/W", "tower1/counter", "tower1/unnamed"}
    assert {*names(tf.GraphKeys.LOCAL_VARIABLES)} == copies
    assert not copies & {*names(tf.GraphKeys.GLOBAL_VARIABLES)}
    for copy, main in zip(second[::3], first[::3]):
        assert replicas().main_of(copy) is main is replicas().main_of(main)
    for weight, _, _, unnamed, handle in first, second:
        assert handle.get_variable("fc/W") is weight
        assert handle.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES) == [weight, unnamed]
        assert len(handle.get_collection(tf.GraphKeys.UPDATE_OPS)) == 1
    sync = replicas().sync_op()
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        assert (sess.run(first[0]) != sess.run(second[0])).all()
        sess.run(sync)
        assert (sess.run(first[0]) == sess.run(second[0])).all()
    assert sync.name == "sync_variables_from_main_tower"


def test_variables_correspond_whatever_the_order_they_are_made_in():
    def in_any_order():
        index = get_current_tower_context().index
        return {name: tf.get_variable(name, []) for name in ("ab" if index == 0 else "ba")}

    first, second = build(in_any_order, use_vs=[False, True])
    assert all(replicas().main_of(second[name]) is first[name] for name in "ab")


def test_scopes_of_the_caller_are_kept():
    with tf.variable_scope("model", auxiliary_name_scope=False):
        first, second = build(tower, use_vs=[False, "copies"])
    assert [first[0].op.name, second[0].op.name] == ["model/fc/W", "model/copies/fc/W"]
    assert replicas().main_of(second[0]) is first[0]


def test_towers_whose_variables_differ_are_refused():
    def differing():
        variable = tf.get_variable("ab"[get_current_tower_context().index], [])
        return [(tf.ones([]), variable)]

    towers = build(differing, use_vs=[False, True])
    with pytest.raises(ValueError, match="tower 1 has none of a, and tower 0 none of tower1/b"):
        replicas().align(towers)


def test_lists_must_agree():
    with pytest.raises(ValueError, match="a device and a variable scope for each: got 1 towers, 2"):
        DataParallelBuilder.build_on_towers([0], tower, DEVICES)
