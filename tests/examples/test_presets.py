"""Each preset trains: what it names fits together, and can be resumed."""

import pytest
from presets import PRESETS

from tensorpack.compat import tfv1 as tf
from tests.examples.catch import CountingCatch
from tests.examples.running import read_stats, train

CELL = 6  # pixels: frames of 42 x 42, since not all of the networks are padded
SHORT = ["--steps-per-epoch", "6", "--eval-every", "9"]


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
