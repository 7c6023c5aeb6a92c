"""The cluster that a process belongs to, read from the environment."""

import json

import pytest

from tensorpack.utils.cluster import Cluster, expand_hosts, is_loopback


def tf_config(cluster, job=None, index=0):
    task = {} if job is None else {"task": {"type": job, "index": index}}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, **task})}


def of_slurm(rank, **changes):
    """The variables of `srun` for one of five tasks on three machines."""
    env = {
        "SLURM_JOB_ID": "1234",
        "SLURM_STEP_ID": "0",
        "SLURM_JOB_NODELIST": "node[1-2],gpu01",
        "SLURM_NTASKS": "5",
        "SLURM_TASKS_PER_NODE": "2(x2),1",
        "SLURM_PROCID": str(rank),
    }
    env.update(changes)
    return {name: value for name, value in env.items() if value is not None}


def of_mpi(rank, size=2, **changes):
    env = {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(size),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(size),
        "TENSORPACK_PORT": "3000",
    }
    env.update(changes)
    return env


class TestCluster:
    def test_roles(self):
        chief = Cluster(["a:1", "b:1"], ["p:1"])
        assert (chief.is_chief, chief.num_workers, chief.address) == (True, 2, "a:1")
        assert Cluster(["[::1]:22"]).address == "[::1]:22"
        assert chief.as_dict() == {"worker": ["a:1", "b:1"], "ps": ["p:1"]}
        server = Cluster(("a:1",), ("p:1", "q:2"), "ps", 1)
        assert (server.is_chief, server.name, server.address) == (False, "ps 1", "q:2")

    @pytest.mark.parametrize(
        "args, message",
        [
            ([[]], "no worker"),
            ([["a:1", "a:1"]], "worker 1 and worker 0 have the same address a:1"),
            ([["a"]], "worker 0 is 'a': it must be 'host:port'"),
            ([["::1:22"]], "IPv6"),
            ([["a:1"], [], "chief"], "'worker' or 'ps', got 'chief'"),
            ([["a:1"], [], "worker", 1], "no worker 1: the cluster has 1"),
        ],
    )
    def test_refused(self, args, message):
        with pytest.raises(ValueError) as error:
            Cluster(*args)
        assert message in str(error.value)

    def test_there_and_back(self):
        for job, index in ("worker", 0), ("worker", 1), ("ps", 0):
            cluster = Cluster(["a:1", "b:1"], ["p:1"], job, index)
            assert Cluster.from_environment({"TF_CONFIG": cluster.as_tf_config()}) == cluster

    def test_none_without_variables(self, monkeypatch):
        assert Cluster.from_environment({"TF_CONFIG": " "}) is None
        monkeypatch.setenv("TF_CONFIG", Cluster(["a:1"]).as_tf_config())
        assert Cluster.from_environment() == Cluster(["a:1"])


class TestTFConfig:
    @pytest.mark.parametrize("name", ["chief", "master"])
    def test_a_chief_is_worker_0(self, name):
        jobs = {"worker": ["b:1", "c:1"], name: ["a:1"], "ps": ["p:1"]}
        chief = Cluster.from_environment(tf_config(jobs, name))
        assert chief == Cluster(("a:1", "b:1", "c:1"), ("p:1",), "worker", 0)
        assert Cluster.from_environment(tf_config(jobs, "worker", "1")).name == "worker 2"
        assert Cluster.from_environment(tf_config(jobs, "ps")).address == "p:1"

    def test_no_cluster_is_one_process_alone(self):
        env = {**of_slurm(0), "TF_CONFIG": '{"task": {"type": "worker", "index": 0}}'}
        assert Cluster.from_environment(env) is None

    @pytest.mark.parametrize(
        "config, message",
        [
            ('{"cluster": ', 'not JSON (Expecting value: line 1 column 13 (char 12)): {"clus'),
            ("[1]", "must be an object such as"),
            ('{"cluster": ["a:1"]}', "'cluster' and 'task' must be objects"),
            (tf_config({"worker": ["a:1"]}, "evaluator"), "validation runs in the chief"),
            (tf_config({"workers": ["a:1"]}, "workers"), "'workers' is unknown: use worker, ps"),
            (tf_config({"worker": {"0": "a:1"}}, "worker"), "must be a list, got {'0': 'a:1'}"),
            (tf_config({"chief": ["a:1", "b:1"]}, "chief"), "one chief (or master), got"),
            (tf_config({"worker": ["a:1"]}), "which of these this process is"),
            (tf_config({"worker": ["a:1"]}, "worker", -1), "a number from 0 on, got -1"),
            (tf_config({"worker": ["a:1"]}, "worker", True), "a number from 0 on, got True"),
            (tf_config({"chief": ["a:1"], "worker": ["b:1"]}, "worker", 1), "no worker 1"),
        ],
    )
    def test_refused(self, config, message):
        env = config if isinstance(config, dict) else {"TF_CONFIG": config}
        with pytest.raises(ValueError, match="^TF_CONFIG is ") as error:
            Cluster.from_environment(env)
        assert message in str(error.value)


