"""Twenty updates of the model, against the same mathematics in plain ops."""

import numpy as np
import pytest
from algorithm import NAMED, Algorithm
from DQNModel import Model

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.tower import TowerContext
from tests.tiers import first_fast

STEPS = 20
BATCH = 8
SIZE = 12  # of a frame, in pixels
ACTIONS = 2
MAX_NORM = Algorithm().max_gradient_norm
LAYERS = [("conv0", 4), ("conv1", 2), ("conv2", 1)]  # name, stride


def batches():
    rng = np.random.RandomState(0)
    for _ in range(STEPS):
        yield [
            rng.randint(0, 256, (BATCH, 5, SIZE, SIZE)).astype(np.uint8),
            rng.randint(0, ACTIONS, BATCH),
            # the last kind makes errors, and so gradients, that are clipped
            rng.choice([-5.0, 0.0, 5.0], BATCH).astype(np.float32),
            rng.rand(BATCH) < 0.2,
        ]


def placeholders(model):
    return [tf.placeholder(each.dtype, each.shape) for each in model.inputs()]


def ours(algo, max_norm):
    """The variables before and after, by the name of each."""
    algorithm = NAMED[algo]._replace(max_gradient_norm=max_norm)
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(1)
        model = Model(ACTIONS, algorithm, frame_shape=(SIZE, SIZE))
        fed = placeholders(model)
        with TowerContext("", is_training=True):
            cost = model.build_graph(*fed)
        train = model.get_optimizer().minimize(cost)
        sess.run(tf.global_variables_initializer())
        names = [each.op.name for each in tf.trainable_variables()]
        values = {each.op.name: each for each in tf.global_variables()}
        values = {name: values[name] for name in names + ["target/" + name for name in names]}
        before = sess.run(values)
        for batch in batches():
            sess.run(train, dict(zip(fed, batch)))
        return before, sess.run(values)


def plain_network(image, prefix, variables):
    x = image / 255.0
    for layer, stride in LAYERS:
        kernel, bias, alpha = (variables[f"{prefix}{layer}/{each}"] for each in ("W", "b", "alpha"))
        x = tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME") + bias
        x = tf.where(x > 0, x, alpha * x)
    x = tf.reshape(x, [BATCH, -1])
    x = tf.matmul(x, variables[prefix + "fc0/W"]) + variables[prefix + "fc0/b"]
    x = tf.where(x > 0, x, 0.01 * x)

    def values(head):
        return tf.matmul(x, variables[f"{prefix}{head}/W"]) + variables[f"{prefix}{head}/b"]

    if prefix + "fct/W" in variables:
        return values("fct")
    advantage = values("fctA")
    return values("fctV") + advantage - tf.reduce_mean(advantage, 1, keepdims=True)


def plain_cost(algo, fed, variables):
    frames, action, reward, over = fed
    frames = tf.cast(tf.transpose(frames, [0, 2, 3, 1]), tf.float32)
    q = plain_network(frames[..., :4], "", variables)
    q_next = plain_network(frames[..., 1:], "target/", variables)
    double = algo == "Double"
    chosen = tf.argmax(plain_network(frames[..., 1:], "", variables) if double else q_next, 1)
    rows = tf.range(BATCH, dtype=tf.int64)
    value = tf.gather_nd(q_next, tf.stack([rows, chosen], 1))
    followed = 0.99 * value * (1.0 - tf.cast(over, tf.float32))
    target = tf.stop_gradient(tf.clip_by_value(reward, -1.0, 1.0) + followed)
    error = tf.abs(target - tf.gather_nd(q, tf.stack([rows, action], 1)))
    return tf.reduce_mean(tf.where(error < 1, 0.5 * error**2, error - 0.5))


def plain(algo, start, max_norm):
    """The online variables after the updates, by name, and the norms of the gradients."""
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = placeholders(Model(ACTIONS, frame_shape=(SIZE, SIZE)))
        variables = {name: tf.Variable(value) for name, value in start.items()}
        online = {name: v for name, v in variables.items() if not name.startswith("target/")}
        gradients = tf.gradients(plain_cost(algo, fed, variables), list(online.values()))
        clipped, norm = tf.clip_by_global_norm(gradients, max_norm)
        adam = tf.train.AdamOptimizer(1e-3, epsilon=1e-3)
        train = adam.apply_gradients(zip(clipped, online.values()))
        sess.run(tf.global_variables_initializer())
        norms = [sess.run([norm, train], dict(zip(fed, batch)))[0] for batch in batches()]
        return sess.run(online), norms


# In the last one all gradients are clipped.
@pytest.mark.slow
@pytest.mark.parametrize(
    "algo, max_norm",
    first_fast([("Double", MAX_NORM), ("DQN", MAX_NORM), ("Dueling", MAX_NORM), ("Double", 0.05)]),
)
def test_twenty_updates(algo, max_norm):
    before, after = ours(algo, max_norm)
    expected, norms = plain(algo, before, max_norm)
    assert (min(norms) > max_norm) == (max_norm == 0.05)
    for name, value in expected.items():
        assert np.abs(value - before[name]).max() > 1e-6, f"{name} has not been trained"
        # Sums of float32 products in another order: some 1e-7 of a gradient in each step, which
        # Adam passes on in proportion, as its epsilon is large; twenty steps of 1e-3 at most.
        np.testing.assert_allclose(after[name], value, rtol=1e-6, atol=5e-7, err_msg=name)
    for name in before:
        if name.startswith("target/"):
            np.testing.assert_array_equal(after[name], before[name])
