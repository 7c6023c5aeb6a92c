"""`CollectiveTrainer`: real processes that train together, stop together, and fail together."""

import dataclasses
import json
import re
import signal
import time
from contextlib import ExitStack

import numpy as np
import pytest

from tensorpack.train import CollectiveTrainer
from tensorpack.train.group.exchange import HAS_HALF
from tensorpack.utils.cluster import Cluster

from .group import Group
from .network import Network

SECONDS = 150
LONG = {"steps": 10000, "seconds": 0.01, "raises": True}


@pytest.fixture
def start_group(zygote):
    with ExitStack() as stack:

        def start(*plans, workers=2, **options):
            module, text = "tests.groups.collective_worker", json.dumps(plans)
            group = Group(module, text, workers=workers, zygote=zygote, **options)
            return stack.enter_context(group)

        yield start


def results(group):
    """For each worker the plans of its runs, with what came of them."""
    found = []
    for name in group.workers:
        lines = [each for each in group[name].output.splitlines() if each.startswith("RESULT ")]
        found.append([json.loads(each[7:]) for each in lines])
    return found


def close(one, other):
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(one, other))


def check_equal_to_one(*runs):
    """Checks the same run in each worker against one with the K-fold batch."""
    for first, *others in zip(*runs):
        assert "error" not in first, first
        assert close(first["weights"], first["expected"]), first["optimizer"]
        assert all(close(first["weights"], other["weights"]) for other in others)


@pytest.mark.slow
def test_workers_train_stop_and_fail_together(start_group):
    group = start_group(
        {"optimizer": "sgd", "compare": True},
        {"optimizer": "adam", "compare": True},
        {"optimizer": "clip", "compare": True},
        {"optimizer": "statistics", "compare": True},
        {"compression": "fp16" if HAS_HALF else None},
        {"action": "stop", "at": [1, 5]},
        {"action": "fail", "at": [1, 5]},
        {"action": "end of data", "at": [1, 6]},
        {"more_steps": 1},
        {"optimizer": "summary", "run_alone": False},
        {"optimizer": "summary", "run_alone": True},
    )
    assert group.end_all(SECONDS) == [0, 0], group.outputs
    zero, one = results(group)
    check_equal_to_one(zero[:4], one[:4])
    exact = np.concatenate(zero[0]["weights"])
    short = np.concatenate(zero[4]["weights"])
    assert HAS_HALF == (abs(exact - short).max() > 0) and np.allclose(exact, short, atol=0.01)
    assert zero[4]["weights"] == one[4]["weights"]
    stopped, failed, ended, differ, along, alone = zero[5:]
    assert "error" not in stopped and "error" not in one[5]
    assert stopped["step"] == one[5]["step"] == 5
    assert stopped["weights"] == one[5]["weights"]
    who = f"worker 1 at {group.address('worker 1')}"
    assert failed["error"].startswith(f"PeerLost: {who} has failed")
    assert one[6]["error"].startswith("KeyError")
    assert ended["error"].startswith(f"PeerLost: {who} has failed")
    assert one[7]["error"].startswith("DataEnded")
    assert ended["step"] == one[7]["step"] == 6
    assert "The epochs of the workers have [8, 9] steps" in differ["error"]
    assert differ["error"] == one[8]["error"]
    assert "error" not in along
    assert (
        alone["error"].startswith("RuntimeError: ")
        and "cannot be fetched outside it" in alone["error"]
    )
    assert f"PeerLost: worker 0 at {group.address('worker 0')} has failed" in one[10]["error"]
    causes = [
        re.findall(r"leaves the group because of (\w+)\(", group[name].output)
        for name in group.workers
    ]
    assert causes == [["RuntimeError"], ["KeyError", "EndOfData"]]


@pytest.mark.slow
def test_three_workers_do_what_one_does_with_the_threefold_batch(start_group):
    kinds = ("sgd", "adam", "statistics")
    plans = [{"optimizer": name, "compare": True} for name in kinds]
    group = start_group(*plans, workers=3)
    assert group.end_all(SECONDS) == [0, 0, 0], group.outputs
    check_equal_to_one(*results(group))


