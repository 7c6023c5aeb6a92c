"""The cluster that a process belongs to, read from the environment."""

import json
import os

import pytest

from tensorpack.utils.cluster import Cluster, is_loopback

read = Cluster.from_environment


def tf_config(cluster, job=None, index=0):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}


def of_mpi(rank, local, **changes):
    mpi = {"RANK": rank, "SIZE": 3, "LOCAL_RANK": local}
    env = {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in mpi.items()}
    return {**env, "TENSORPACK_PORT": "3000", **changes}


def of_slurm(rank, local, **changes):
    """The variables of `srun` for one of five tasks on three machines."""
    slurm = f"JOB_ID=1234 STEP_ID=0 STEP_NUM_TASKS=5 NTASKS=9 PROCID={rank} LOCALID={local} "
    slurm += "STEP_NODELIST=node[9-10],gpu01 STEP_TASKS_PER_NODE=2(x2),1"
    return {**dict(f"SLURM_{each}".split("=") for each in slurm.split()), **changes}


def test_roles():
    chief = Cluster(["a:1", "[::1]:22"], ["p:1"])
    assert (chief.is_chief, chief.num_workers, chief.address) == (True, 2, "a:1")
    assert chief.as_dict() == {"worker": ["a:1", "[::1]:22"], "ps": ["p:1"]}
    server = Cluster(("a:1",), ("p:1", "q:2"), "ps", 1)
    assert (server.is_chief, server.name, server.address) == (False, "ps 1", "q:2")
    assert read({"TF_CONFIG": server.as_tf_config()}) == server
    hosts = "127.0.0.1", "[::1]", "localhost", "10.0.0.1", "node1"
    assert list(map(is_loopback, hosts)) == [True, True, True, False, False]


def test_alone(monkeypatch):
    assert read({"TF_CONFIG": " "}) is None
    assert read({**of_mpi(1, 0), **tf_config({}, "worker")}) is None
    assert read(of_mpi(0, 0, OMPI_COMM_WORLD_SIZE="1")) is None
    assert read(of_slurm(0, 0, SLURM_STEP_NUM_TASKS="1")) is None
    monkeypatch.setenv("TF_CONFIG", Cluster(["a:1"]).as_tf_config())
    assert read() == Cluster(["a:1"])


@pytest.mark.parametrize("name", ["chief", "master"])
def test_a_chief_is_worker_0(name):
    jobs = {"worker": ["b:1", "c:1"], name: ["a:1"], "ps": ["p:1"]}
    assert read(tf_config(jobs, name)) == Cluster(("a:1", "b:1", "c:1"), ("p:1",), "worker", 0)
    assert read(tf_config(jobs, "worker", "1")).name == "worker 2"
    assert read(tf_config(jobs, "ps")).address == "p:1"


def test_mpi():
    assert read(of_mpi(1, 1)) == Cluster([f"127.0.0.1:300{n}" for n in range(3)], index=1)
    env = of_mpi(2, 0, TENSORPACK_HOSTS="a:2,b", MPI_LOCALRANKID="7")
    assert read({**of_slurm(0, 0), **env}) == Cluster(("a:3000", "a:3001", "b:3000"), index=2)
    first = read({"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"})
    assert first.num_workers == 2 and 10000 <= int(first.address[10:]) < 30000


def test_slurm(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"scontrol show hostnames node\[9-10\],gpu01 fails"):
        read(of_slurm(0, 0))
    tool = tmp_path / "scontrol"
    tool.write_text("#!/bin/sh\necho 'node9\nnode10\ngpu01'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    workers = [read(of_slurm(rank, rank % 2)) for rank in range(5)]
    addresses = "node9:29744 node9:29745 node10:29744 node10:29745 gpu01:29744"
    assert workers == [Cluster(addresses.split(), index=rank) for rank in range(5)]
    with pytest.raises(ValueError, match="with SLURM_LOCALID=0 does not fit .* fill one host"):
        read(of_slurm(1, 0))


@pytest.mark.parametrize(
    "env, message",
    [
        ({"TF_CONFIG": '{"cluster": '}, "TF_CONFIG is not JSON (Expecting value: line 1"),
        (tf_config({"worker": ["a:1"]}, "evaluator"), "task 'evaluator' is not in ['worker']"),
        (tf_config({"workers": ["a:1"]}, "workers"), "or none of ('worker', 'ps'"),
        (tf_config({"worker": ["a:1"]}, "worker", 1), "There is no worker 1 in the cluster {'wor"),
        (of_mpi(1, 0), "-x TENSORPACK_HOSTS="),
        (of_mpi(1, 1, TENSORPACK_HOSTS="a:2"), "Rank 1 of 3 with OMPI_COMM_WORLD_LOCAL_RANK=1"),
        ({"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "5"}, "use 'srun python'"),
    ],
)
def test_what_people_get_wrong(env, message):
    with pytest.raises(ValueError) as error:
        read(env)
    assert message in str(error.value)
