"""The network, its loss and its update: against numpy, and the names and shapes that are saved."""

import numpy as np
from model import ENTROPY_WEIGHT, VALUE_WEIGHT, Model

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.tower import TowerContext

BATCH, ACTIONS = 7, 4
VARIABLES = {
    "conv0/W": (8, 8, 4, 32),
    "conv0/b": (32,),
    "conv1/W": (4, 4, 32, 64),
    "conv1/b": (64,),
    "conv2/W": (3, 3, 64, 64),
    "conv2/b": (64,),
    "fc0/W": (3136, 512),
    "fc0/b": (512,),
    "fc-pi/W": (512, ACTIONS),
    "fc-pi/b": (ACTIONS,),
    "fc-v/W": (512, 1),
    "fc-v/b": (1,),
}


class WithoutNetwork(Model):
    """Its logits and values are variables."""

    def _network(self, state):
        initial = np.random.RandomState(1).standard_normal((BATCH, ACTIONS + 1))
        whole = tf.get_variable("outputs", initializer=tf.constant(initial, tf.float32))
        return whole[:, :ACTIONS], whole[:, ACTIONS]


def build(model):
    """The cost of a model, and a feed with its inputs."""
    rng = np.random.RandomState(2)
    values = [
        rng.randint(256, size=(BATCH, *model.inputs()[0].shape[1:])),
        rng.randint(ACTIONS, size=BATCH),
        3 * rng.standard_normal(BATCH),
    ]
    inputs = [tf.placeholder(spec.dtype, spec.shape, spec.name) for spec in model.inputs()]
    with TowerContext("", is_training=True):
        cost = model.build_graph(*inputs)
    return cost, dict(zip(inputs, values))


def by_hand(outputs, action, target):
    """The cost and its gradient, in float64."""
    logits, value = outputs[:, :ACTIONS], outputs[:, ACTIONS]
    policy = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    taken = np.eye(ACTIONS)[action]
    advantage = target - value
    entropy = -(policy * np.log(policy)).sum(1)
    cost = (
        -np.log(policy[np.arange(BATCH), action]) * advantage
        + VALUE_WEIGHT * advantage**2
        - ENTROPY_WEIGHT * entropy
    ).mean()
    to_logits = advantage[:, None] * (policy - taken)
    to_logits += ENTROPY_WEIGHT * policy * (np.log(policy) + entropy[:, None])
    to_value = -2 * VALUE_WEIGHT * advantage
    return cost, np.column_stack([to_logits, to_value]) / BATCH


def test_the_cost_its_gradient_and_an_update():
    model = WithoutNetwork(ACTIONS, (2, 2), learning_rate=0.1)
    cost, feed = build(model)
    (variable,) = tf.trainable_variables()
    gradient = tf.gradients(cost, variable)[0]
    update = model.get_optimizer().minimize(cost)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        before = sess.run(variable).astype(np.float64)
        got_cost, got_gradient = sess.run([cost, gradient], feed)
        sess.run(update, feed)
        after = sess.run(variable)
    _, action, target = feed.values()
    wanted_cost, wanted = by_hand(before, action, target)
    np.testing.assert_allclose(got_cost, wanted_cost, rtol=1e-5)
    np.testing.assert_allclose(got_gradient, wanted, atol=1e-6)
    norm = np.sqrt((wanted**2).sum())
    assert norm > 0.5
    clipped = wanted * 0.5 / norm
    # the mean of squares begins at 1
    step = 0.1 * clipped / np.sqrt(0.99 + 0.01 * clipped**2 + 1e-5)
    np.testing.assert_allclose(before - after, step, atol=1e-6)


def test_variables_and_the_first_policy():
    model = Model(ACTIONS)
    _, feed = build(model)
    shapes = {each.op.name: tuple(each.shape.as_list()) for each in tf.trainable_variables()}
    assert shapes == VARIABLES
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        policy, value = sess.run(["policy:0", "value:0"], feed)
    np.testing.assert_allclose(policy, np.full((BATCH, ACTIONS), 1 / ACTIONS), atol=0.02)
    assert value.shape == (BATCH,) and (np.abs(value) < 10).all()
