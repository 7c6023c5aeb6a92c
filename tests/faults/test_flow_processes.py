"""Rows 14, 15 and 16 of the matrix, for the processes of flows: death, hanging, and locks."""

import re
import signal
import time

import pytest

from tests.harness import Child

from .invariants import check
from .surroundings import Surroundings
from .test_matrix import Case

PROGRAM = "import sys; from tests.faults.flow_processes_child import {0}; {0}(*sys.argv[1:])"
NAMES = {
    "strict": "MultiProcessRunner of MapData",
    "mixture": "MultiProcessRunner of MapData",
    "map": "MultiProcessMapData",
}
every_kind = pytest.mark.parametrize("kind", NAMES)
CRASHES = ("Fatal Python", "Segmentation")


class Run:
    """A run of a function of `flow_processes_child.py` and what is around it."""

    def __init__(self, tmp_path, function, *args):
        self.around = Surroundings(tmp_path)
        self.log = tmp_path / "log"
        args = (*args, self.log) if function == "train" else args
        self.child = Child("-c", PROGRAM.format(function), *args, env=self.around.env)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.child.end(timeout=0 if self.child.process.poll() is None else 60)


@pytest.mark.slow
@pytest.mark.fault_row(14)
@every_kind
@pytest.mark.parametrize("name, signal_name", [("kill", "SIGKILL"), ("crash", "SIGSEGV")])
def test_the_end_of_a_process_of_the_flow_ends_the_run(kind, name, signal_name, tmp_path):
    error = rf".*WorkerDied: Worker '{NAMES[kind]} \d' \(pid \d+\) was killed by {signal_name}"
    with Run(tmp_path, "train", kind, name) as run:
        run.child.wait_for("PHASE dying")
        start = time.monotonic()
        code = run.child.process.wait(60)
        took = time.monotonic() - start
    case = Case(14, name, 1, error=error, within=30.0, tolerates=CRASHES)
    check(case, run.child.output, code, took, run.log, run.around)


@pytest.mark.slow
@pytest.mark.fault_row(12)
@every_kind
def test_an_exception_in_a_process_of_the_flow_ends_the_run(kind, tmp_path):
    with Run(tmp_path, "train", kind, "fail") as run:
        run.child.wait_for("PHASE dying")
        start = time.monotonic()
        code = run.child.process.wait(60)
        took = time.monotonic() - start
    says = ("in fail\n",)
    case = Case(12, "fail", 1, error="LookupError: the worker is broken", says=says, within=30.0)
    check(case, run.child.output, code, took, run.log, run.around)


@pytest.mark.slow
@pytest.mark.fault_row(15)
@pytest.mark.parametrize(
    "name, report",
    [
        ("stop", r"MapData \d: no stack: it is stopped by a signal and cannot answer\."),
        ("hang", r"MapData \d: (.*\n)* +File \".*children_workers.py\", line \d+ in hang\n"),
    ],
)
def test_one_that_hangs_is_reported_and_the_run_still_hears_ctrl_c(name, report, tmp_path):
    with Run(tmp_path, "train", "strict", name) as run:
        run.child.wait_for("has given no data for")
        time.sleep(0.5)  # until all of the report is there
        run.child.send(signal.SIGINT, group=True)
        start = time.monotonic()
        code = run.child.process.wait(60)
        took = time.monotonic() - start
    assert re.search(report, run.child.output), run.child.output
    case = Case(15, name, 130, within=30.0, says=("exiting main loop",))
    check(case, run.child.output, code, took, run.log, run.around)


@pytest.mark.slow
@pytest.mark.fault_row(16)
@every_kind
def test_processes_that_are_started_after_a_session_are_not_forked(kind, tmp_path):
    with Run(tmp_path, "use_after_a_session", kind) as run:
        run.child.wait_for("PHASE done")
        assert run.child.process.wait(60) == 0
    assert "PHASE started as ['_ForkServerWorker']" in run.child.output
    assert kind != "strict" or "PHASE in order True" in run.child.output
    assert run.around.leftovers() == []
