"""What is wrong with a command line on this machine: said in a line, with exit code 2."""

import os

import checks
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import save_checkpoint_vars
from tensorpack.utils import logger
from tests.RL.players import breakout_rom


@pytest.fixture(autouse=True)
def no_log_dir():
    yield
    logger.close_logger_dir()


def refusal(capsys, function, *args):
    """What the program says when it ends."""
    with pytest.raises(SystemExit) as exit:
        function(*args)
    assert exit.value.code == 2
    return " ".join(capsys.readouterr().err.split()).partition("error: ")[2]


def test_only_the_errors_that_are_named_are_refusals(capsys):
    def fail(error):
        with checks.refusing("--flag 3", ValueError):
            raise error

    assert refusal(capsys, fail, ValueError("too large")) == "--flag 3: too large"
    with pytest.raises(OSError, match="disk"):
        fail(OSError("disk"))


def test_a_game_that_is_there(capsys):
    assert checks.find_game(breakout_rom()) == breakout_rom()


def test_weights(tmp_path, capsys):
    (tmp_path / "letter").write_text("Dear network")
    for path in [str(tmp_path), str(tmp_path / "letter")]:
        assert refusal(capsys, checks.find_weights, path).startswith(f"--load {path}: The")
    prefix = str(tmp_path / "model-5")
    save_checkpoint_vars({"a": 1.0}, prefix)
    assert checks.find_weights(prefix) == prefix


@pytest.mark.skipif(not tf.__version__.startswith("1."), reason="TensorFlow 2 has bfloat16")
def test_a_precision_that_tensorflow_does_not_have(capsys):
    said = refusal(capsys, checks.check_precision, "bf16")
    assert said.startswith("--precision bf16: precision='bf16' needs TensorFlow 2")


def test_a_log_directory_that_cannot_be_had(tmp_path, capsys):
    path = str(tmp_path / "letter")
    (tmp_path / "letter").write_text("Dear log")
    for where in [path, os.path.join(path, "run")]:
        said = refusal(capsys, checks.prepare_log_dir, where, "never")
        assert said.startswith(f"--logdir {where}: [Errno")


def test_a_log_directory_without_a_run_is_not_made_to_resume_it(tmp_path, capsys):
    path = str(tmp_path / "run")
    said = refusal(capsys, checks.prepare_log_dir, path, "must")
    assert said == f"--logdir {path}: there is no checkpoint in it, and --resume must needs one"
    assert os.listdir(str(tmp_path)) == []
    said = refusal(capsys, checks.prepare_log_dir, path, str(tmp_path))
    assert said.startswith(f"--resume {tmp_path}: There is no checkpoint in")
    assert os.listdir(str(tmp_path)) == []
    assert checks.prepare_log_dir(path, "auto") == "auto"