def check_survivor(group, start, text):
    assert group.end("worker 0", 30) == 1
    assert time.monotonic() - start < 20
    assert "PeerLost: worker 1 at 127.0.0.1:" in group["worker 0"].output
    assert text in group["worker 0"].output
    ((result,), *_) = results(group)
    assert result["weights"]  # after_train has run
    assert result["timers"] == 0
    assert "leaves the group" not in group["worker 0"].output  # there is none


@pytest.mark.slow
@pytest.mark.parametrize(
    "signum, timeout, text",
    [
        (signal.SIGKILL, 60.0, "has ended, or was killed"),
        (signal.SIGSTOP, 5.0, "has not answered for 5 seconds"),
    ],
)
def test_survivors_name_the_worker_that_is_lost(start_group, signum, timeout, text):
    group = start_group({**LONG, "timeout": timeout})
    group.wait_for("step 3")
    group.send(signum, "worker 1")
    check_survivor(group, time.monotonic(), text)


@pytest.mark.slow
def test_a_line_that_stalls_ends_all_workers(start_group):
    with Network() as network:
        group = start_group({**LONG, "timeout": 5.0}, network=network)
        group.wait_for("step 3")
        network.stall("worker 1")
        check_survivor(group, time.monotonic(), "has not answered for 5 seconds")
        assert group.end("worker 1", 30) == 1
        assert "PeerLost: worker 0 at 127.0.0.1:" in group["worker 1"].output


@pytest.mark.slow
def test_a_group_that_is_stopped_or_killed_resumes_exactly(start_group, tmp_path):
    plan = {"optimizer": "adam", "epochs": 4, "dir": str(tmp_path / "whole")}
    whole = start_group(plan)
    assert whole.end_all(SECONDS) == [0, 0], whole.outputs
    plan = {**plan, "dir": str(tmp_path / "broken"), "resume": "auto", "raises": True}

    group = start_group({**plan, "seconds": 0.1})
    group.wait_for("step 3")
    group.send(signal.SIGTERM, "worker 1")
    assert group.end_all(SECONDS) == [143, 143], group.outputs
    ((zero,), (one,)) = results(group)
    assert zero["step"] == one["step"] > 2
    assert zero["weights"] == one["weights"]

    group = start_group({**plan, "seconds": 0.1})
    group.wait_for("Start Epoch 3")
    group.kill("worker 0", "worker 1")

    group = start_group(plan)
    assert group.end_all(SECONDS) == [0, 0], group.outputs
    assert "Start Epoch 1 " not in group["worker 1"].output
    ((zero,), (one,)), ((expected,), _) = results(group), results(whole)
    assert zero["weights"] == one["weights"] == expected["weights"]
    assert {each.name for each in tmp_path.iterdir()} == {
        "whole",
        "whole-worker1",
        "broken",
        "broken-worker1",
    }


@pytest.mark.slow
def test_ctrl_c_at_all_workers_ends_them_in_order(start_group):
    group = start_group(LONG)
    group.wait_for("step 3")
    group.send(signal.SIGINT)
    assert group.end_all(30) == [130, 130], group.outputs
    ((zero,), (one,)) = results(group)
    assert zero["timers"] == one["timers"] == 0
    assert zero["step"] == one["step"] > 2
    assert zero["weights"] == one["weights"]


@pytest.mark.slow
@pytest.mark.fault_row(53)
def test_workers_that_take_themselves_for_the_same_end_with_both_lists(start_group):
    def believe(cluster):  # as where the list of hosts begins with the own one on each machine
        if cluster.index == 0:
            return cluster
        return dataclasses.replace(cluster, workers=cluster.workers[::-1], index=0)

    group = start_group({"timeout": 5.0, "raises": True}, believe=believe)
    assert group.end_all(60) == [1, 1], group.outputs
    zero, one = [group.address(name) for name in group.workers]
    lists = [f"{zero}, {one}", f"{one}, {zero}"]
    for name, own, other in zip(group.workers, lists, lists[::-1]):
        assert f"its list of workers is {other}, that of worker 0 is {own}." in group[name].output


def test_a_cluster_with_parameter_servers_is_refused():
    cluster = Cluster(("localhost:1", "localhost:2"), ("localhost:3",))
    with pytest.raises(ValueError, match="start it with --ps 0"):
        CollectiveTrainer(cluster=cluster)


def test_only_known_compressions_are_accepted():
    with pytest.raises(ValueError, match="compression is None or 'fp16', got 'gzip'"):
        CollectiveTrainer(compression="gzip")
