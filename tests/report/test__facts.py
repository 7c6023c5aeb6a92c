import re

import pytest

from tensorpack.report._facts import attempts_of, duration_text, facts_of, headline_of
from tensorpack.report._read import Run


def run_of(*attempts, epochs=()):
    return Run("/x", list(attempts), list(epochs), [], [], [], [], [], [], [])


def text_of(html):
    return re.sub(" +", " ", re.sub("<[^>]*>", " ", html)).strip()


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0.25, "0.25 s"),
        (59.94, "59.9 s"),
        (60, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (86399, "23 h 59 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations(seconds, text):
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    "attempt, css, text",
    [
        ({"result": "finished", "epoch": 3, "step": 9}, "good", "finished epoch 3, step 9"),
        ({"result": "stopped", "message": "SIGINT"}, "open", "stopped SIGINT"),
        ({"result": "failed", "message": "E: x"}, "bad", "failed E: x"),
        ({"result": "lost"}, "bad", "lost the process crashed or was killed"),
        ({"host": "elsewhere"}, "open", "running"),
        ({"result": "finished", "checkpoint": "model-9"}, "good", "last checkpoint model-9"),
    ],
)
def test_the_headline(attempt, css, text):
    headline = headline_of(run_of(attempt))
    assert f'class="badge {css}"' in headline and text in text_of(headline)


def test_the_time_of_all_attempts_counts():
    run = run_of({"seconds": 3600, "result": "lost"}, {"seconds": 1800.5, "result": "finished"})
    assert "after 1 h 30 min" in text_of(headline_of(run))


def test_without_a_record_the_statistics_say_how_far_it_came():
    run = run_of(epochs=[{"global_step": 5}, {"global_step": 7}])
    assert "Its statistics end at step 7." in headline_of(run)
    assert facts_of(run) == attempts_of(run) == ""


def test_how_it_was_trained():
    training = {"trainer": "T", "workers": 2, "towers": 4, "precision": "bf16", "xla": True}
    training.update(steps_per_epoch=10, resumed_from="model-3", seed=7, deterministic=True)
    text = text_of(facts_of(run_of({"training": training, "git": {"commit": "c", "dirty": None}})))
    assert "T, 2 workers, 4 towers, precision bf16, XLA, 10 steps per epoch, resumed" in text
    assert "7, deterministic" in text and "c , changes not known" in text


def test_the_table_of_attempts():
    first = {"started": "2026-01-31T12:00:00Z", "seconds": 61, "result": "stopped", "step": 1000}
    second = {
        "training": {"first_step": 1000},
        "git": {"commit": "0123456789abc"},
        "result": "lost",
    }
    text = text_of(attempts_of(run_of(first, second)))
    assert "2026-01-31 12:00:00 UTC 1 min 1 s 1,000 stopped" in text
    assert text.endswith("1,000 lost 0123456789")
