"""What the processes of a machine divide among themselves."""

import pytest

from tensorpack.launch import _environment
from tensorpack.launch._environment import environments, shares
from tensorpack.launch._hosts import on_this_machine
from tensorpack.utils.cluster import Cluster


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Eight cores and no GPU, whatever this machine has."""
    for name in "OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "CUDA_VISIBLE_DEVICES":
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_environment, "usable_cores", lambda: 8)
    monkeypatch.setattr(_environment, "get_num_gpu", lambda: 0)


@pytest.mark.parametrize("workers, each", [(2, "4"), (3, "2"), (20, "1")])
def test_cores(workers, each, monkeypatch):
    assert set(shares(workers).threads.values()) == {each}
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert list(shares(workers).threads) == ["TF_NUM_INTRAOP_THREADS"]
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "7")
    assert shares(workers) == ({}, None, "")


def test_one_worker_has_all():
    assert shares(1) == ({}, None, "")


@pytest.mark.parametrize(
    "visible, workers, expected",
    [
        (None, 2, ["0,1", "2,3"]),
        (None, 3, ["0", "1", "2"]),
        (None, 6, ["0", "1", "2", "3", "0", "1"]),
        ("5,GPU-ab", 2, ["5", "GPU-ab"]),
        (None, 1, ["0,1,2,3"]),
        ("", 2, None),
    ],
)
def test_gpus(visible, workers, expected, monkeypatch):
    monkeypatch.setattr(_environment, "get_num_gpu", lambda: 4)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    divided = shares(workers)
    assert divided.gpus == expected
    envs = environments(on_this_machine(workers, 1), divided, 3)
    assert [env.get("CUDA_VISIBLE_DEVICES") for env in envs] == (
        [visible] * (workers + 1) if expected is None else [*expected, ""]
    )
    assert {env["TENSORPACK_RESTART"] for env in envs} == {"3"}
    assert [Cluster.from_environment(env).name for env in envs[-2:]] == [
        f"worker {workers - 1}",
        "ps 0",
    ]
