"""Cost, priorities and gradients of each algorithm, against numpy in float64."""

import numpy as np
import pytest
from algorithm import NAMED, Algorithm
from DQNModel import Model
from layers import Draws

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.tower import TowerContext
from tests.examples.references import Reference
from tests.tiers import first_fast

BATCH, ACTIONS = 5, 2
SIZE, SIZE_NOT_PADDED = 12, 36  # of frames
SMALL = {"network": "dopamine", "double": False, "atoms": 6}
CASES = {
    "DQN": NAMED["DQN"],
    "double, n steps, weights": Algorithm(n_step=3, priority=0.5),
    "munchausen, mse": Algorithm(double=False, munchausen=True, loss="mse"),
    "dueling double": Algorithm(dueling=True, network="dopamine"),
    "not padded": Algorithm(double=False, network="nature"),
    "C51": Algorithm(learns="c51", double=True, dueling=True, n_step=3, priority=0.5),
    "QR": Algorithm(learns="qr", n_step=3, priority=0.5, importance_weights=False, **SMALL),
    "QR, munchausen": Algorithm(learns="qr", munchausen=True, dueling=True, n_step=2, **SMALL),
    "IQN, munchausen": Algorithm(learns="iqn", munchausen=True, n_step=3, **SMALL),
    "noisy": Algorithm(noisy=True, dueling=True),
    "noisy double IQN": Algorithm(learns="iqn", noisy=True, **{**SMALL, "double": True}),
}


def batch(model):
    """A datapoint by name; one of its episodes is over."""
    rng = np.random.RandomState(0)
    specs = {spec.name: spec for spec in model.inputs()}
    shapes = {
        name: [BATCH if n is None else n for n in spec.shape.as_list()]
        for name, spec in specs.items()
    }
    made = {
        "comb_state": rng.randint(0, 256, shapes["comb_state"]).astype(np.uint8),
        "action": rng.randint(0, ACTIONS, BATCH),
        "reward": rng.choice([-5.0, -0.25, 0.0, 5.0], shapes["reward"]).astype(np.float32),
        "isOver": np.arange(BATCH) == 1,
        "steps": rng.randint(1, 3, BATCH).astype(np.int32),
        "weight": rng.uniform(0.1, 1, BATCH).astype(np.float32),
        "slot": np.arange(BATCH),
    }
    return {name: made[name] for name in specs}


def fractions_of(algorithm):
    """The random fractions of the first step, of both networks, as tensors; none of most."""
    if algorithm.learns != "iqn":
        return []
    rows = [BATCH, 2 * BATCH if algorithm.munchausen else BATCH]
    return [Draws(0, 2 * i).uniform([n, algorithm.atoms]) for i, n in enumerate(rows)]


def noise_of(algorithm, features):
    """The noise of the first step, by pass and layer, as tensors; none of most."""
    if not algorithm.noisy:
        return None
    noise = {}
    for number in (1, 3, 4):
        drawn = Draws(0, number)
        for layer, units in [("fc0", 512), ("fctV", 1), ("fctA", ACTIONS), ("fct", ACTIONS)]:
            if layer == "fc0" or (layer != "fct") == algorithm.dueling:
                z = [drawn.normal([features if layer == "fc0" else 512]), drawn.normal([units])]
                noise[number, layer] = [
                    tf.sign(numbers) * tf.sqrt(tf.abs(numbers)) for numbers in z
                ]
    return noise


class Once:
    """What the model makes of one batch, and what it is made from."""

    def __init__(self, algorithm):
        size = SIZE_NOT_PADDED if algorithm.network == "nature" else SIZE
        model = Model(ACTIONS, algorithm, frame_shape=(size, size))
        tf.set_random_seed(1)
        fed = [tf.placeholder(spec.dtype, spec.shape) for spec in model.inputs()]
        with TowerContext("", is_training=True):
            cost = model.build_graph(*fed)
        self.batch = batch(model)
        online = tf.trainable_variables()
        wanted = {"cost": cost, "q": "Qvalue:0"}
        if algorithm.priority:
            wanted.update(priority="priority:0", slot="slot:0")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            feed = dict(zip(fed, self.batch.values()))
            self.outputs = sess.run(wanted, feed)
            self.variables = sess.run({var.op.name: var for var in tf.global_variables()})
            gradients = sess.run(tf.gradients(cost, online), feed)
            self.gradients = dict(zip([var.op.name for var in online], gradients))
            self.fractions = sess.run(fractions_of(algorithm))
            noise = noise_of(algorithm, self.variables["fc0/W"].shape[0])
            self.noise = noise and sess.run(noise)


