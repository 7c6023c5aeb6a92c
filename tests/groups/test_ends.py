"""How the processes of a group end together, whatever happens to one of them."""

import dataclasses
import os
import re
import signal

import pytest

from tests.harness import NEVER
from tests.processes import gone, wait_until

from .group import Launched

pytestmark = pytest.mark.slow

TIMEOUT = 5
SOON = 30  # seconds until all of a group are gone, if one has died
KINDS = ["all-reduce", "servers"]  # with 0 parameter servers, and with 1


def long(ps, **options):
    """The plan of a run that does not end by itself."""
    return {"kind": KINDS[ps], "steps": 100000, "pause": 0.01, "timeout": TIMEOUT, **options}


def check_alike(group):
    """Checks that both workers have ended in order after the same step; returns that."""
    ((chief,), (other,)) = group.results
    assert chief == other and not [word for word in NEVER if word in group.outputs], group.outputs
    return chief["step"]


@pytest.mark.parametrize(
    "ps, kind, signum, names",
    [
        (0, "all-reduce", signal.SIGINT, ["worker 0", "worker 1"]),
        (0, "all-reduce", signal.SIGTERM, ["worker 1"]),
        (1, "servers", signal.SIGTERM, ["worker 0"]),
        (1, "asynchronous", signal.SIGINT, ["worker 0", "worker 1"]),
    ],
)
def test_a_signal_ends_all_after_the_same_step(start, tmp_path, ps, kind, signum, names):
    group = start(long(ps, kind=kind, save_to=str(tmp_path / "log")), ps=ps)
    group.wait_for("step 3\n")
    waits = kind != "asynchronous"  # there each ends for itself
    group.send(signum, *names)
    assert group.end(20) == [128 + signum] * 2, group.outputs
    for end, (result,) in zip(["", "-worker1"], group.results):
        assert (tmp_path / f"log{end}" / f"model-{result['step']}.state").exists()
    if waits:
        check_alike(group)
        assert f"{signal.Signals(signum).name} at worker" in group.outputs


@pytest.mark.parametrize("ps", [0, 1])
def test_one_that_stops_training_ends_the_others_in_order(start, ps):
    how = [([1, 5], "stop", False), ([0, 16], "stop", False), ([1, 5], "exit", True)]
    plans = [
        {"kind": KINDS[ps], "at": at, "action": action, "feed": feed} for at, action, feed in how
    ]
    group = start(*plans, ps=ps)
    assert group.end(60) == [0, 0], group.outputs
    chief, other = group.results
    assert [result["weights"] for result in chief] == [result["weights"] for result in other]
    for results in chief, other:  # it takes part in one more step, if there is one
        assert [result["step"] for result in results] == [6, 16, 6]


@pytest.mark.parametrize("ps", [0, 1])
def test_a_long_evaluation_of_the_chief_is_waited_for(start, ps):
    plan = {"steps": 5, "evaluation": 4, "stop_grace": 1, "timeout": 20}
    group = start(long(ps, **plan), ps=ps)
    assert group.end(60) == [0, 0], group.outputs
    assert check_alike(group) == 10


@pytest.mark.fault_row(28, 29)
@pytest.mark.parametrize(
    "ps, name", [(0, "worker 0"), (0, "launcher"), (1, "worker 1"), (1, "ps 0"), (1, "launcher")]
)
def test_the_launcher_ends_a_group_that_has_lost_one(ps, name):
    signum = signal.SIGINT if name == "launcher" else signal.SIGKILL
    child = Launched(long(ps), ps=ps)
    try:
        for worker in "worker 0", "worker 1":
            child.wait_for(f"[{worker}] step 3\n")
        pids = {"launcher": child.process.pid, **child.pids()}
        os.kill(pids[name], signum)
        assert child.end(SOON) == 128 + signum, child.output
    finally:
        child.process.kill()
    assert len(pids) == 3 + ps and all(gone(pid) for pid in pids.values())
    assert (f"First to end: {name} (127.0.0.1:" in child.output) == (signum == signal.SIGKILL)


