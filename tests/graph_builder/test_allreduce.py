"""Sums and means of the gradients of several towers."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import allreduce_grads
from tensorpack.graph_builder.allreduce import average_grads

MODES = ["nccl", "cpu", "hierarchical", "gpu"]


def run(fetches, devices=1):
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": devices})) as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


def gradients(towers):
    """Two gradients of each of so many towers, each tower on a device of its own."""
    grads = []
    for index in range(towers):
        with tf.device(f"/device:CPU:{index}"):
            grads.append([tf.constant([1.0 + index, 2.0]), tf.constant([[10.0 * index]])])
    return grads


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("towers, average", [(2, True), (5, False)])
def test_every_tower_gets_the_sum_or_the_mean(mode, towers, average):
    reduced = run(allreduce_grads(gradients(towers), average, mode), towers)
    expected = run([list(map(tf.add_n, zip(*gradients(towers))))], towers)[0]
    assert len(reduced) == towers
    for tower in reduced:
        for grad, total in zip(tower, expected):
            np.testing.assert_allclose(grad, total / (towers if average else 1), rtol=1e-6)


def test_the_work_is_spread_over_the_devices():
    for mode, indices in ("gpu", "01"), ("cpu", "0"):
        sums = allreduce_grads(gradients(2), True, mode)[0]
        assert {grad.device[-1] for grad in sums} == {*indices}
    halves = allreduce_grads(gradients(4), True, "hierarchical")
    assert [tower[0].device[-1] for tower in halves] == ["0", "0", "2", "2"]


def test_sparse_gradients_keep_their_slices():
    table = tf.get_variable("table", initializer=np.zeros([4, 1], np.float32))
    grads = [
        tf.gradients(tf.reduce_sum(tf.gather(table, rows)) * scale, [table])
        for rows, scale in [([0, 1], 2.0), ([1, 3], 4.0)]
    ]
    (first,), (second,) = allreduce_grads(grads, True)
    ((mean, variable),) = average_grads([[(grad, table)] for (grad,) in grads])
    assert variable is table
    for grad in first, second, mean:
        assert isinstance(grad, tf.IndexedSlices)
        assert run(tf.convert_to_tensor(grad)).tolist() == [[1], [3], [0], [2]]


@pytest.mark.parametrize("order", [1, -1])
def test_a_sparse_gradient_of_one_tower_and_a_dense_one_of_another(order):
    table = tf.get_variable("table", initializer=np.zeros([4, 1], np.float32))
    sparse = tf.gradients(2.0 * tf.reduce_sum(tf.gather(table, [0, 0, 1])), [table])
    dense = tf.gradients(tf.reduce_sum(table * [[1.0], [2.0], [3.0], [4.0]]), [table])
    assert isinstance(sparse[0], tf.IndexedSlices) and isinstance(dense[0], tf.Tensor)
    grads = [sparse, dense][::order]
    mean, total = allreduce_grads(grads, True), allreduce_grads(grads, False)
    ((averaged, _),) = average_grads([[(grad, table)] for (grad,) in grads])
    for (grad,) in [*mean, [averaged]]:
        assert run(grad).tolist() == [[2.5], [2], [1.5], [2]]
    assert np.array(run(total)).tolist() == [[[[5], [4], [3], [4]]]] * 2


@pytest.mark.parametrize(
    "grads, mode, text",
    [
        ([[1.0], [2.0]], "ring", "mode must be one of nccl, cpu"),
        ([[1.0], []], "cpu", r"but they have \[1, 0\]"),
        ([[1.0], [None]], "cpu", "None values not supported"),
    ],
)
def test_gradients_that_cannot_be_added(grads, mode, text):
    with pytest.raises(ValueError, match=text):
        allreduce_grads(grads, True, mode)


def test_towers_must_have_gradients_of_the_same_variables():
    a, b = (tf.get_variable(name, []) for name in "ab")
    with pytest.raises(ValueError, match="tower 1 has none of a, and tower 0 none of b"):
        average_grads([[(1.0, a)], [(1.0, b)]])
