"""What a run goes on from, for each policy and each state of the log directory."""

import json
import os
from pathlib import Path

import pytest

from tensorpack.callbacks import Callback, CallbackFactory, EarlyStop, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import FakeData
from tensorpack.tfutils.checkpoint import CheckpointCorrupt, CheckpointStore, save_checkpoint_vars
from tensorpack.tfutils.sessinit import JustCurrentSession
from tensorpack.train import AutoResumeTrainConfig, SimpleTrainer, TrainConfig
from tensorpack.train.resume import check_policy, find_resumption, prepare_log_dir
from tensorpack.utils import logger
from tests.helpers import TinyModel
from tests.tiers import first_fast


@pytest.fixture
def log_dir(tmp_path):
    yield str(tmp_path / "log")
    logger.close_logger_dir()


def save(directory, *steps):
    """Saves a state of each of these steps."""
    store = CheckpointStore(directory)
    for step in steps:
        store.save(
            step, lambda path, step=step: save_checkpoint_vars({"v": step}, path), {"step": step}
        )


def cut(path):
    with open(path, "r+b") as file:
        file.truncate(10)


def test_never_finds_nothing_and_warns_of_what_is_left(log_dir, capsys):
    assert find_resumption("never", log_dir) is None
    assert find_resumption("never", None) is None
    assert capsys.readouterr().out == ""
    save(log_dir, 4)
    assert find_resumption("never", log_dir) is None
    assert "an earlier one saved model-4" in capsys.readouterr().out


def test_auto_finds_the_newest_or_starts_over(log_dir, capsys):
    assert find_resumption("auto", log_dir) is None
    assert "a new run starts" in capsys.readouterr().out
    save(log_dir, 4, 8)
    found = find_resumption("auto", log_dir)
    assert found == (os.path.join(log_dir, "model-8"), {"step": 8}, None)


def test_must_needs_one(log_dir):
    with pytest.raises(RuntimeError, match="set_logger_dir"):
        find_resumption("must", None)
    with pytest.raises(FileNotFoundError, match="There is no checkpoint in .*log"):
        find_resumption("must", log_dir)
    save(log_dir, 4)
    assert find_resumption("must", log_dir).state == {"step": 4}


@pytest.mark.parametrize(
    "options, resume",
    [
        ({"starting_epoch": 3}, "auto"),
        ({"always_resume": False}, "auto"),
        ({"always_resume": False, "starting_epoch": 3}, "never"),
        ({"always_resume": False, "session_init": JustCurrentSession()}, "never"),
    ],
)
def test_the_config_of_later_scripts(options, resume):
    config = AutoResumeTrainConfig(dataflow=FakeData([[4]], size=2), **options)
    assert config.resume == resume


def test_the_newest_is_loaded_as_in_later_scripts(log_dir):
    logger.set_logger_dir(log_dir)
    assert AutoResumeTrainConfig.get_sessinit_resume() is None
    save(log_dir, 4, 8)
    v = tf.get_variable("v", [], tf.int64)
    with tf.Session() as sess:
        AutoResumeTrainConfig.get_sessinit_resume(log_dir).init(sess)
        assert sess.run(v) == 8


@pytest.mark.parametrize(
    "suffix", first_fast([".state", ".index", ".manifest.json", ".data-00000-of-00001"], 2)
)
def test_a_damaged_one_is_named_and_the_one_before_is_used(log_dir, suffix, capsys):
    save(log_dir, 4, 8)
    cut(os.path.join(log_dir, "model-8" + suffix))
    assert find_resumption("auto", log_dir).state == {"step": 4}
    assert f"Skipping the checkpoint {log_dir}/model-8: " in capsys.readouterr().out


def test_a_bad_policy():
    with pytest.raises(ValueError, match="never, auto, must, or the path"):
        check_policy("no/such/model-3")