@pytest.mark.fault_row(29)
@pytest.mark.one_row
@pytest.mark.parametrize(
    "ps, action, error",
    [(1, "fail", "KeyError: 'broken'"), (0, "no data", "DataEnded: ")],
)
def test_the_launcher_ends_a_group_in_which_one_has_failed(ps, action, error):
    child = Launched(long(ps, at=[1, 6], action=action), ps=ps)
    assert child.end(100) == 1, child.output
    assert re.search(rf"^\[worker 1\] .*{error}", child.output, re.MULTILINE), child.output


@pytest.mark.fault_row(28, 29)
@pytest.mark.parametrize("ps, name", [(0, "worker 0"), (0, "worker 1"), (1, "ps 0")])
def test_one_that_is_stopped_ends_the_others_within_the_timeout(start, ps, name):
    group = start(long(ps), ps=ps)
    group.wait_for("step 3\n")
    group.send(signal.SIGSTOP, name)
    left = [worker for worker in group.workers if worker != name]
    assert group.end(TIMEOUT + 5, *left) == [1] * len(left)
    for worker in left:
        assert re.search(
            r"has waited [6-9] s for the end of step \d+\.", group.children[worker].output
        )


@pytest.mark.fault_row(28, 29)
@pytest.mark.parametrize(
    "ps, name, slow, signum",
    [(0, "worker 0", 0, signal.SIGKILL), (0, "worker 0", 1, signal.SIGSTOP)]
    + [(1, "ps 0", 1, signal.SIGKILL)],
)
def test_one_that_is_lost_before_the_first_step(start, ps, name, slow, signum):
    group = start(long(ps, slow=[slow, 3]), ps=ps)
    group.wait_for("is set up")
    group.send(signum, name)
    left = [worker for worker in group.workers if worker != name]
    assert group.end(TIMEOUT + 10, *left) == [1] * len(left)


@pytest.mark.parametrize("ps", [0, 1])
def test_a_chief_that_never_comes(start, ps):
    group = start(long(ps), ps=ps, absent=["worker 0"])
    assert group.end(TIMEOUT + 10, "worker 1") == [1]
    text = f"RuntimeError: worker 0 at {group.addresses['worker 0']} did not come within 5 seconds."
    assert group.results[0][0]["error"].startswith(text)


@pytest.mark.fault_row(53)
def test_two_that_take_themselves_for_the_same_worker(start):
    def believe(cluster):  # as where the list of hosts begins with the own one on each machine
        if cluster.index == 0:
            return cluster
        return dataclasses.replace(cluster, workers=cluster.workers[::-1], index=0)

    group = start(long(0), believe=believe)
    assert group.end(TIMEOUT + 10) == [1, 1]
    for (result,), other in zip(group.results, ["worker 1", "worker 0"]):
        text = f"RuntimeError: worker 1 at {group.addresses[other]} did not come within 5 seconds."
        assert result["error"].startswith(text)


def hears_sigterm(child):
    """Whether a process has a handler for SIGTERM."""
    with open(f"/proc/{child.process.pid}/status") as status:
        caught = re.search(r"SigCgt:\s*(\w+)", status.read()).group(1)
    return int(caught, 16) >> (signal.SIGTERM - 1) & 1


@pytest.mark.parametrize(
    "ps, waits_for", [(0, "its start"), (1, "its variables"), (0, "its step"), (1, "its step")]
)
def test_a_signal_ends_a_worker_that_waits_in_vain(start, ps, waits_for):
    plan = long(ps, stop_grace=4, timeout=60)
    if waits_for == "its start":
        group = start(plan, ps=ps, absent=["worker 0"])
        wait_until(lambda: hears_sigterm(group.children["worker 1"]))
    elif waits_for == "its variables":
        group = start({**plan, "slow": [0, 60]}, ps=ps)
        group.wait_for("is set up")
    else:
        group = start(plan, ps=ps)
        group.wait_for("step 3\n")
        group.send(signal.SIGSTOP, "worker 0")
    group.send(signal.SIGTERM, "worker 1")
    assert group.end(10, "worker 1") == [143], group.outputs
