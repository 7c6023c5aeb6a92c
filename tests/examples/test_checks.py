"""Checks against the machine and its files: flags, free memory, the weights of a network."""

import os
import re

import checks
import numpy as np
import pytest

from tensorpack.contrib import game_flags
from tensorpack.tfutils.checkpoint import save_checkpoint_vars
from tensorpack.utils import logger
from tests.examples.small_dqn import refusal

GB = 10**9


@pytest.fixture(autouse=True)
def no_log_dir():
    yield
    logger.close_logger_dir()


def test_weights(tmp_path, capsys):
    for name in ["letter", "letter.npz"]:
        (tmp_path / name).write_text("Dear network")
    np.save(str(tmp_path / "one.npy"), np.zeros(3))
    for name, why in [
        ("letter", "letter is not a checkpoint"),
        ("letter.npz", "letter.npz"),
        ("one.npy", "no dictionary of arrays"),
        ("", "There is no checkpoint"),
    ]:
        path = str(tmp_path / name)
        assert re.match(f"--load {path}: .*{why}", refusal(capsys, game_flags.find_weights, path))
    prefix = str(tmp_path / "model-5")
    save_checkpoint_vars({"a": 1.0}, prefix)
    assert game_flags.find_weights(prefix) == prefix
    arrays = str(tmp_path / "arrays.npy")
    np.save(arrays, {"a": np.ones(2)})
    assert game_flags.find_weights(arrays) == arrays


def test_a_log_directory_without_a_run_is_not_made_to_resume_it(tmp_path, capsys):
    path = str(tmp_path / "run")
    said = refusal(capsys, game_flags.prepare_log_dir, path, "must")
    assert said == f"--logdir {path}: there is no checkpoint in it, and --resume must needs one"
    assert os.listdir(str(tmp_path)) == []
    said = refusal(capsys, game_flags.prepare_log_dir, path, str(tmp_path))
    assert said.startswith(f"--resume {tmp_path}: There is no checkpoint in")
    assert os.listdir(str(tmp_path)) == []
    assert game_flags.prepare_log_dir(path, "auto") == "auto"


def test_what_is_too_large_is_refused_with_what_would_fit():
    available = checks.RESERVED_BYTES + 3 * GB
    checks.check_memory(428000, 7000, available)
    with pytest.raises(ValueError, match=r"7\.0 GB.*5\.1 GB are free.*--memory-size 428000 or"):
        checks.check_memory(10**6, 7000, available)
