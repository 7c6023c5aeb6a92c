"""Prepared runs give what `Session.run` gives, and refuse what that refuses."""

import gc
import weakref
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import prepared
from tensorpack.tfutils.prepared import pick, prepare
from tests.helpers import array_at

Pair = namedtuple("Pair", "first second")


@pytest.fixture
def sess():
    with tf.Session() as session:
        yield session


def run(sess, structure, feeds=(), values=(), **options):
    call, (where,), _ = prepare(sess, [structure], list(feeds), **options)
    return pick(call(*values), where)


def test_values_are_shaped_as_the_fetches(sess):
    a, b = tf.constant(1), tf.constant([2.0, 3.0])
    op = tf.no_op()
    for structure in (a, op, [], [a], (a, op), {"x": [a, (op, b)], "y": a}, [a, a], [[]]):
        found, right = run(sess, structure), sess.run(structure)
        assert repr(found) == repr(right), structure


def test_several_structures_are_computed_together(sess):
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
    sess.run(counter.initializer)
    count = counter.assign_add(1)
    call, where, _ = prepare(sess, [count, [count], count.op])
    values = call()
    assert [pick(values, each) for each in where] == [1, [1], None]
    assert len(values) == 1


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_and_names(sess, use_resource):
    with tf.variable_scope("", use_resource=use_resource):
        variable = tf.get_variable("v", [2], initializer=tf.ones_initializer())
    named = tf.constant(b"text", name="named")
    sess.run(variable.initializer)
    found = run(sess, [variable, "named:0", "named", named])
    assert found[0].tolist() == [1.0, 1.0] and found[1:] == [b"text", None, b"text"]


def test_what_is_unusual_is_left_to_run(sess):
    x = tf.placeholder(tf.float32, [])
    sparse = tf.SparseTensor([[0]], [7], [2])
    assert run(sess, Pair(tf.constant(1), tf.constant(2))) == Pair(1, 2)
    assert run(sess, [sparse, tf.constant(1)])[0].values.tolist() == [7]
    assert run(sess, [x], [x], [3.0]) == [3.0]  # what is fed is fetched
    with pytest.raises(TypeError, match="None"):
        run(sess, None)
    with tf.Graph().as_default():
        other = tf.constant(1)
    with pytest.raises(ValueError, match="not an element of this graph"):
        run(sess, other)


def test_without_the_private_way_the_public_one_does_the_same(sess, monkeypatch):
    monkeypatch.setattr(prepared, "make_raw_callable", lambda *args: None)
    x = tf.placeholder(tf.float32, [2])
    found = run(sess, {"sum": tf.reduce_sum(x), "op": tf.no_op()}, [x], [[1, 2]])
    assert found == {"sum": 3.0, "op": None}
    assert run(sess, (tf.constant(4),)) == (4,)


def test_a_wrong_shape_or_number_is_an_error_however_many_were_right(sess):
    x, y = tf.placeholder(tf.float32, [None, 2], "x"), tf.placeholder(tf.float32, None, "y")
    call, (where,), _ = prepare(sess, [tf.shape(x)], [x, y])
    for rows in (3, 3, 1):
        assert pick(call(np.zeros((rows, 2)), 0), where).tolist() == [rows, 2]
    with pytest.raises(
        ValueError, match=r"'x:0': .* float32 \[None, 2\], .* gave float64 \[2, 3\]"
    ):
        call(np.zeros((2, 3)), 0)
    with pytest.raises(TypeError, match="2 tensors are fed here, got 1 values"):
        call(np.zeros((3, 2)))


def test_a_cast_that_loses_values_is_refused_however_it_is_run(sess):
    x = tf.placeholder(tf.int32, [], "x")
    sparse = tf.SparseTensor([[0]], [x], [2])
    for structure in (x + 1, {"sum": [x + 1]}, Pair(x, x), x, sparse):
        run(sess, structure, [x], [3])
        with pytest.raises(TypeError, match="'x:0': the model takes int32 .*float64"):
            run(sess, structure, [x], [3.5])


def test_an_error_of_an_op_has_its_type_and_name_and_a_closed_session_is_a_runtime_error(sess):
    x = tf.placeholder(tf.float32, [])
    call, _, _ = prepare(sess, [tf.check_numerics(x, "bad", name="looked_at")], [x])
    call(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="looked_at"):
        call(np.nan)
    sess.close()
    for late in (lambda: call(1.0), lambda: prepare(sess, [x], [x])):
        with pytest.raises(RuntimeError, match="This session has been closed"):
            late()


@pytest.mark.parametrize("in_caller", [False, True])
def test_a_private_array_in_a_queue_lives_as_long_as_its_element(sess, in_caller):
    x = tf.placeholder(tf.float32, [1000])
    queue = tf.FIFOQueue(2, [tf.float32])
    take = queue.dequeue()
    array = array_at(0, 1000)
    array[:] = np.arange(1000)
    memory = weakref.ref(array.base)
    prepare(sess, [queue.enqueue([x])], [x], in_caller=in_caller).call(array)
    del array
    gc.collect()
    assert memory() is not None  # TensorFlow has not copied it
    np.testing.assert_array_equal(sess.run(take), np.arange(1000, dtype=np.float32))


@pytest.mark.parametrize("in_caller", [False, True])
def test_a_blocked_run_ends_when_its_queue_is_closed(sess, in_caller):
    queue = tf.FIFOQueue(1, [tf.int32])
    x = tf.placeholder(tf.int32, [])
    enqueue = prepare(sess, [queue.enqueue([x])], [x], in_caller=in_caller).call
    close, size = queue.close(cancel_pending_enqueues=True), queue.size()
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(lambda: [enqueue(number) for number in range(2)])
        while sess.run(size) < 1:
            pass
        sess.run(close)
        assert isinstance(done.exception(20), tf.errors.CancelledError)
