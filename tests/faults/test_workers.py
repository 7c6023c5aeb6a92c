"""Rows 11, 12 and 14 to 16 of the matrix: workers that die, fail or hang, and killed runs."""

import os
import re
import signal
import time

import pytest

from .cases_workers import KINDS
from .run_case import INT, Case, params

CRASHES = ("Fatal Python", "Segmentation")
OF_TEARDOWN = ("Stopping work ...", "Training failed at global_step=")
BROKEN = "LookupError: the worker is broken"


def died(name, how):
    return rf".*WorkerDied: Worker '{name}' \(pid \d+\) {how}"


DEATHS = [
    Case(14, "worker_kill", 1, error=died("kill", "was killed by SIGKILL"), says=OF_TEARDOWN),
    Case(
        row=14,
        name="worker_crash",
        code=1,
        error=died("crash", "was killed by SIGSEGV"),
        says=("in string_at", "in crash", *OF_TEARDOWN),
        tolerates=CRASHES,
        fast=True,
    ),
    Case(12, "worker_fail", 1, error=BROKEN, says=("in fail\n", *OF_TEARDOWN)),
    Case(
        row=14,
        name="mixture_kill",
        code=1,
        error=died(r"MultiProcessRunner of MapData \d", "was killed by SIGKILL"),
    ),
    Case(12, "map_fail", 1, error=BROKEN, says=("in fail\n",)),
]


@pytest.mark.timed
@pytest.mark.parametrize("case", params(DEATHS))
def test_the_end_of_a_worker_ends_the_run(case, run):
    output = run(case).output
    dying, requested = (
        float(re.search(rf"PHASE {phase} ([\d.]+)", output).group(1))
        for phase in ("dying", "requested")
    )
    assert requested - dying < (1.0 if case.name.startswith("worker") else 5.0)


STACK = r"MainThread:\n(.*\n)+? +File .*, in run\n"
SILENT = r"has given no data for \d+ seconds\. Waiting for:\nMultiProcessMapData \d"
HANGING = [
    ("worker_stop", "stop (pid", [STACK, r"stop \(pid \d+\): stopped\n"]),
    ("map_hang", "has given no data", [rf"{SILENT} \(pid \d+\): sleeping\n(?!Multi)"]),
]


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.fault_row(15)
@pytest.mark.parametrize("name, first, reports", HANGING, ids=[case[0] for case in HANGING])
def test_a_worker_that_hangs_is_reported_and_the_run_still_hears_ctrl_c(
    name, first, reports, start
):
    case = Case(15, name, 130, within=10.0, says=("exiting main loop",))
    with start(case) as running:
        running.child.wait_for(first)
        time.sleep(0.5)  # until all of the report is there
        running.child.send(INT, group=True)
        output = running.end().output
    for report in reports:
        assert re.search(report, output), output


@pytest.mark.slow
@pytest.mark.fault_row(16)
@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_are_started_after_a_session_are_not_forked(kind, run):
    says = ("PHASE started as ['forkserver']", "PHASE done")
    says += ("PHASE in order True",) if kind == "map" else ()
    run(Case(16, f"{kind}_after_a_session", 0, says=says, never=()))


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(11)
@pytest.mark.parametrize(
    "action, method", [("work", "_forkserver"), ("stop", ""), ("hang", "_forkserver")]
)
def test_nothing_is_left_of_a_run_that_is_killed(action, method, start):
    with start(Case(11, f"worker_{action}{method}", -signal.SIGKILL)) as running:
        running.child.wait_for("PHASE working")
        running.child.wait_for("PHASE blocked")
        time.sleep(0.5)
        assert len(running.around.processes()) >= 3
        os.kill(running.child.process.pid, signal.SIGKILL)
        assert running.child.process.wait(10) == -signal.SIGKILL
    left = running.around.leftovers()
    if method:  # the socket of the server is only removed by an interpreter that ends by itself
        left = [trace for trace in left if "temporary file" not in trace or "/pymp-" not in trace]
    assert left == [], running.child.output