def middles(count):
    """Evenly spaced fractions, for each example."""
    return np.tile((np.arange(count) + 0.5) / count, (BATCH, 1))


def expected(algorithm, once):
    """A function from online variables to cost, values and priorities; the target is fixed."""
    data, iqn = once.batch, algorithm.learns == "iqn"
    frames = np.moveaxis(data["comb_state"].astype(np.float64), 1, 3)
    state, following = frames[..., :4], frames[..., -4:]
    fractions, later = once.fractions if iqn else (None, None)
    first = Reference(algorithm, once.variables, once.noise)
    now = None
    if algorithm.munchausen:
        both = np.concatenate([state, following])
        now, then = np.split(first.numbers(both, "target/", later, 3), 2)
    else:
        then = first.numbers(following, "target/", later, 3)
    selecting = first.numbers(following, "", middles(32) if iqn else None, 4)
    steps = data.get("steps", np.ones(BATCH))
    target = first.target(
        now,
        then,
        selecting if algorithm.double else then,
        data["action"],
        data["reward"],
        data["isOver"],
        steps,
    )

    def compute(changed):
        reference = Reference(algorithm, {**once.variables, **changed}, once.noise)
        numbers = reference.numbers(state, "", fractions, 1)
        levels = middles(algorithm.atoms) if algorithm.learns == "qr" else fractions
        losses, priorities = reference.losses(numbers, data["action"], target, levels)
        weights = data.get("weight", 1.0) if algorithm.importance_weights else 1.0
        cost = np.mean(losses * weights)
        return cost, reference.values(numbers), priorities

    return compute


@pytest.mark.parametrize("name", first_fast(CASES, 2))
def test_cost_and_gradients(name):
    algorithm = CASES[name]
    once = Once(algorithm)
    compute = expected(algorithm, once)
    cost, q, priorities = compute({})
    np.testing.assert_allclose(once.outputs["cost"], cost, rtol=1e-5)
    np.testing.assert_allclose(once.outputs["q"], q, rtol=1e-4, atol=1e-5)
    if algorithm.priority:
        np.testing.assert_allclose(once.outputs["priority"], priorities, rtol=1e-4)
        assert once.outputs["slot"].tolist() == list(range(BATCH))
    rng = np.random.RandomState(1)
    for variable, gradient in once.gradients.items():
        value = np.float64(once.variables[variable])
        # Along the gradient, which is the longest way, and across it.
        for way in (gradient / np.linalg.norm(gradient), 0.1 * rng.randn(*value.shape)):
            step = 1e-6 * way
            ends = [compute({variable: value + sign * step})[0] for sign in (1, -1)]
            slope = (ends[0] - ends[1]) / 2e-6
            atol = 1e-3 * np.linalg.norm(gradient) * np.linalg.norm(way)
            np.testing.assert_allclose(np.sum(gradient * way), slope, atol=atol, err_msg=variable)


def test_an_update_is_adam_of_gradients_that_are_clipped_together():
    """Kingma and Ba, 2015, algorithm 1 in its second form, whose epsilon is beside the root."""
    model = Model(ACTIONS, Algorithm(max_gradient_norm=2.0))
    variables = [tf.get_variable(name, initializer=np.zeros(3, "f")) for name in "xy"]
    fed = [tf.placeholder(tf.float32, [3]) for _ in variables]
    update = model.get_optimizer().apply_gradients(list(zip(fed, variables)))
    rng, expected, first, second = np.random.RandomState(0), np.zeros((2, 3)), 0.0, 0.0
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(1, 21):
            gradient = rng.normal(0, step / 10, size=(2, 3))  # of norms below 2, and above
            sess.run(update, dict(zip(fed, gradient)))
            clipped = gradient * min(1, 2 / np.linalg.norm(gradient))
            first, second = 0.9 * first + 0.1 * clipped, 0.999 * second + 0.001 * clipped**2
            rate = 1e-3 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            expected -= rate * first / (np.sqrt(second) + 1e-3)
            np.testing.assert_allclose(sess.run(variables), expected, rtol=1e-4, atol=1e-7)
