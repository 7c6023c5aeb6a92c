"""Tests of setting variables in a session: what is converted, what is refused, what it costs."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tensorpack.tfutils.varmanip import (
    SessionUpdate,
    dump_session_params,
    get_savename_from_varname,
    is_training_name,
)


def fit(value, dtype, shape=None, **kwargs):
    array = np.asarray(value)
    var = tf.get_variable("v", array.shape if shape is None else shape, dtype)
    return SessionUpdate.relaxed_value_for_var(value, var, **kwargs)


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_are_set_on_a_finalised_graph(use_resource):
    a = tf.get_variable("a", [2], use_resource=use_resource)
    b = tf.get_variable("s/b", [], tf.int32, use_resource=use_resource)
    init = tf.global_variables_initializer()
    tf.get_default_graph().finalize()
    with tf.Session() as session:
        session.run(init)
        SessionUpdate(session, [a, b]).update({"a": [1.5, 2.5], "s/b:0": 3})
        assert session.run(a).tolist() == [1.5, 2.5]
        assert session.run(b) == 3


def test_variables_that_share_an_initial_value_get_their_own():
    initial = tf.zeros([2])
    a, b = tf.Variable(initial, name="a"), tf.Variable(initial, name="b")
    with tf.Session() as session:
        SessionUpdate(session, [a, b]).update({"a": np.ones(2), "b": np.full(2, 2.0)})
        assert session.run(a).tolist() == [1, 1]
        assert session.run(b).tolist() == [2, 2]


def test_training_afterwards_leaves_the_given_array_alone():
    v = tf.get_variable("v", [16])
    change = v.assign_sub(tf.ones([16]))
    buffer = np.zeros(16 * 4 + 64, np.uint8)
    offset = -buffer.ctypes.data % 64  # TensorFlow takes aligned arrays without copying them
    aligned = buffer[offset : offset + 64].view(np.float32)
    with tf.Session() as session:
        SessionUpdate(session, [v]).update({"v": aligned})
        session.run(change)
        session.run(change)
        assert session.run(v)[0] == -2
    assert aligned.tolist() == [0] * 16


def test_nothing_is_set_where_one_value_is_refused(session):
    a = tf.get_variable("a", initializer=1.0)
    b = tf.get_variable("b", [2])
    sess = session()
    with pytest.raises(ValueError, match=r"b has the shape \[2\], the value for it \[3\]"):
        SessionUpdate(sess, [a, b]).update({"a": 5.0, "b": [1.0, 2.0, 3.0]})
    with pytest.raises(KeyError, match="'c'"):
        SessionUpdate(sess, [a, b]).update({"a": 5.0, "c": 1.0})
    assert sess.run(a) == 1.0


def test_mismatches_can_be_left_out_with_a_warning(session, log_lines):
    a = tf.get_variable("a", initializer=[1.0, 1.0])
    b = tf.get_variable("b", initializer=[1, 1])
    c = tf.get_variable("c", initializer=[1.0, 1.0])
    sess = session()
    update = SessionUpdate(sess, [a, b, c], ignore_mismatch=True)
    update.update({"a": [1.0, 2.0, 3.0], "b": [0.5, 0.5], "c": [[4.0], [5.0]]})
    assert [x.tolist() for x in sess.run([a, b, c])] == [[1, 1], [1, 1], [4, 5]]
    assert [level for level, _ in log_lines] == ["warn"] * 3
    assert "a has the shape [2], the value for it [3]" in log_lines[0][1]


def test_values_are_converted_unless_that_loses_something():
    assert fit(np.float32(2), tf.int64).dtype == np.int64
    with tf.Graph().as_default(), pytest.raises(TypeError, match="variable v is float32"):
        fit(np.int64(2**24 + 1), tf.float32)


def test_one_value_is_set_in_the_default_session(session):
    v = tf.get_variable("v", [2])
    with pytest.raises(RuntimeError, match="load_value_to_var.. takes the default session"):
        SessionUpdate.load_value_to_var(v, [1.0, 2.0])
    with session().as_default() as sess:
        SessionUpdate.load_value_to_var(v, [[1.0], [2.0]])
        assert sess.run(v).tolist() == [1, 2]
        for value, strict in ([[3.0], [4.0]], True), ([1.0, 2.0, 3.0], False):
            with pytest.raises(ValueError, match=r"v has the shape \[2\], the value for it"):
                SessionUpdate.load_value_to_var(v, value, strict=strict)
        assert sess.run(v).tolist() == [1, 2]


def test_dump_session_params_takes_trainable_and_model_variables(session, tmp_path):
    tf.get_variable("w", initializer=1.0)
    tf.get_variable("slot", initializer=2.0, trainable=False)
    moving = tf.get_variable("moving", initializer=3.0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.MODEL_VARIABLES, moving)
    with pytest.raises(RuntimeError, match="default session"):
        dump_session_params(tmp_path / "params.npz")
    with session().as_default():
        dump_session_params(tmp_path / "params.npz")
    assert load_checkpoint_vars(tmp_path / "params.npz") == {"w": 1.0, "moving": 3.0}


def test_save_name_swaps_prefixes():
    assert get_savename_from_varname("a/w:0", "a") == "w:0"
    assert get_savename_from_varname("a/w", "a") == "w"
    assert get_savename_from_varname("ab/w", "a") == "ab/w"
    assert get_savename_from_varname("a/w", "a", "b") == "b/w"
    assert get_savename_from_varname("w", None, "b") == "b/w"


def test_training_names():
    for name in "fc/W/Adam", "fc/W/Adam_1:0", "beta1_power", "fc/W/RMSProp_1", "EMA/cost":
        assert is_training_name(name), name
    assert is_training_name("cost/EMA") and is_training_name("AccumGrad/counter")
    assert is_training_name("fc/W/AccumGrad")  # of 0.11
    for name in "global_step", "fc/W", "Adam/W", "fc_1", "c/bn/mean/EMA", "c/bn/variance/EMA:0":
        assert not is_training_name(name), name
