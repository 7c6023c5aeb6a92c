"""Rows 11, 14 and 15 of the matrix: a worker dies, fails or hangs, or the whole run is killed."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.harness import Child

from .invariants import check
from .surroundings import Surroundings
from .test_matrix import Case

# Not run as a script or by -m: the workers would load it, and TensorFlow with it.
PROGRAM = "import sys; from tests.faults.children_child import main; main(*sys.argv[1:])"
SAYS_OF_TEARDOWN = ("Stopping work ...", "Training failed at global_step=")
CRASHES = ("Fatal Python", "Segmentation")

DEATHS = [
    Case(14, "kill", 1, error=r".*WorkerDied: Worker 'kill' \(pid \d+\) was killed by SIGKILL"),
    Case(
        row=14,
        name="crash",
        code=1,
        error=r".*WorkerDied: Worker 'crash' \(pid \d+\) was killed by SIGSEGV",
        says=("in string_at", "in crash"),
        tolerates=CRASHES,
    ),
    Case(14, "leave", 1, error=r".*WorkerDied: Worker 'leave' \(pid \d+\) ended with exit code 3"),
    Case(12, "fail", 1, error="LookupError: the worker is broken", says=("in fail\n",)),
    Case(
        row=12,
        name="fail_unpicklably",
        code=1,
        error=r".*WorkerFailed: Worker 'fail_unpicklably' .*Unpicklable: it holds a function",
        says=("in fail_unpicklably\n",),
    ),
]
FAST = ("crash",)


class Run:
    """A run of `children_child.py` and what is around it."""

    def __init__(self, tmp_path, name, method="spawn"):
        self.around = Surroundings(tmp_path)
        self.log = tmp_path / "log"
        self.child = Child("-c", PROGRAM, name, method, self.log, env=self.around.env)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.child.end(timeout=0 if self.child.process.poll() is None else 60)

    def time_of(self, phase):
        """The monotonic time that was marked together with a phase, in seconds."""
        return float(re.search(rf"PHASE {phase} ([\d.]+)", self.child.output).group(1))


def marks(case):
    """The row of a case, that it takes a time, and whether it is slow."""
    row = [pytest.mark.fault_row(case.row), pytest.mark.timed]
    return row if case.name in FAST else [*row, pytest.mark.slow]


@pytest.mark.parametrize(
    "case",
    [pytest.param(each, marks=marks(each)) for each in DEATHS],
    ids=str,
)
def test_the_end_of_a_worker_is_told_within_a_second(case, tmp_path):
    with Run(tmp_path, case.name) as run:
        run.child.wait_for("PHASE dying")
        start = time.monotonic()
        code = run.child.process.wait(60)
        took = time.monotonic() - start
    assert run.time_of("requested") - run.time_of("dying") < 1.0
    case = case._replace(within=10.0, says=case.says + SAYS_OF_TEARDOWN)
    check(case, run.child.output, code, took, run.log, run.around)


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.fault_row(15)
@pytest.mark.parametrize(
    "name, report",
    [
        ("stop", r"stop \(pid \d+\):\nno stack: it is stopped by a signal and cannot answer\.\n"),
        ("hang", r'hang \(pid \d+\):\n(.*\n)* +File ".*children_workers.py", line \d+ in hang\n'),
    ],
)
def test_a_worker_that_hangs_is_reported_and_the_run_still_hears_ctrl_c(name, report, tmp_path):
    with Run(tmp_path, name) as run:
        run.child.wait_for("Processes:")
        run.child.wait_for(f"{name} (pid")
        time.sleep(0.5)  # until all of the report is there
        run.child.send(signal.SIGINT, group=True)
        start = time.monotonic()
        code = run.child.process.wait(60)
        took = time.monotonic() - start
    assert re.search(report, run.child.output), run.child.output
    assert re.search(r'work \(pid \d+\):\n(.*\n)* +File ".*", line \d+ in work\n', run.child.output)
    case = Case(15, name, 130, within=10.0, says=("exiting main loop", f"Stopping {name} ..."))
    check(case, run.child.output, code, took, run.log, run.around)


def workers_of(run):
    """Process ids of all of the run but its main process."""
    label = next("=".join(each).encode() for each in run.around.env.items() if "CASE" in each[0])
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            ours = label in path.read_bytes()
        except OSError:
            continue
        if ours and int(path.parent.name) != run.child.process.pid:
            found.append(int(path.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.fault_row(11)
@pytest.mark.parametrize("name", ["work", "stop", "hang"])
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_nothing_is_left_of_a_run_that_is_killed(name, method, tmp_path):
    with Run(tmp_path, name, method) as run:
        run.child.wait_for("PHASE working")
        run.child.wait_for("PHASE blocked")
        time.sleep(0.5)
        assert len(workers_of(run)) >= 2
        os.kill(run.child.process.pid, signal.SIGKILL)
        assert run.child.process.wait(10) == -signal.SIGKILL
    left = run.around.leftovers()
    if method == "forkserver":  # its socket is only removed by an interpreter that ends by itself
        left = [each for each in left if "temporary file" not in each or "/pymp-" not in each]
    assert left == [], run.child.output