class TestPrepareLogDir:
    def test_resuming_keeps_the_directory(self, log_dir):
        save(log_dir, 4)
        assert prepare_log_dir(log_dir, "auto") == "auto"
        assert logger.get_logger_dir() == log_dir
        logger.close_logger_dir()
        assert prepare_log_dir(log_dir, "must") == "must"
        assert logger.get_logger_dir() == log_dir

    def test_a_path_brings_its_directory(self, log_dir, tmp_path):
        save(log_dir, 4)
        for path in (os.path.join(log_dir, "model-4"), log_dir):
            assert prepare_log_dir(str(tmp_path / "other"), path) == path
            assert logger.get_logger_dir() == log_dir
            logger.close_logger_dir()

    def test_never_takes_a_new_one_and_says_what_could_be_resumed(self, log_dir, capsys):
        save(log_dir, 4)
        assert prepare_log_dir(log_dir) == "never"
        assert logger.get_logger_dir() == log_dir + "-1"
        assert f"{log_dir} holds a run that saved model-4. It is resumed by --resume auto" in (
            capsys.readouterr().out
        )

    @pytest.mark.parametrize("answer, policy", [("k", "auto"), ("b", "never"), ("d", "never")])
    def test_who_answers_keep_resumes(self, log_dir, monkeypatch, answer, policy):
        save(log_dir, 4)
        monkeypatch.setattr(logger, "is_terminal", lambda stream: True)
        monkeypatch.setattr("builtins.input", lambda: answer)
        assert prepare_log_dir(log_dir) == policy
        assert logger.get_logger_dir() == log_dir

    def test_a_second_run_of_a_process_is_not_resumed_unasked(self, log_dir):
        assert prepare_log_dir(log_dir) == "never"
        assert prepare_log_dir(log_dir) == "never"
        assert logger.get_logger_dir() == log_dir  # nothing was saved there
        save(log_dir, 4)
        assert prepare_log_dir(log_dir) == "never"
        assert logger.get_logger_dir() == log_dir + "-1"

    def test_a_path_without_a_checkpoint_is_left_as_it_is(self, tmp_path):
        (tmp_path / "empty").mkdir()
        (tmp_path / "letter").write_text("Dear trainer")
        with pytest.raises(FileNotFoundError, match="no checkpoint in .*empty"):
            prepare_log_dir(str(tmp_path), str(tmp_path / "empty"))
        with pytest.raises(CheckpointCorrupt, match="letter is not a checkpoint"):
            prepare_log_dir(str(tmp_path), str(tmp_path / "letter"))
        assert logger.get_logger_dir() is None
        assert sorted(os.listdir(str(tmp_path))) == ["empty", "letter"]
        assert os.listdir(str(tmp_path / "empty")) == []


class Counting(Callback):
    """Counts its turns; comes behind the saver."""

    turns = 0

    def _trigger_epoch(self):
        self.turns += 1
        self.trainer.monitors.put_scalar("turns", self.turns)
        if self.fails:
            raise ZeroDivisionError


def start(directory, max_epoch=2, fails=False):
    """Starts a run, or resumes it; returns how often the epoch of a callback ended."""
    counting = Counting()
    counting.fails = fails
    logger.set_logger_dir(directory, "keep")
    with tf.Graph().as_default():
        trainer = SimpleTrainer(
            TrainConfig(
                model=TinyModel(),
                dataflow=FakeData([[4], [4]], size=8),
                callbacks=[ModelSaver(), counting],
                steps_per_epoch=2,
                max_epoch=max_epoch,
                resume="auto",
            )
        )
        try:
            trainer.train()
        except ZeroDivisionError:
            pass
    assert trainer.loop.steps_taken == 2 * trainer.epoch_num
    return counting.turns, trainer


def test_a_run_that_is_over_says_so_and_finishes_its_last_epoch(log_dir, capsys):
    assert start(log_dir)[0] == 2
    capsys.readouterr()
    turns, trainer = start(log_dir)
    assert turns == 1 and trainer.loop.steps_taken == 4
    stats = json.loads(Path(log_dir, "stats.json").read_text(encoding="utf-8"))
    assert [each["epoch_num"] for each in stats] == [1, 2]
    out = capsys.readouterr().out
    over = "The run is over: it has its 2 epochs. For a new one, give another log directory, delete"
    assert out.count(over) == 1 and "Start Epoch" not in out and "are dropped" not in out
    assert start(log_dir, max_epoch=3)[0] == 2  # the rest of the epoch that was saved, and another


def stopped_early(directory, patience):
    """Starts a run that does not learn, or resumes it; returns the trainer."""
    logger.set_logger_dir(directory, "keep")
    constant = CallbackFactory(trigger=lambda cb: cb.trainer.monitors.put_scalar("error", 1.0))
    callbacks = [ModelSaver(), constant, EarlyStop("error", patience)]
    data = {"model": TinyModel(), "dataflow": FakeData([[4], [4]], size=8)}
    with tf.Graph().as_default():
        trainer = SimpleTrainer(
            TrainConfig(callbacks=callbacks, steps_per_epoch=2, max_epoch=9, resume="auto", **data)
        )
        trainer.train()
    return trainer


def test_a_run_that_was_stopped_early_ends_at_once_unless_it_shall_wait_longer(log_dir, capsys):
    assert stopped_early(log_dir, 2).loop.steps_taken == 6
    out = capsys.readouterr().out
    assert "Epoch 3 (global_step 6) finished" in out and "Start Epoch 4" not in out
    assert stopped_early(log_dir, 1).loop.steps_taken == 6
    out = capsys.readouterr().out
    assert "did not become better than 1 at step 2 in 2 values" in out and "Start Epoch" not in out
    assert stopped_early(log_dir, 3).loop.steps_taken == 8


def test_an_epoch_that_was_left_in_the_middle_is_not_over(log_dir):
    assert start(log_dir, max_epoch=1, fails=True)[0] == 1
    assert start(log_dir, max_epoch=1)[0] == 1
