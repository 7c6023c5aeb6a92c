"""What the workers of a group resume from, here with the answers of the others given."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tensorpack.callbacks import ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.train.group.resume import agree_on_state, common_step
from tensorpack.train.resume import RunState
from tests.helpers import config
from tests.train.test_base import Counting


@pytest.fixture
def saved(log_dir):
    """A log directory with the states at the steps 2, 4 and 6."""
    with tf.Graph().as_default():
        Counting(config([ModelSaver()], max_epoch=3)).train()
    return Path(log_dir)


def gathering(*others, damaged=(), trained=True):
    """Adds to the numbers of this worker those of others, each with states at these steps. They are
    asked about one after the other, and have `damaged` or not; and `trained` in their directories.
    """
    answers = iter(damaged)

    def gather(values):
        values = np.asarray(values, np.float64)
        if len(values) == 1:
            return np.stack([values] + [np.float64([not next(answers, False)])] * len(others))
        rows = [[trained, *steps, *[-1] * (len(values) - 1 - len(steps))] for steps in others]
        return np.stack([values, *np.float64(rows)])

    return gather


@pytest.mark.parametrize(
    "others, step",
    [([[2, 4, 6]], 6), ([[2, 4]], 4), ([[6, 8]], 6), ([[2, 4, 6], [2, 8]], 2)],
)
def test_it_is_the_newest_one_that_all_have(others, step, saved):
    assert common_step(str(saved), gathering(*others)) == step


def test_one_that_is_damaged_at_any_worker_is_skipped(saved, capsys):
    gather = gathering([2, 4, 6], damaged=[True])
    assert common_step(str(saved), gather) == 4
    assert "The state at step 6 is damaged at a worker" in capsys.readouterr().out
    (saved / "model-6.data-00000-of-00001").write_bytes(b"")
    assert common_step(str(saved), gathering([2, 4, 6])) == 4
    assert "model-6 cannot be used" in capsys.readouterr().out
    assert common_step(str(saved), gathering([2, 4, 6], damaged=[False, True])) == 2


def test_a_group_that_was_ended_in_its_first_save_starts_again(saved, tmp_path):
    (tmp_path / "begun [1]").mkdir()
    begun = str(tmp_path / "begun [1]")
    assert common_step(begun, gathering([], [])) is None
    shutil.copy(str(next(saved.glob("graph-*.meta"))), begun)  # from its first step on
    assert common_step(begun, gathering([2], [])) is None


@pytest.mark.parametrize(
    "has, others, damaged, newest",
    [
        ([2, 4, 6], [[3, 5], []], (), r"\[6, 5, None\]"),
        ([], [[2]], (), r"\[None, 2\]"),  # this one has another directory
        ([6], [[]], None, r"\[6, None\]"),  # the other has one
        ([6], [[6]], [True], r"\[6, 6\]"),  # that of the other is damaged
    ],
)
def test_states_without_a_whole_one_in_common_are_an_error(has, others, damaged, newest, saved):
    for step in {2, 4, 6} - set(has):
        for path in saved.glob(f"model-{step}.*"):
            path.unlink()
    if not has:
        next(saved.glob("graph-*.meta")).unlink()
    gather = gathering(*others, damaged=damaged or (), trained=damaged is not None)
    said = rf"newest ones are at the steps {newest}\. .* has looked in .* each with its log dir"
    with pytest.raises(RuntimeError, match=said):
        common_step(str(saved), gather)


def chosen(resume, gather):
    """What a worker resumes from: its policy and its step, afterwards."""
    trainer = Counting(config([ModelSaver()], max_epoch=4, resume=resume))
    state = RunState(trainer)
    agree_on_state(trainer.config, state, gather)
    return trainer.config.resume, state.step


def test_the_policy_of_a_worker(saved):
    assert chosen("never", None) == ("never", None)
    assert chosen("auto", gathering([2, 4])) == ("auto", 4)
    assert chosen("must", gathering([2, 4])) == ("must", 4)
    with pytest.raises(ValueError, match='resume with "auto" or "must", .* got resume='):
        chosen(str(saved), None)


def test_without_a_state_must_is_an_error_and_auto_a_new_run(log_dir):
    assert chosen("auto", gathering([])) == ("never", None)
    with pytest.raises(FileNotFoundError, match='no state of all .* and resume="must" needs'):
        chosen("must", gathering([]))
