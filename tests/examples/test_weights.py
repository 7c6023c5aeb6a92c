"""Weights from a file: all that a network needs, or an error that says what is missing."""

import os

import DQN
import flags
import numpy as np
import pytest
from weights import AllWeights, OtherNetwork, find_model

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointCorrupt, save_checkpoint_vars
from tests.examples.running import SMALL, small_catch, train


def load_into(names, path):
    """The values of a network with these variables, from a file."""
    with tf.Graph().as_default(), tf.Session() as sess:
        variables = [tf.get_variable(name, [2]) for name in names]
        loader = AllWeights(path)
        sess.run(tf.global_variables_initializer())
        loader.init(sess)
        return [value.tolist() for value in sess.run(variables)]


@pytest.fixture(params=["model-5", "model.npz"])
def saved(request, tmp_path):
    path = str(tmp_path / request.param)
    save_checkpoint_vars({"a": np.ones(2, "f"), "b": np.zeros(2, "f")}, path)
    return path


def test_all_weights_are_there(saved):
    assert load_into(["b", "a"], saved) == [[0, 0], [1, 1]]
    assert load_into(["a"], saved) == [[1, 1]]


def test_weights_that_are_missing_are_named(saved):
    with pytest.raises(OtherNetwork, match="it has no c, d, which .* give the --algo"):
        load_into(["c", "a", "d"], saved)


def test_find_model(saved):
    assert find_model(saved) == saved


def test_find_model_says_why_not(tmp_path):
    for name in ["letter", "letter.npz"]:
        (tmp_path / name).write_text("Dear network")
        with pytest.raises(CheckpointCorrupt, match=name):
            find_model(str(tmp_path / name))
    np.save(str(tmp_path / "one.npy"), np.zeros(3))
    with pytest.raises(ValueError, match="one array"):
        find_model(str(tmp_path / "one.npy"))
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        find_model(str(tmp_path))


def predictor_of(path, algo):
    """What acts in --task eval, on the game of catch."""
    args = flags.parse([*SMALL, "--task", "eval", "--load", path, "--algo", algo])
    return DQN._load_predictor(args, small_catch())


def test_a_model_of_another_algorithm_is_not_evaluated(log_dir, capsys):
    train(small_catch(), "--max-epoch", "1", "--eval-every", "9")
    path = os.path.join(log_dir, "model-10")
    with pytest.raises(SystemExit) as exit:
        predictor_of(path, "Dueling")
    assert exit.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"--load {path}: it has no fctV/W, fctV/b, fctA/W, fctA/b, which" in said
    with predictor_of(path, "DQN") as predictor:  # the same network
        assert predictor(np.zeros((1, 14, 14, 4), np.float32))[0].shape == (1, 3)
