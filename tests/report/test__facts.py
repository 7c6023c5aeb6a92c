import os
import re
import socket

import pytest

from tensorpack.report._facts import attempts_of, duration_text, facts_of, headline_of, result_of
from tensorpack.report._read import Run
from tensorpack.utils._directory_lock import DirectoryLock


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
        ({"host": "elsewhere"}, "open", "unknown nothing has its directory locked"),
        ({"result": "finished", "checkpoint": "model-9"}, "good", "last checkpoint model-9"),
    ],
)
def test_the_headline(attempt, css, text):
    headline = headline_of(run_of(attempt))
    assert f'class="badge {css}"' in headline and text in text_of(headline)


def test_without_a_record_the_statistics_say_how_far_it_came():
    run = run_of(epochs=[{"global_step": 5}, {"global_step": 7}])
    assert "Its statistics end at step 7." in headline_of(run)
    assert facts_of(run) == attempts_of(run) == ""


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


@pytest.mark.parametrize(
    "host, locked, result",
    [
        (socket.gethostname(), True, "running"),
        (socket.gethostname(), False, "lost"),  # another process has its number
        ("elsewhere", True, "running"),
        ("elsewhere", False, "unknown"),
    ],
)
def test_the_lock_tells_whether_a_run_lives(tmp_path, host, locked, result):
    attempt = {"host": host, "process": os.getpid()}
    with DirectoryLock(str(tmp_path)) as lock:
        if not locked:
            lock.release()
        assert result_of(attempt, str(tmp_path)) == result
        run = run_of(attempt, attempt)._replace(directory=str(tmp_path))
        assert re.findall("running|lost|unknown", text_of(attempts_of(run))) == ["lost", result]


def test_a_process_that_is_gone_does_not_live_in_a_directory_that_another_one_has(tmp_path):
    attempt = {"host": socket.gethostname(), "process": 2**22 + 1}
    with DirectoryLock(str(tmp_path)):
        assert result_of(attempt, str(tmp_path)) == "lost"
