import threading

import pytest

from tensorpack.callbacks._background import BackgroundJob


def test_a_job_runs_elsewhere_and_is_waited_for():
    seen, go = [], threading.Event()
    job = BackgroundJob("Job")
    job.start(lambda: (go.wait(10), seen.append(threading.current_thread().name)))
    assert seen == []
    go.set()
    job.wait()
    assert seen == ["Job"]


def test_its_error_is_raised_once_by_who_waits():
    def breaks():
        raise LookupError("broken")

    job = BackgroundJob("Job")
    job.start(breaks)
    with pytest.raises(LookupError, match="broken"):
        job.wait()
    job.wait()
    job.start(lambda: None)
    job.wait()


def test_only_one_at_a_time():
    job = BackgroundJob("Job")
    job.start(lambda: None)
    with pytest.raises(RuntimeError, match="Job is busy"):
        job.start(lambda: None)
    job.wait()
