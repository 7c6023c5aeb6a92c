"""The program that draws the scores of runs."""

import json

import plot_scores
import pytest
from plot_scores import Published

from tests.examples.small_dqn import refusal

PUBLISHED = Published([(0, 200), (200, 400)], {"Old": [1.0, 2.25], "New": [9.0, -10.0]}, "a paper")


@pytest.fixture
def logs(tmp_path):
    """Three log directories, `fast-1`, `fast-2` and `slow`; the first two have 400 agent steps."""
    for name, steps, score in [("fast-1", 400, 4), ("fast-2", 400, 6), ("slow", 300, 2)]:
        (tmp_path / name).mkdir()
        epochs = [
            {"epoch_num": i + 1, "global_step": at, "agent_steps": at, "mean_score": score}
            for i, at in enumerate([steps // 2, steps])
        ]
        (tmp_path / name / "stats.json").write_text(json.dumps(epochs))
        games = "".join(f"{at},{score + at // 100},50\n" for at in range(50, steps + 1, 50))
        (tmp_path / name / "episodes.csv").write_text("step,score,length\n" + games)
    (tmp_path / "fast-1.out").write_text("Not a directory, so no pattern stands for it.")
    return tmp_path


def test_a_name_stands_for_several_runs(logs):
    runs = plot_scores.read_runs([f"fast={logs}/fast-*", f"{logs}/slow/", f"fast={logs}/slow"])
    assert list(runs) == ["fast", "slow"]
    names = [run.directory.rstrip("/").split("/")[-1] for run in runs["fast"]]
    assert names == ["fast-1", "fast-2", "slow"] and len(runs["slow"]) == 1


def test_the_picture_has_every_curve_and_what_it_is_a_mean_of(logs):
    picture = logs / "scores.svg"
    runs = plot_scores.read_runs([f"fast={logs}/fast-*", f"{logs}/slow"])
    plot_scores.draw(
        str(picture), runs, "A title", window=100, chance=[1.0, 2.0], published=PUBLISHED
    )
    text = picture.read_text()
    for label in [
        *["A title", "fast: training, 2 runs", "fast: evaluations, 2 runs", "slow: training"],
        *["random player (1.50, 2 games)", "Old", "New", "score of a game"],
        "agent steps; a point of training is the mean of 100 agent steps",
    ]:
        assert f"<!-- {label} -->" in text  # a comment beside its outlines


def test_runs_of_other_steps_are_interpolated_where_all_have_values():
    x, y = plot_scores.resample([([0, 10], [0, 10]), ([5, 15], [0, 10]), ([], [])])
    assert (x.tolist(), y.tolist()) == ([5, 10], [[5, 10], [0, 5]])
    x, y = plot_scores.resample([([1, 2], [0, 0]), ([5], [0])])
    assert (len(x), len(y)) == (0, 2)


def test_the_table_has_published_scores_and_the_mean_of_the_runs(logs):
    runs = plot_scores.read_runs([f"fast={logs}/fast-*", f"{logs}/slow"])
    # the games of fast-1 score 4, 5, 5, 6 and 6, 7, 7, 8; those of fast-2 two more
    assert plot_scores.make_table(runs, PUBLISHED).splitlines() == [
        "| mean score of training, agent steps | 0-200 | 200-400 |",
        "| --- | --- | --- |",
        "| Old | 1.0 | 2.2 |",
        "| New | 9.0 | -10.0 |",
        "| **fast** (2 runs) | 6.0 | 8.0 |",
        "| **slow** (1 run) | 3.0 | - |",
    ]


def test_what_cannot_be_drawn_is_refused(logs, tmp_path, capsys):
    path = logs / "slow" / "stats.json"
    path.write_text(path.read_text().replace('"mean_score"', '"expreplay/mean_score"'))
    said = refusal(capsys, plot_scores.main, [str(path.parent), "--out", str(tmp_path / "a.svg")])
    assert "No run has a score over 25000 agent steps" in said
