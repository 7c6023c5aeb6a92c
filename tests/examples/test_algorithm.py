"""The value that says what is learned: its names, what it refuses; and each preset trains."""

import flags
import numpy as np
import pytest
from algorithm import PRESETS
from DQNModel import Model

from tensorpack.compat import tfv1 as tf
from tests.examples.small_dqn import read_stats, train
from tests.RL.catch import CountingCatch

CELL = 6  # pixels: frames of 42 x 42, since not all of the networks are padded
SHORT = ["--steps-per-epoch", "6", "--eval-every", "9"]


def test_a_step_of_2015_is_that_of_the_sum_of_the_gradients():
    """Mnih et al., 2015: RMSProp with 0.95 and 0.01, for the sum over 32 transitions."""
    rng, steps, count = np.random.RandomState(0), 400, 32
    sums = rng.normal(0.002, 0.01, size=(steps, 5)).astype(np.float32) * count
    algorithm = flags.parse(["--rom", "pong.bin", "--preset", "dqn2015"]).algorithm
    x = tf.get_variable("x", initializer=np.zeros(5, np.float32))
    mean = tf.placeholder(tf.float32, [5])
    update = Model(4, algorithm).optimizer().apply_gradients([(mean, x)])
    expected, first, second = np.zeros(5), np.zeros(5), np.full(5, 32.0**2)  # TensorFlow's 1
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for gradient in sums:
            sess.run(update, {mean: gradient / count})
            first, second = 0.95 * first + 0.05 * gradient, 0.95 * second + 0.05 * gradient**2
            expected -= 2.5e-4 * gradient / np.sqrt(second - first**2 + 0.01)
        np.testing.assert_allclose(sess.run(x), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "preset", [*sorted(set(PRESETS) - {"2017"}), "rainbow --noisy --dueling --double"]
)
def test_a_run_with_a_preset_is_resumed(preset, log_dir):
    for epochs, resume in [("1", "never"), ("2", "must")]:
        player = CountingCatch(cell=CELL)
        with tf.Graph().as_default():
            flags = ["--preset", *preset.split(), *SHORT, "--max-epoch", epochs]
            train(player, *flags, resume=resume)
    first, second = read_stats(log_dir)
    assert (second["epoch_num"], second["global_step"]) == (2, 12)
    assert player.resets == 0
    assert second["exploration"] < first["exploration"] < 1
