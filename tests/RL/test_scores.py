"""Scores read from the files of runs, and their means over windows and runs."""

import json

import numpy as np
import pytest

from tensorpack.RL import read_scores

EPOCHS = [
    {"epoch_num": 1, "global_step": 100, "agent_steps": 500, "hours": 1.0, "cost": 0.5},
    {"epoch_num": 2, "global_step": 200, "agent_steps": 900, "hours": 3.0, "mean_score": 2.5},
]
OLD = [
    {"epoch_num": 1, "global_step": 100, "cost": 0.5},
    {"epoch_num": 2, "global_step": 200, "expreplay/mean_score": 1.5},
    {"epoch_num": 3, "global_step": 300, "expreplay/mean_score": 2.0, "mean_score": 3.0},
]
# Of a game that ends at the end of a window, and one that ends a step later.
GAMES = [(100, 1), (250, 3), (500, 5), (501, 8), (700, 2), (820, 30)]


@pytest.fixture
def write(tmp_path):
    """Writes a log directory and returns its path."""

    def write(epochs=EPOCHS, games=GAMES, name="run"):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "stats.json").write_text(json.dumps(epochs))
        if games is not None:
            rows = "".join(f"{step},{score:.1f},7\n" for step, score in games)
            (directory / "episodes.csv").write_text("step,score,length\n" + rows)
        return str(directory)

    return write


def same(curve, *columns):
    assert len(curve) == len(columns)
    for array, expected in zip(curve, columns):
        np.testing.assert_allclose(array, expected)


def test_a_window_has_the_games_that_end_in_it_and_is_none_until_it_is_whole(write):
    run = read_scores(write())
    windows = [(0, 250), (250, 500), (500, 750), (750, 1000), (710, 810)]
    assert run.window_means(windows) == [2, 5, 5, None, None]


def test_a_curve_of_training_has_a_point_in_the_middle_of_each_window(write):
    run = read_scores(write())
    same(run.training_curve("steps", 300), [150, 450, 750], [2, 6.5, 16])
    # between two epochs in proportion
    same(run.training_curve("hours", 300), [0.3, 0.9, 2.25], [2, 6.5, 16])
    same(run.training_curve("updates", 300), [30, 90, 162.5], [2, 6.5, 16])
    same(run.evaluation_curve("hours"), [3], [2.5])
    # and none for a window without games
    same(run.training_curve("steps", 100), [50, 250, 450, 550, 650, 850], [1, 3, 5, 8, 2, 30])


def test_a_run_without_single_games_has_its_epochs_over_updates_only(write):
    run = read_scores(write(OLD, games=None))
    same(run.training_curve("updates", 10), [200, 300], [1.5, 2])
    same(run.evaluation_curve("updates"), [300], [3])
    with pytest.raises(ValueError, match="no agent_steps.*take updates"):
        run.training_curve("steps", 10)
    with pytest.raises(ValueError, match="no episodes.csv"):
        run.window_means([(0, 10)])


def test_a_run_without_scores_or_with_damaged_ones_is_refused(write, tmp_path):
    with pytest.raises(ValueError, match="has 1 epochs and no scores"):
        read_scores(write(OLD[:1], games=[], name="none"))
    directory = write()
    (tmp_path / "run" / "episodes.csv").write_text("step,score,length\n5\n")
    with pytest.raises(ValueError, match=r"episodes.csv cannot be read"):
        read_scores(directory)
