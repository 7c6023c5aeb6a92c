"""What a worker sends and takes in a step, with alike workers pretended."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.train.group import collective
from tensorpack.train.group.collective import HAS_HALF, Exchange

SIZE = 3


@pytest.fixture
def sent(monkeypatch):
    """All workers have the same, so a sum is a multiple of one's own, and an average is that."""
    vectors = {}

    def all_reduce(tensor, size, key, average=False):
        assert vectors.setdefault(key, tensor) is tensor
        return tensor if average else size * tensor

    monkeypatch.setattr(collective, "all_reduce", all_reduce)
    return vectors


def run(*tensors):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(tensors))


@pytest.mark.parametrize("average, factor", [(True, 1), (False, SIZE)])
def test_gradients_come_back_as_they_went_in(average, factor, sent):
    table = tf.get_variable("table", initializer=tf.ones([5, 2]))
    double = tf.get_variable("double", initializer=tf.ones([2, 2], tf.float64))
    small = tf.get_variable("small", initializer=tf.ones([2], tf.bfloat16))
    rows = tf.IndexedSlices(tf.constant([[1.0, 2], [4, 4], [2, 1]]), tf.constant([3, 0, 3]))
    grads = [(rows, table), (2 * double, double), (tf.ones_like(small), small)]
    own = Exchange(SIZE, average, first_key=7)
    (sparse, _), (dense, _), (half, _) = own.reduce(grads, tf.constant([0.0, 15, 100]))
    assert sorted(sent) == [7, 8] and half.dtype == tf.bfloat16
    indices, values, dense, half, flags = run(
        sparse.indices, sparse.values, dense, tf.cast(half, tf.float32), own.flags
    )
    assert indices.tolist() == [0, 3]
    np.testing.assert_array_equal(values, factor * np.float32([[4, 4], [3, 3]]))
    np.testing.assert_array_equal(dense, factor * np.full([2, 2], 2.0))
    np.testing.assert_array_equal(half, [factor, factor])
    np.testing.assert_array_equal(flags, np.float32([0, 15, 100]) * SIZE)


def test_large_gradients_travel_in_packs_and_the_last_layers_come_first(sent):
    variables = [tf.get_variable(f"v{i}", [1 << 19]) for i in range(5)]  # 2 MiB each
    own = Exchange(SIZE, wire=tf.float16 if HAS_HALF else tf.float32)
    own.reduce([(each * 2, each) for each in variables], tf.zeros([SIZE]))
    assert [each.shape.num_elements() for each in own.waits] == [2 << 19, 2 << 19, (1 << 19) + SIZE]
    assert {each.dtype for each in own.waits} == {tf.float16 if HAS_HALF else tf.float32}
