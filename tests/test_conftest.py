"""What a test leaves behind is found and named."""

import functools
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests.checks import ROOT

LEAKY = """
import os, signal, subprocess, sys, threading, time, warnings

def test_thread():
    threading.Thread(target=time.sleep, args=(20,), name="sleeper", daemon=True).start()

def test_process():
    global process
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)"])

def test_process_is_ended():
    process.kill()
    process.wait()

def test_variable():
    os.environ["LEFT_BEHIND"] = "1"

def test_folder():
    os.mkdir("train_log")

def test_warning():
    warnings.warn("old", DeprecationWarning)

def test_interrupt():
    child = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT))"]
    assert b"default_int_handler" in subprocess.check_output(child)

def test_short_thread():
    threading.Thread(target=time.sleep, args=(0.1,)).start()

def test_short_process():
    subprocess.check_call([sys.executable, "-c", "pass"])
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What pytest says about `LEAKY`, run with our conftest and settings."""
    root = tmp_path_factory.mktemp("project")
    folder = root / "tests" / "utils"
    folder.mkdir(parents=True)
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    assert "GRACE_SECONDS = 2.0" in conftest
    (root / "tests" / "conftest.py").write_text(
        conftest.replace("GRACE_SECONDS = 2.0", "GRACE_SECONDS = 0.5"), encoding="utf-8"
    )
    (folder / "test_leaky.py").write_text(LEAKY, encoding="utf-8")
    shutil.copy(str(ROOT / "pyproject.toml"), str(root))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-p", "no:randomly"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=str(root),
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_IGN),
    )
    return done.stdout


@pytest.mark.parametrize(
    "test, left",
    [
        ("test_thread", "thread 'sleeper'"),
        ("test_process", r"process \d+ \(.*time.sleep"),
        ("test_variable", "environment variable LEFT_BEHIND"),
        ("test_folder", "folder .*train_log"),
    ],
)
def test_a_leak_is_named(report, test, left):
    assert re.search(f"Failed: the test left behind: {left}", report), report
    assert re.search(rf"^ERROR tests/utils/test_leaky.py::{test} ", report, re.MULTILINE)


def test_a_warning_is_an_error(report):
    assert re.search(r"^FAILED tests/utils/test_leaky.py::test_warning ", report, re.MULTILINE)


def test_nothing_else_is_reported(report):
    """What ends in time is not a leak, and children hear an interrupt also in a background job."""
    assert re.search(r"1 failed, 8 passed, 4 errors", report), report