class TestSlurm:
    def test_tasks_fill_the_nodes_in_order(self):
        workers = [Cluster.from_environment(of_slurm(rank)) for rank in range(5)]
        port = 10000 + 16 * 1234
        assert [worker.address for worker in workers] == [
            f"node1:{port}",
            f"node1:{port + 1}",
            f"node2:{port}",
            f"node2:{port + 1}",
            f"gpu01:{port}",
        ]
        assert all(worker.workers == workers[0].workers for worker in workers)
        assert Cluster.from_environment(of_slurm(0, SLURM_STEP_NUM_TASKS="1")) is None

    def test_the_variables_of_the_step_count_more(self):
        env = of_slurm(
            1,
            SLURM_STEP_NUM_TASKS="2",
            SLURM_STEP_NODELIST="node[2-3]",
            SLURM_STEP_TASKS_PER_NODE="1(x2)",
            SLURM_NODEID="1",
            TENSORPACK_PORT="2222",
        )
        assert Cluster.from_environment(env).workers == ("node2:2222", "node3:2222")

    @pytest.mark.parametrize("each, counts", [(None, [2, 2, 1]), ("3", [3, 2])])
    def test_tasks_without_a_list_of_counts(self, each, counts):
        nodes = f"n[1-{len(counts)}]"
        env = of_slurm(0, SLURM_TASKS_PER_NODE=None, SLURM_JOB_NODELIST=nodes)
        env.update({"SLURM_NTASKS_PER_NODE": each} if each else {})
        hosts = [address.partition(":")[0] for address in Cluster.from_environment(env).workers]
        assert [hosts.count(host) for host in expand_hosts(nodes)] == counts

    @pytest.mark.parametrize(
        "changes, message",
        [
            ({"SLURM_STEP_ID": None}, "srun did not start this process"),
            ({"SLURM_PROCID": "x"}, "SLURM_PROCID is 'x': it must be a number"),
            ({"SLURM_JOB_NODELIST": "node[1-"}, "SLURM_JOB_NODELIST: 'node[1-' is not a list"),
            ({"SLURM_TASKS_PER_NODE": "2(x"}, "SLURM_TASKS_PER_NODE is '2(x', not a list"),
            ({"SLURM_TASKS_PER_NODE": "2(x2)"}, "but the list of nodes has 3"),
            ({"SLURM_TASKS_PER_NODE": "2(x3)"}, "has room for 6"),
            ({"SLURM_NODEID": "1"}, "rank 0 would have 0 if the ranks filled"),
            ({"TENSORPACK_PORT": "65535"}, "leaves too few ports"),
            ({"TENSORPACK_PORT": "0"}, "TENSORPACK_PORT is 0"),
        ],
    )
    def test_refused(self, changes, message):
        with pytest.raises(ValueError) as error:
            Cluster.from_environment(of_slurm(0, **changes))
        assert message in str(error.value)


class TestOpenMPI:
    def test_one_machine(self):
        cluster = Cluster.from_environment(of_mpi(1))
        assert cluster == Cluster(("127.0.0.1:3000", "127.0.0.1:3001"), index=1)
        assert Cluster.from_environment(of_mpi(0, size=1)) is None

    def test_two_machines(self):
        changes = {"OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
        env = of_mpi(2, 3, TENSORPACK_HOSTS="a:2,b", **changes)
        assert Cluster.from_environment(env).workers == ("a:3000", "a:3001", "b:3000")

    def test_runs_beside_each_other_take_other_ports(self):
        ports = set()
        for job in "prterun-a-12@1", "prterun-a-13@1":
            env = of_mpi(0, PMIX_NAMESPACE=job, TENSORPACK_PORT="")
            ports.add(int(Cluster.from_environment(env).address.rpartition(":")[2]))
        assert len(ports) == 2 and all(10000 <= port < 30000 for port in ports)

    @pytest.mark.parametrize(
        "changes, message",
        [
            ({"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, "-x TENSORPACK_HOSTS="),
            ({"TENSORPACK_HOSTS": "a:3"}, "has room for 3: [('a', 3)]"),
            ({"TENSORPACK_HOSTS": "a,b"}, "OMPI_COMM_WORLD_LOCAL_RANK is 1, but rank 1 would"),
            ({"OMPI_COMM_WORLD_RANK": ""}, "OMPI_COMM_WORLD_RANK is not set"),
        ],
    )
    def test_refused(self, changes, message):
        with pytest.raises(ValueError) as error:
            Cluster.from_environment(of_mpi(1, **changes))
        assert message in str(error.value)


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("node[1-3,7],gpu01", "node1 node2 node3 node7 gpu01"),
        ("n[08-10]", "n08 n09 n10"),
        ("r[1-2]n[1,3].x", "r1n1.x r1n3.x r2n1.x r2n3.x"),
    ],
)
def test_host_lists(text, hosts):
    assert expand_hosts(text) == hosts.split()


@pytest.mark.parametrize("text", ["", "a,", "n[3-1]", "n[1-2", "n[1-2-3]", "n[0-999999]"])
def test_what_is_not_a_host_list(text):
    with pytest.raises(ValueError, match="host"):
        expand_hosts(text)


def test_loopback():
    hosts = ["127.0.0.1", "[::1]", "localhost", "10.0.0.1", "node1"]
    assert list(map(is_loopback, hosts)) == [True, True, True, False, False]
