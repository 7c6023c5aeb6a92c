"""Two runs keep out of each other's log directory."""

import os
import signal
import subprocess
import sys

import pytest

from tensorpack.utils import logger
from tensorpack.utils._directory_lock import DirectoryInUse, DirectoryLock, is_locked
from tests.checks import ROOT

pytestmark = pytest.mark.usefixtures("own_log")
OTHER_RUN = (
    "import sys\n"
    "from tensorpack.utils import logger\n"
    "logger.set_logger_dir(sys.argv[1], 'k')\n"
    "sys.stderr.write('ready\\n')\n"
    "sys.stdin.read()\n"
)


@pytest.fixture
def other_run(tmp_path):
    """Another process that logs to a directory; ends when its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER_RUN, str(tmp_path / "log")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    assert process.stderr.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("action", ["k", "b", "d"])
@pytest.mark.fault_row(41)
def test_a_directory_in_use_is_refused_by_every_action(other_run, tmp_path, action):
    before = sorted(os.listdir(str(tmp_path)))
    with pytest.raises(DirectoryInUse, match=f"another run, process {other_run.pid}"):
        logger.set_logger_dir(str(tmp_path / "log"), action)
    assert sorted(os.listdir(str(tmp_path))) == before
    assert (tmp_path / "log" / "log.log").exists()


@pytest.mark.fault_row(41)
def test_a_new_directory_can_be_taken_beside_it_and_its_own_when_it_was_killed(other_run, tmp_path):
    logger.set_logger_dir(str(tmp_path / "log"), "n")
    assert logger.get_logger_dir() == str(tmp_path / "log-1")
    other_run.kill()
    other_run.wait()
    logger.set_logger_dir(str(tmp_path / "log"), "k")
    assert (tmp_path / "log" / ".lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("action", [None, "k", "d"])
def test_one_process_may_set_its_directory_again(tmp_path, action):
    for _ in range(3):
        logger.set_logger_dir(str(tmp_path / "log"), action)
        assert logger.get_logger_dir() == str(tmp_path / "log")
        assert (tmp_path / "log" / ".lock").read_text() == f"{os.getpid()}\n"


def test_leaving_a_directory_sets_it_free(tmp_path):
    logger.set_logger_dir(str(tmp_path / "first"))
    with pytest.raises(DirectoryInUse):
        DirectoryLock(str(tmp_path / "first"))
    logger.set_logger_dir(str(tmp_path / "second"))
    DirectoryLock(str(tmp_path / "first")).release()


FORKING = (
    "import os, time; from multiprocessing import get_context\n"
    "from tensorpack.utils import logger; logger.set_logger_dir('run')\n"
    "def wait(): print(os.getpid(), flush=True); time.sleep(60)\n"
    "child = get_context('fork').Process(target=wait) if {} else None\n"
    "if child is not None: child.start()\n"
    "elif os.fork() == 0: wait()\n"
    "time.sleep(60)\n"
)


@pytest.mark.parametrize("by_multiprocessing", [True, False])
def test_a_child_that_survives_its_run_has_no_lock_or_the_error_says_so(
    tmp_path, by_multiprocessing
):
    command = [sys.executable, "-c", FORKING.format(by_multiprocessing)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=str(tmp_path), env=environment, stdout=subprocess.PIPE, universal_newlines=True
    ) as run:
        child = next(int(line) for line in run.stdout if line.strip().isdigit())
        directory = str(tmp_path / "run")
        try:
            assert is_locked(directory)
            run.kill()
            run.wait()
            if by_multiprocessing:
                assert not is_locked(directory)
                DirectoryLock(directory).release()
            else:
                with pytest.raises(DirectoryInUse, match=f"{run.pid} or one that it started"):
                    DirectoryLock(directory)
        finally:
            os.kill(child, signal.SIGKILL)
