"""Runs with parameter servers: how the processes end together, also when one is lost."""

import re
import signal

import numpy as np
import pytest

from tensorpack.compat import tf_version
from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tests.harness import NEVER

from .group import Group
from .network import Network

pytestmark = pytest.mark.slow

PROGRAM = "tests.groups.parameter_servers"
FOR_EVER = ("--epochs", 100000, "--timeout", 5)


def last_step(child):
    """The step that a worker says it has ended at."""
    return int(re.findall(r"ends at step (\d+)", child.output)[-1])


@pytest.mark.parametrize("how", [(), ("--asynchronous",)], ids=["synchronous", "asynchronous"])
def test_all_end_in_order(zygote, tmp_path, how):
    with Group(PROGRAM, tmp_path, *how, workers=2, ps=2, zygote=zygote) as group:
        assert group.end_all(60, *group.names) == [0] * 4
        for name in group.workers:
            assert last_step(group[name]) == 30
            assert "after the training" in group[name].output
        for index in range(2):
            output = group[f"ps {index}"].output
            assert re.search(rf"ps {index} at 127.0.0.1:\d+ runs in process \d+", output)
            assert "after the training" not in output
        outputs = "".join(each.output for each in group.children.values())
        assert not [each for each in NEVER if each in outputs]
    assert set(load_checkpoint_vars(str(tmp_path / "model-30"))) == {
        "global_step",
        "weights",
        "weights/Momentum",
        "EMA/input_queue_size",
        "bn/mean/EMA",
        "bn/variance/EMA",
    }


@pytest.mark.parametrize(
    "signum, name", [(signal.SIGINT, "worker 1"), (signal.SIGTERM, "ps 0"), (signal.SIGINT, None)]
)
def test_a_signal_ends_all_at_one_step(zygote, tmp_path, signum, name):
    with Group(PROGRAM, tmp_path, *FOR_EVER, workers=2, ps=1, zygote=zygote) as group:
        group.wait_for("step 20")
        group.send(signum, *([name] if name else group.names))
        assert group.end_all(20, *group.names) == [128 + signum] * 3
        step = last_step(group["worker 0"])
        assert last_step(group["worker 1"]) == step
        assert f"Model saved to {tmp_path}/model-{step}." in group["worker 0"].output
        outputs = "".join(each.output for each in group.children.values())
        assert not [each for each in NEVER if each in outputs]


@pytest.mark.fault_row(28)
@pytest.mark.fault_row(29)
@pytest.mark.parametrize(
    "signum, name",
    [
        (signal.SIGKILL, "worker 1"),
        (signal.SIGKILL, "ps 0"),
        pytest.param(signal.SIGSTOP, "worker 0", marks=pytest.mark.one_row),
        (signal.SIGSTOP, "ps 0"),
    ],
)
def test_a_lost_process_ends_the_others_with_its_name(zygote, tmp_path, name, signum):
    with Group(PROGRAM, tmp_path, *FOR_EVER, workers=2, ps=1, zygote=zygote) as group:
        group.wait_for("step 20")
        group.send(signum, name)
        left = [each for each in group.names if each != name]
        assert group.end_all(20, *left) == [1, 1]
        for each in left:
            assert f"{name} at {group.address(name)}" in group[each].output
            # TensorFlow 1.15 does not leave a step whose server is gone: then the process is ended.
            if signum == signal.SIGKILL and each in group.workers and tf_version()[0] >= 2:
                assert "ends at step" in group[each].output, group.outputs


@pytest.mark.fault_row(29)
def test_a_server_that_is_lost_while_a_worker_is_set_up(zygote, tmp_path):
    options = (*FOR_EVER, "--setup", 1)  # so that the chief is ready long before the other worker
    with Group(PROGRAM, tmp_path, *options, workers=2, ps=2, zygote=zygote) as group:
        group.wait_for("Creating the session", "worker 1")
        group.send(signal.SIGKILL, "ps 1")
        assert group.end_all(20, "worker 0", "worker 1", "ps 0") == [1, 1, 1]
        for each in "worker 0", "worker 1", "ps 0":  # one may hear of another one that heard it
            text = r"(PeerLost|without cleaning up): (ps 1|worker \d) at "
            assert re.search(text, group[each].output), group.outputs


@pytest.mark.fault_row(30)
def test_a_worker_that_is_cut_off_is_lost(zygote, tmp_path):
    with Network() as network, Group(
        PROGRAM, tmp_path, *FOR_EVER, workers=2, ps=1, zygote=zygote, network=network
    ) as group:
        group.wait_for("step 20")
        network.stall("worker 1")
        assert group.end_all(20, *group.names) == [1, 1, 1]
        assert "worker 1 at 127.0.0.1:" in group["worker 0"].output
        assert "ps 0 at 127.0.0.1:" in group["worker 1"].output


@pytest.mark.one_row
def test_a_run_that_is_killed_and_interrupted_ends_with_the_same_weights(zygote, tmp_path):
    options = ("--epochs", 6, "--timeout", 5, "--pause", 0.03)

    def run(name, resume, *signals):
        with Group(
            PROGRAM, tmp_path / name, *options, "--resume", resume, workers=2, ps=1, zygote=zygote
        ) as group:
            for text, signum, who in signals:
                group.wait_for(text)
                group.send(signum, who)
            return group.end_all(40, *group.names)

    assert run("whole", "never") == [0, 0, 0]
    assert sorted(run("cut", "never", ("step 20", signal.SIGKILL, "worker 1"))) == [-9, 1, 1]
    assert run("cut", "must", ("step 40", signal.SIGTERM, "worker 1")) == [143, 143, 143]
    assert run("cut", "must") == [0, 0, 0]
    for end in ("", "-worker1"):
        expected = load_checkpoint_vars(f"{tmp_path}/whole{end}/model-60")
        found = load_checkpoint_vars(f"{tmp_path}/cut{end}/model-60")
        assert set(found) == set(expected)
        for variable in set(expected) - {"EMA/input_queue_size"}:
            np.testing.assert_array_equal(found[variable], expected[variable], variable)
    assert "tower0/bn/mean/EMA" in found
