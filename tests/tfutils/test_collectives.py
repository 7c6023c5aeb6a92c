"""Sums over towers and over workers: values, gradients of both orders, and what is refused."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import collectives
from tensorpack.tfutils.collectives import (
    add_up_workers_by,
    has_other_terms,
    has_workers,
    sum_over_towers,
)
from tensorpack.tfutils.tower import TowerContext

STARTS = np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 0.5]], np.float32)


def in_towers(build, devices=("/cpu:0", "/cpu:1", "/cpu:2")):
    """Returns what `build(i)` returns in each of several training towers."""
    towers = []
    for i, device in enumerate(devices):
        scope = f"tower{i}" if i else ""
        with tf.device(device), TowerContext(f"tower{i}", True, index=i, vs_name=scope):
            towers.append(build(i))
    return towers


def run(fetches):
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


@pytest.mark.parametrize("devices", [("/cpu:0", "/cpu:1", "/cpu:2"), ("/cpu:0",) * 3])
def test_values_and_gradients_are_those_of_the_whole(devices):
    def build(i):
        x = tf.get_variable("x", initializer=STARTS[i])
        total = sum_over_towers(sum_over_towers(x * x) * x)
        gradient = tf.gradients(tf.reduce_sum(total**2), x)[0]
        return total, gradient, tf.gradients(tf.reduce_sum(gradient), x)[0]

    towers = in_towers(build, devices)
    x = tf.constant(STARTS)
    total = tf.reduce_sum(tf.reduce_sum(x * x, 0) * x, 0)
    gradient = tf.gradients(len(STARTS) * tf.reduce_sum(total**2), x)[0]
    second = tf.gradients(tf.reduce_sum(gradient), x)[0]
    found, expected = run([towers, [total, gradient, second]])
    for i, tower in enumerate(found):
        np.testing.assert_allclose(tower[0], expected[0], rtol=1e-6)
        for order in 1, 2:
            np.testing.assert_allclose(tower[order], expected[order][i], rtol=1e-6)
    assert [each.device[-5:] for each, *_ in towers] == [each[1:].upper() for each in devices]


def test_a_tower_that_has_no_gradient_adds_none():
    def build(i):
        x = tf.constant(STARTS[i])
        total = sum_over_towers(x)
        return tf.gradients(total, x)[0] if i == 1 else total

    np.testing.assert_allclose(run(in_towers(build)[1]), [1, 1])


def test_where_there_is_nothing_to_add_up():
    x = tf.constant(STARTS)
    assert sum_over_towers(x) is x
    with TowerContext("", is_training=True):
        assert sum_over_towers(x, workers=True) is x and not has_other_terms()
    with TowerContext("towerp0", is_training=False):
        assert sum_over_towers(x) is x and not has_other_terms()
    assert not has_workers()


def test_a_sum_in_a_branch_is_refused(monkeypatch):
    monkeypatch.setattr(collectives, "in_branch", lambda: True)
    with TowerContext("tower9", True, index=9, vs_name="v"):
        with pytest.raises(ValueError, match="in a branch of tf.cond .* do it outside"):
            sum_over_towers(tf.constant(1.0))


class Workers:
    """Two workers in one graph, each on a device: adds up by collective ops, in their order."""

    def __init__(self):
        add_up_workers_by(self.add_up)

    def begin(self, worker):
        """Begins with the graph of a worker; returns its device."""
        self.made, self.device = 0, f"/cpu:{worker}"
        collectives._sums.get().clear()
        return self.device

    def add_up(self, tensor):
        self.made += 1
        options = {"merge_op": "Add", "final_op": "Id", "subdiv_offsets": [0]}
        with tf.device(self.device):
            return tf.raw_ops.CollectiveReduce(
                input=tensor, group_size=2, group_key=7, instance_key=self.made, **options
            )


@pytest.mark.parametrize("towers", [1, 3])
def test_workers_add_up_the_sums_of_their_towers(towers):
    workers, found = Workers(), []
    starts = tf.constant(np.arange(1, 1 + 4 * towers, dtype=np.float32).reshape(2, towers, 2))
    for worker in range(2):
        device = workers.begin(worker)
        for i in range(towers):
            name = f"worker{worker}tower{i}" if towers > 1 else ""
            with tf.device(device), TowerContext(name, True, index=i, vs_name="v"):
                assert has_other_terms(workers=True)
                x = starts[worker, i]
                total = sum_over_towers(x * x, workers=True)
                found.append([total, tf.gradients(tf.reduce_sum(total**2), x)[0]])
        assert workers.made == 2  # however many towers there are
    total = tf.reduce_sum(starts * starts, [0, 1])
    gradient = tf.gradients(2 * towers * tf.reduce_sum(total**2), starts)[0]
    found, total, gradient = run([found, total, gradient])
    for each, expected in zip(found, gradient.reshape(-1, 2)):
        np.testing.assert_allclose(each, [total, expected], rtol=1e-6)
