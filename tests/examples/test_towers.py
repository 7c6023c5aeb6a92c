"""Several towers learn what one learns: each has a part of the batch and a target network."""

import os

import numpy as np
import pytest

import tensorpack as tp
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tensorpack.utils import logger
from tests.examples.small_dqn import small_catch, train


@pytest.mark.one_row
@pytest.mark.slow
def test_two_towers_have_the_weights_of_one(tmp_path, log_dir):
    found = []
    for towers, trainer in [(1, tp.QueueInputTrainer), (2, tp.SyncMultiGPUTrainerReplicated)]:
        directory = str(tmp_path / str(towers))
        logger.set_logger_dir(directory, "k")
        tp.fix_rng_seed(5)
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            flags = ["--deterministic", "--seed", "5", "--eval-every", "9", "--max-epoch", "1"]
            train(small_catch(), *flags, "--towers", str(towers), trainer=trainer)
        found.append(load_checkpoint_vars(os.path.join(directory, "model-10")))
    one, two = found
    assert sorted(one) == sorted(two)
    trained = [name for name in one if not name.startswith(("EMA", "beta"))]
    for name in trained:
        np.testing.assert_allclose(two[name], one[name], rtol=1e-5, atol=1e-5, err_msg=name)
    assert not np.array_equal(one["fct/W"], one["target/fct/W"])
