"""The processes of a distributed run, and which of them this one is; see docs/distributed.md."""

import dataclasses
import ipaddress
import json
import os
import re
import socket
import subprocess
import zlib
from typing import Dict, List, Mapping, Optional, Tuple

_JOBS = ("worker", "ps", "chief", "master")  # the last two are worker 0
_SLURM = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
_OPEN_MPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")
_MPICH = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The addresses of all processes of a run, and the role of this one.

    Args:
      workers: an address "host:port" or "[IPv6]:port" for each worker; worker 0 is the chief.
      ps: an address for each parameter server.
      job, index: what this process is, "worker" or "ps", and its number among those.
    """

    workers: Tuple[str, ...]
    ps: Tuple[str, ...] = ()
    job: str = "worker"
    index: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", tuple(self.workers))
        object.__setattr__(self, "ps", tuple(self.ps))
        if not 0 <= self.index < len(self.as_dict().get(self.job, ())):
            raise ValueError(f"There is no {self.name} in the cluster {self.as_dict()}.")

    @property
    def is_chief(self) -> bool:
        """Whether this process is worker 0, which saves and reports for all."""
        return self.job == "worker" and self.index == 0

    @property
    def num_workers(self) -> int:
        """How many workers there are."""
        return len(self.workers)

    @property
    def address(self) -> str:
        """The address of this process, "host:port"."""
        return self.as_dict()[self.job][self.index]

    @property
    def name(self) -> str:
        """What messages call this process, such as "worker 1"."""
        return f"{self.job} {self.index}"

    def as_dict(self) -> Dict[str, List[str]]:
        """Returns the addresses by job, as `tf.train.ClusterSpec` takes them."""
        jobs = {"worker": list(self.workers), "ps": list(self.ps)}
        return {job: addresses for job, addresses in jobs.items() if addresses}

    def as_tf_config(self) -> str:
        """Returns the value of `TF_CONFIG` that `from_environment` reads as this cluster."""
        task = {"type": self.job, "index": self.index}
        return json.dumps({"cluster": self.as_dict(), "task": task})

    @classmethod
    def from_environment(cls, env: Optional[Mapping[str, str]] = None) -> Optional["Cluster"]:
        """Returns the cluster that this process was started in; None if it was started alone."""
        env = os.environ if env is None else env
        config = env.get("TF_CONFIG", "").strip()
        return _by_tf_config(config) if config else _by_rank(env)


def is_loopback(host: str) -> bool:
    """Whether an IP address or a name of a host only leads to the machine that it is used on."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # another name may lead anywhere
        return host == "localhost"


def trouble_at(address: str, seconds: float) -> Optional[OSError]:
    """Returns the error of a TCP connection to "host:port"; None if it is accepted in this time."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except OSError as error:
        return error
    return None


def _by_tf_config(text: str) -> Optional[Cluster]:
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"TF_CONFIG is not JSON ({error}): {text}") from error
    jobs, task = config.get("cluster") or {}, config.get("task") or {}
    job, index = task.get("type"), int(task.get("index", 0))
    if not jobs:
        return None  # what TensorFlow takes as one process alone
    if job not in jobs or job not in _JOBS:  # evaluators are not needed: the chief validates
        raise ValueError(f"TF_CONFIG: task {job!r} is not in {list(jobs)}, or none of {_JOBS}.")
    chiefs = (*jobs.get("chief", ()), *jobs.get("master", ()))
    index += len(chiefs) if job == "worker" else 0
    job = "ps" if job == "ps" else "worker"
    return Cluster((*chiefs, *jobs.get("worker", ())), tuple(jobs.get("ps", ())), job, index)


def _by_rank(env: Mapping[str, str]) -> Optional[Cluster]:
    """The cluster of a process that `mpirun` or `srun` has started; all are workers."""
    names = next((keys for keys in (_OPEN_MPI, _MPICH, _SLURM) if keys[-1] in env), None)
    if names is _SLURM and "SLURM_STEP_ID" not in env and env.get("SLURM_NTASKS", "1") != "1":
        raise ValueError("SLURM_NTASKS is not 1, but srun did not start this: use 'srun python'.")
    if names is None or env.get(names[1], "1") == "1":
        return None
    rank, number, local = (int(env[name]) for name in names)
    if names is _SLURM:
        hosts, run = _hosts_of_slurm(env), int(env["SLURM_JOB_ID"])
    else:
        nodes = env.get("TENSORPACK_HOSTS", f"127.0.0.1:{number}").split(",")  # node1:2,node2
        pairs = [node.partition(":") for node in nodes]
        hosts = [host for host, _, count in pairs for _ in range(int(count or 1))]
        run = zlib.crc32(env.get("PMIX_NAMESPACE", env.get("OMPI_MCA_ess_base_jobid", "")).encode())
    if len(hosts) != number or hosts[:rank].count(hosts[rank]) != local:
        raise ValueError(
            f"Rank {rank} of {number} with {names[-1]}={local} does not fit {hosts}: fill one host "
            "after the other, and pass those of mpirun by -x TENSORPACK_HOSTS=node1:2,node2:2."
        )
    # Below the ports that Linux gives to outgoing connections (32768), 16 for each run.
    port = int(env.get("TENSORPACK_PORT") or 10000 + 16 * (run % 1250))
    ports = [port + hosts[:i].count(host) for i, host in enumerate(hosts)]
    return Cluster(tuple(f"{host}:{n}" for host, n in zip(hosts, ports)), index=rank)


def _hosts_of_slurm(env: Mapping[str, str]) -> List[str]:
    command = ["scontrol", "show", "hostnames", env["SLURM_STEP_NODELIST"]]  # node[1-3,7]
    try:
        hosts = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(f"{' '.join(command)} fails ({error}): set TF_CONFIG instead.") from error
    pairs = re.findall(r"(\d+)(?:\(x(\d+)\))?", env["SLURM_STEP_TASKS_PER_NODE"])  # 2(x3),1
    counts = [int(count) for count, times in pairs for _ in range(int(times or 1))]
    return [host for host, count in zip(hosts.split(), counts) for _ in range(count)]
