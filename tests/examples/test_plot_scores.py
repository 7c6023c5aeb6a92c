"""The program that draws the scores of a run."""

import json

import numpy as np
import plot_scores
import pytest

from tests.examples.catch import CatchPlayer
from tests.examples.running import refusal

EPOCHS = [
    {"epoch_num": 1, "global_step": 100, "cost": 0.5},
    {"epoch_num": 2, "global_step": 200, "expreplay/mean_score": 1.5},
    {"epoch_num": 3, "global_step": 300, "expreplay/mean_score": 2.0, "mean_score": 3.0},
]


@pytest.fixture
def logdir(tmp_path):
    def write(epochs):
        (tmp_path / "stats.json").write_text(json.dumps(epochs))
        return str(tmp_path)

    return write


def test_a_curve_has_the_epochs_that_have_a_score(logdir):
    assert plot_scores.read_scores(logdir(EPOCHS)) == {
        "expreplay/mean_score": ([200, 300], [1.5, 2.0]),
        "mean_score": ([300], [3.0]),
    }


@pytest.mark.parametrize("epochs", [[], EPOCHS[:1]])
def test_a_run_without_scores_is_refused(logdir, epochs):
    with pytest.raises(ValueError, match=f"has {len(epochs)} epochs and no scores"):
        plot_scores.read_scores(logdir(epochs))


def test_a_directory_without_a_run_is_refused(tmp_path, capsys):
    assert "stats.json cannot be read" in refusal(capsys, plot_scores.main, [str(tmp_path)])


def test_random_games_are_whole_and_played_by_chance():
    with CatchPlayer(num_envs=4) as player:
        scores = plot_scores.play_at_random(player, 60)
    assert len(scores) == 60 and set(scores) == {-1.0, 1.0}
    assert np.mean(scores) < 0  # to catch the ball takes more than chance


def test_the_picture_has_the_curves_and_the_random_player(logdir, tmp_path):
    picture = tmp_path / "scores.svg"
    curves = plot_scores.read_scores(logdir(EPOCHS))
    plot_scores.draw(str(picture), curves, [1.0, 2.0], "A run")
    text = picture.read_text()
    for label in ["A run", "mean of an evaluation", "mean while learning", "1.50, 2 games"]:
        assert label in text  # as a comment beside its outlines
    assert "best game" not in text
