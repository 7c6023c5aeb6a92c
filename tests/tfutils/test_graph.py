"""Tests of scopes and collections."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import (
    auto_reuse_variable_scope,
    cached_name_scope,
    get_name_scope_name,
    under_name_scope,
)
from tensorpack.tfutils.collection import (
    backup_collection,
    clear_collection,
    freeze_collection,
    restore_collection,
)
from tensorpack.tfutils.scope_utils import under_variable_scope


def op_name(name="x"):
    return tf.constant(0, name=name).op.name


@auto_reuse_variable_scope
def layer(name="W", fail=False):
    variable = tf.get_variable(name, [2])
    if fail:
        raise ZeroDivisionError
    return variable, op_name()


def test_second_call_in_a_scope_reuses_in_the_callers_name_scope():
    with tf.variable_scope("a") as scope:
        first, first_op = layer()
        with tf.name_scope("later"):
            second, second_op = layer()
    assert second is first
    assert (first_op, second_op) == ("a/x", "a/later/x")
    with tf.variable_scope(scope):
        assert layer()[0] is first
    with tf.variable_scope("b"):
        assert layer()[0].op.name == "b/W"


def test_second_call_in_a_graph_makes_no_new_variables_unless_the_first_raised():
    with tf.Graph().as_default():
        layer()
        with pytest.raises(ValueError, match="V"):
            layer("V")
    with pytest.raises(ZeroDivisionError):
        layer("W", fail=True)
    assert layer("V")[0].graph is tf.get_default_graph()


def test_by_variable_makes_what_is_missing_and_reuses_the_rest():
    @auto_reuse_variable_scope(by_variable=True)
    def network(levels):
        """Has a variable for each level."""
        return [tf.get_variable(f"level{each}", [2]) for each in range(levels)], op_name()

    with tf.variable_scope("net") as scope:
        (first,), _ = network(1)
        (again, second), op = network(2)
    assert again is first and second.op.name == "net/level1" and op == "net/x_1"
    assert network.__doc__ == "Has a variable for each level."
    # where everything is to be there, such as in a second tower, nothing is made
    with tf.variable_scope(scope, reuse=True):
        assert network(2)[0][1] is second
        with pytest.raises(ValueError, match="net/level2"):
            network(3)


def test_functions_run_under_a_name_scope_of_their_own():
    @under_name_scope()
    def compute(name):
        """Makes an op."""
        return op_name(name)

    named = under_name_scope("other")(op_name)
    assert [compute("y"), compute("y"), named()] == ["compute/y", "compute_1/y", "other/x"]
    assert [compute("y", name_scope="z"), named(name_scope=None)] == ["z/y", "op_name/x"]
    assert compute("y", name_scope="z") == "z/y_1"
    assert (compute.__name__, compute.__doc__) == ("compute", "Makes an op.")


def test_the_open_name_scope_is_known():
    with tf.name_scope("a"), tf.name_scope("b"):
        assert get_name_scope_name() == "a/b"
    assert get_name_scope_name() == ""


def test_cached_scope_is_opened_again_from_anywhere():
    op_name("losses")
    with cached_name_scope("losses") as first:
        names = [op_name()]
    with tf.name_scope("tower"), cached_name_scope("losses") as second:
        names.append(op_name())
    assert first == second == "losses_1/"
    assert names == ["losses_1/x", "losses_1/x_1"]
    with tf.Graph().as_default(), cached_name_scope("losses") as scope:
        assert scope == "losses/"


def test_cached_scope_can_belong_to_the_scope_around_it():
    seen = []
    for outer in ["a/", "b/", "a/"]:
        with tf.name_scope(outer), cached_name_scope("losses", top_level=False):
            seen.append(op_name())
    assert seen == ["a/losses/x", "b/losses/x", "a/losses/x_1"]
    with tf.name_scope("a"), cached_name_scope("in_the_root") as scope:
        assert scope == "in_the_root/"


def test_a_function_runs_in_a_variable_scope_of_its_name():
    @under_variable_scope()
    def block(x):
        """Makes a variable."""
        return tf.get_variable("w", []) * x

    assert block(2.0).name == "block/mul:0"
    with tf.variable_scope("outer"):
        block(2.0)
    assert [each.op.name for each in tf.global_variables()] == ["block/w", "outer/block/w"]
    assert (block.__name__, block.__doc__) == ("block", "Makes a variable.")
    with pytest.raises(ValueError, match="block/w already exists"):
        block(2.0)


def test_backup_is_a_copy_and_restore_and_clear_keep_the_list_that_others_hold():
    held = tf.get_collection_ref("a")
    held.append(1)
    backup = backup_collection(["a", "b"])
    tf.add_to_collection("a", 2)
    tf.add_to_collection("b", 3)
    assert backup == {"a": [1], "b": []}
    assert {"a": [1, 2], "b": [3]}.items() <= backup_collection().items()
    restore_collection(backup)
    assert held == tf.get_collection("a") == [1]
    assert tf.get_collection("b") == []
    clear_collection(["a", "c"])
    assert held == tf.get_collection("c") == []


def test_freeze_undoes_additions_also_after_an_error_and_leaves_other_collections():
    tf.add_to_collection("a", 1)
    with freeze_collection(["a"]):
        tf.add_to_collection("a", 2)
        tf.add_to_collection("b", 3)
        assert tf.get_collection("a") == [1, 2]
    assert tf.get_collection("a") == [1]
    with pytest.raises(ZeroDivisionError), freeze_collection(["a"]):
        tf.add_to_collection("a", 2)
        raise ZeroDivisionError
    assert tf.get_collection("a") == [1]
    assert tf.get_collection("b") == [3]
