"""`CollectiveTrainer`: real processes that train together, stop together, and fail together."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pytest

from tensorpack.train import CollectiveTrainer
from tensorpack.utils.cluster import Cluster

SECONDS = 150


def free_addresses(number):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(f"127.0.0.1:{each.getsockname()[1]}" for each in sockets)


class Group:
    """Worker processes that do the runs of some plans."""

    def __init__(self, directory, plans, workers=2):
        self.addresses = free_addresses(workers)
        self._paths = [directory / f"output{i}" for i in range(workers)]
        self.processes = [self._start(i, path, plans) for i, path in enumerate(self._paths)]

    def _start(self, index, path, plans):
        env = dict(os.environ, TF_CONFIG=Cluster(self.addresses, index=index).as_tf_config())
        command = [sys.executable, "-m", "tests.train.group_child", json.dumps(plans)]
        with path.open("w") as file:
            return subprocess.Popen(command, env=env, stdout=file, stderr=file)

    def output(self, index):
        return self._paths[index].read_text()

    def results(self, index):
        lines = self.output(index).splitlines()
        return [json.loads(each[7:]) for each in lines if each.startswith("RESULT ")]

    def wait_for(self, text, index=0):
        deadline = time.monotonic() + SECONDS
        while text not in self.output(index):
            assert time.monotonic() < deadline, self.output(index)
            time.sleep(0.05)

    def codes(self, indices=None):
        chosen = [p for i, p in enumerate(self.processes) if indices is None or i in indices]
        return [each.wait(SECONDS) for each in chosen]

    def kill(self):
        for each in self.processes:
            each.kill()
            each.wait()


@pytest.fixture
def start_group(tmp_path):
    with ExitStack() as stack:

        def start(plans, **options):
            group = Group(tmp_path, plans, **options)
            stack.callback(group.kill)
            return group

        yield start


def close(one, other):
    pairs = zip(one, other)
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in pairs)


@pytest.mark.slow
def test_workers_train_stop_and_fail_together(start_group):
    plans = [
        {"optimizer": "sgd", "compare": True},
        {"optimizer": "clip", "compare": True},
        {"optimizer": "momentum", "compare": True},
        {"action": "stop", "at": [1, 5]},
        {"action": "fail", "at": [1, 5]},
        {"action": "end of data", "at": [1, 6]},
        {"more_steps": 1},
    ]
    group = start_group(plans)
    assert group.codes() == [0, 0], group.output(0) + group.output(1)
    zero, one = group.results(0), group.results(1)
    for mine, theirs in zip(zero[:3], one[:3]):
        assert close(mine["weights"], theirs["weights"])
        assert close(mine["weights"], mine["expected"]), mine["optimizer"]
        assert "error" not in mine
    stopped, failed, ended, differ = zero[3:]
    assert "error" not in stopped and "error" not in one[3]
    assert stopped["step"] == one[3]["step"] == 5
    assert stopped["weights"] == one[3]["weights"]
    who = f"worker 1 at {group.addresses[1]}"
    assert failed["error"].startswith(f"PeerLost: {who} has failed")
    assert one[4]["error"].startswith("KeyError")
    assert ended["error"].startswith(f"PeerLost: {who} has failed")
    assert one[5]["error"].startswith("DataEnded")
    assert ended["step"] == one[5]["step"] == 6
    assert "The epochs of the workers have [8, 9] steps" in differ["error"]
    assert differ["error"] == one[6]["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "signum, timeout, text",
    [
        (signal.SIGKILL, 60.0, "has ended, or was killed"),
        (signal.SIGSTOP, 5.0, "has not answered for 5 seconds"),
    ],
)
def test_survivors_name_the_worker_that_is_lost(start_group, signum, timeout, text):
    group = start_group([{"steps": 10000, "seconds": 0.01, "timeout": timeout, "raises": True}])
    group.wait_for("Start Epoch 1")
    time.sleep(0.5)
    group.processes[1].send_signal(signum)
    start = time.monotonic()
    assert group.codes([0]) == [1]
    assert time.monotonic() - start < 20
    assert f"PeerLost: worker 1 at {group.addresses[1]} {text}" in group.output(0)
    (result,) = group.results(0)
    assert result["weights"]  # after_train has run


@pytest.mark.slow
def test_a_signal_to_one_worker_ends_all_after_the_same_step(start_group):
    group = start_group([{"steps": 10000, "seconds": 0.01, "raises": True}])
    group.wait_for("Start Epoch 1")
    time.sleep(0.5)
    group.processes[1].send_signal(signal.SIGTERM)
    assert group.codes() == [143, 143], group.output(0)
    (zero,), (one,) = group.results(0), group.results(1)
    assert zero["step"] == one["step"] > 0
    assert zero["weights"] == one["weights"]


def test_a_cluster_with_parameter_servers_is_refused():
    cluster = Cluster(("localhost:1", "localhost:2"), ("localhost:3",))
    with pytest.raises(ValueError, match="start it with --ps 0"):
        CollectiveTrainer(cluster=cluster)


def test_only_known_compressions_are_accepted():
    with pytest.raises(ValueError, match="compression is None or 'fp16', got 'gzip'"):
        CollectiveTrainer(compression="gzip")
