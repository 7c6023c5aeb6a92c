"""Gives each test a fresh TensorFlow graph, and fails a test that leaves something behind.

Left behind means: a thread, a child process, an environment variable, a log directory that the
logger still writes to, or a `train_log` folder beside the sources. TensorFlow is loaded only
when a test below `tests/` needs it, so the rows without TensorFlow use this file as well.
"""

import contextlib
import gc
import importlib.util
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.contracts")

HERE = Path(__file__).parent
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None

# Test packages and modules that must pass where TensorFlow is not installed.
WITHOUT_TENSORFLOW = {
    "utils",
    "command",
    "dataflow",
    "launch",
    "RL",
    "report",
    "runs",
    "test_advice.py",
    "test_conftest.py",
    "test_docs.py",
    "test_import_cost.py",
    "test_install_lines.py",
    "test_layers.py",
    "test_public_names.py",
}

# Those that load it where it is installed; scripts/test runs the others apart, the light ones.
LOADING = {"command", "test_docs.py", "test_public_names.py"}
LIGHT = WITHOUT_TENSORFLOW - (LOADING if HAS_TENSORFLOW else set())

# Set by libraries when they are imported, not by us; PYTEST_CURRENT_TEST by pytest itself.
FOREIGN_VARIABLES = {
    "ENABLE_RUNTIME_UPTIME_TELEMETRY",
    "HDF5_PLUGIN_PATH",
    "KMP_DUPLICATE_LIB_OK",
    "KMP_INIT_AT_FORK",
    "LD_LIBRARY_PATH",
    "PYGAME_HIDE_SUPPORT_PROMPT",
    "PYTEST_CURRENT_TEST",
    "TF2_BEHAVIOR",
    "TF_CPP_MIN_LOG_LEVEL",
    "TPU_ML_PLATFORM",
    "TPU_ML_PLATFORM_VERSION",
}

# Threads that live as long as the process and belong to no test: tqdm's monitor, and the thread
# that feeds a multiprocessing queue.
FOREIGN_THREADS = {"TMonitor", "QueueFeederThread"}

# How long a thread or process that was told to stop may take to be gone.
GRACE_SECONDS = 2.0

if HAS_TENSORFLOW:
    collect_ignore = []
else:
    collect_ignore = sorted(
        str(path)
        for path in HERE.iterdir()
        if (path.is_dir() or path.name.startswith("test_"))
        and path.name not in WITHOUT_TENSORFLOW | {"__pycache__"}
    )


def pytest_configure(config):
    """Lets Ctrl-C be tested in a background job; makes property tests draw the same cases."""
    # A shell starts background jobs with SIGINT ignored, and child processes inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        from hypothesis import settings
    except ImportError:
        return
    settings.register_profile("tensorpack", deadline=None, derandomize=True, database=None)
    settings.load_profile("tensorpack")


def pytest_collection_finish():
    """Takes what is loaded, and the tests themselves, out of each collection of garbage."""
    gc.collect()
    gc.freeze()


def needs_tensorflow(path):
    """True if the test file at `path` belongs to a part that imports TensorFlow."""
    return Path(str(path)).relative_to(HERE).parts[0] not in WITHOUT_TENSORFLOW


@pytest.fixture(autouse=True)
def fresh_graph(request):
    """Runs the test with a new default graph, if TensorFlow has a part in it."""
    with contextlib.ExitStack() as stack:
        path = getattr(request.node, "path", None) or request.node.fspath
        if HAS_TENSORFLOW and (needs_tensorflow(path) or "tensorflow" in sys.modules):
            import tensorflow.compat.v1 as tf

            graph = tf.Graph()
            stack.enter_context(graph.as_default())
        yield


@pytest.fixture(autouse=True)
def nothing_left_behind(fresh_graph):
    """Fails a test that leaks a thread, a process, a variable or a log directory."""
    before = _Surroundings()
    yield
    leaks = before.leaks()
    if leaks:
        pytest.fail("the test left behind: " + "; ".join(leaks))


@pytest.fixture
def log_dir(tmp_path):
    """A log directory for this test alone; the logger lets go of it afterwards."""
    from tensorpack.utils import logger

    logger.set_logger_dir(str(tmp_path / "log"))
    yield logger.get_logger_dir()
    logger.close_logger_dir()


@pytest.fixture
def lines(monkeypatch):
    """What is logged as information."""
    from tensorpack.utils import logger

    logged = []
    monkeypatch.setattr(logger, "info", logged.append)
    monkeypatch.setattr(logger, "detail", logged.append)
    return logged


class _Surroundings:
    """What is there when a test begins."""

    def __init__(self):
        self._threads = set(threading.enumerate())
        self._processes = set(_child_pids())
        self._variables = _variables()
        self._log_dir = _log_dir()
        self._default_log_dir = os.path.exists("train_log")

    def leaks(self):
        """Sentences about all that is new, after those that are about to leave have left."""
        deadline = time.monotonic() + GRACE_SECONDS
        threads, processes = self._new_threads(), self._new_processes()
        while (threads or processes) and time.monotonic() < deadline:
            time.sleep(0.02)
            threads, processes = self._new_threads(), self._new_processes()
        found = [f"thread {thread.name!r}" for thread in threads]
        found += [f"process {pid} ({command})" for pid, command in processes.items()]
        found += [f"environment variable {name}" for name in self._changed_variables()]
        if _log_dir() != self._log_dir:
            found.append(f"log directory {_log_dir()!r}, in use (take the fixture log_dir)")
        if os.path.exists("train_log") and not self._default_log_dir:
            found.append(f"folder {os.path.abspath('train_log')}")
        return found

    def _new_threads(self):
        return [
            thread
            for thread in threading.enumerate()
            if thread not in self._threads
            and type(thread).__name__ not in FOREIGN_THREADS
            and thread.name not in FOREIGN_THREADS
            # Threads of C++ libraries that came to call Python are nobody's to join.
            and not isinstance(thread, threading._DummyThread)
        ]

    def _new_processes(self):
        multiprocessing.active_children()  # reaps those that have ended
        commands = {pid: _command(pid) for pid in _child_pids() if pid not in self._processes}
        return {
            pid: command
            for pid, command in commands.items()
            if command is not None
            and "multiprocessing.resource_tracker" not in command
            and "multiprocessing.semaphore_tracker" not in command
            and "multiprocessing.forkserver" not in command
        }

    def _changed_variables(self):
        now = _variables()
        return sorted(
            name for name in {*now, *self._variables} if now.get(name) != self._variables.get(name)
        )


def _variables():
    return {name: value for name, value in os.environ.items() if name not in FOREIGN_VARIABLES}


def _log_dir():
    logger = sys.modules.get("tensorpack.utils.logger")
    get_logger_dir = getattr(logger, "get_logger_dir", None)
    return get_logger_dir() if get_logger_dir is not None else None


def _child_pids():
    """Process ids of all children; those of `multiprocessing` alone where /proc has no list."""
    pids = {child.pid for child in multiprocessing.active_children()}
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids.update(int(pid) for pid in children.read_text().split())
    return pids


def _command(pid):
    """The command line of a process; None if it is gone or waits only to be reaped."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except OSError:
        return None
    # One that is just being started has no command line yet.
    return None if state == "Z" else text.replace(b"\0", b" ").decode(errors="replace").strip()
