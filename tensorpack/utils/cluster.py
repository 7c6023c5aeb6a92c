"""The processes of a distributed run, their addresses, and which of them this process is.

It needs no TensorFlow. docs/launching.md lists the variables of the environment that are read.
"""

import dataclasses
import ipaddress
import json
import os
import re
import socket
import zlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

_JOBS = ("worker", "ps")
_CHIEFS = ("chief", "master")  # names of TensorFlow's estimators for worker 0
# Ports below those that Linux gives to outgoing connections (32768), 16 for each run.
_FIRST_PORT, _PORTS_OF_A_RUN, _RUNS = 10000, 16, 1250
_MOST_HOSTS = 100000


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The addresses of all processes of a run, and the role of this one.

    Args:
      workers: an address "host:port" for each worker, all different; worker 0 is the chief.
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
        seen: Dict[str, str] = {}
        for job, addresses in self.as_dict().items():
            for index, address in enumerate(addresses):
                _check_address(address, f"{job} {index}")
                if address in seen:
                    raise ValueError(
                        f"{job} {index} and {seen[address]} have the same address {address}: "
                        "give each process an address of its own."
                    )
                seen[address] = f"{job} {index}"
        if not self.workers:
            raise ValueError("The cluster has no worker: give at least one address.")
        if self.job not in _JOBS:
            raise ValueError(f"The job of a process is 'worker' or 'ps', got {self.job!r}.")
        number = len(self.as_dict().get(self.job, ()))
        if not 0 <= self.index < number:
            raise ValueError(
                f"There is no {self.job} {self.index}: the cluster has {number} of job "
                f"{self.job!r}, counted from 0."
            )

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
        return json.dumps(
            {"cluster": self.as_dict(), "task": {"type": self.job, "index": self.index}}
        )

    @classmethod
    def from_environment(cls, env: Optional[Mapping[str, str]] = None) -> Optional["Cluster"]:
        """Returns the cluster that this process was started in; None if it was started alone.

        The first of these that is set decides: `TF_CONFIG`, which `python -m tensorpack.launch`
        sets too; the variables of `srun` (SLURM); those of `mpirun` (Open MPI).

        `env` are the environment variables, by default those of this process. ValueError if one is
        missing or makes no sense; the text names it, its value, and what to do.
        """
        env = os.environ if env is None else env
        if env.get("TF_CONFIG", "").strip():
            return _from_tf_config(env["TF_CONFIG"])
        workers = _Workers(env)
        addresses = workers.of_slurm() or workers.of_open_mpi()
        return cls(tuple(addresses), index=workers.rank) if addresses else None


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


def expand_hosts(text: str) -> List[str]:
    """Returns the names in a host list as SLURM writes it: "n[08-10,12],gpu1" stands for five."""
    pattern = r"(?:[\w.-]|\[[\d,-]+\])+"
    if not re.fullmatch(rf"{pattern}(?:,{pattern})*", text):
        raise ValueError(f"{text!r} is not a list of hosts such as 'node[1-3,7],gpu01'.")
    return [host for part in re.findall(pattern, text) for host in _expand(part)]


def _expand(text: str) -> List[str]:
    """Expands a name with any number of ranges in brackets."""
    head, bracket, rest = text.partition("[")
    if not bracket:
        return [head]
    ranges, _, tail = rest.partition("]")
    numbers: List[str] = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last)):
            raise ValueError(f"{part!r} in the host list {text!r} is not a range such as 1-3.")
        if int(last) - int(first) >= _MOST_HOSTS:
            raise ValueError(f"{part!r} in the host list {text!r} stands for too many hosts.")
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return [f"{head}{number}{end}" for number in numbers for end in _expand(tail)]


def _check_address(address: Any, whose: str) -> None:
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    bare = ":" in host and not host.startswith("[")  # IPv6 without its brackets
    if not host or bare or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(
            f"The address of {whose} is {address!r}: it must be 'host:port' with a port of 1 to "
            "65535, IPv6 as '[::1]:port'."
        )


def _from_tf_config(text: str) -> Optional[Cluster]:
    try:
        return _parse_tf_config(json.loads(text))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"TF_CONFIG is not JSON ({error}): {_shorten(text)}. Correct it, or unset it to run "
            "one process alone."
        ) from error
    except ValueError as error:
        raise ValueError(f"TF_CONFIG is {_shorten(text)}: {error}") from error


def _parse_tf_config(config: Any) -> Optional[Cluster]:
    form = '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'
    if not isinstance(config, dict):
        raise ValueError(f"It must be an object such as {form}.")
    jobs, task = config.get("cluster") or {}, config.get("task") or {}
    if not isinstance(jobs, dict) or not isinstance(task, dict):
        raise ValueError(f"'cluster' and 'task' must be objects, as in {form}.")
    if "evaluator" in jobs or task.get("type") == "evaluator":
        raise ValueError(
            "There are no evaluators here: validation runs in the chief, by InferenceRunner. "
            "Leave 'evaluator' out, and do not start that process."
        )
    if not jobs:
        return None  # what TensorFlow takes as one process alone
    for job, addresses in jobs.items():
        if job not in _JOBS + _CHIEFS:
            raise ValueError(f"The job {job!r} is unknown: use {', '.join(_JOBS + _CHIEFS)}.")
        if not isinstance(addresses, list):
            raise ValueError(f"The addresses of job {job!r} must be a list, got {addresses!r}.")
    chiefs = [address for job in _CHIEFS for address in jobs.get(job, ())]
    if len(chiefs) > 1:
        raise ValueError(f"There is one chief (or master), got {chiefs}.")
    job, index = task.get("type"), task.get("index", 0)
    if job not in jobs:
        raise ValueError(f"'task' must say which of these this process is, as in {form}.")
    if isinstance(index, bool) or not re.fullmatch(r"\d+", str(index)):
        raise ValueError(f"The index of the task must be a number from 0 on, got {index!r}.")
    if int(index) >= len(jobs[job]):
        raise ValueError(f"There is no {job} {index}: it has {len(jobs[job])} of this job.")
    index = int(index) + (len(chiefs) if job == "worker" else 0)
    workers = chiefs + jobs.get("worker", [])
    own_job = "worker" if job in _CHIEFS else str(job)
    return Cluster(tuple(workers), tuple(jobs.get("ps", ())), own_job, index)


class _Workers:
    """Finds the addresses of all workers in the variables that a batch system sets.

    Each process is a worker. Those of one machine take ports that follow each other.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.rank = 0

    def of_slurm(self) -> List[str]:
        """Addresses of the tasks of a step; none if this is not one of several."""
        if "SLURM_PROCID" not in self._env:
            return []
        size = self._number("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", default=1)
        if size == 1:
            return []
        if not self._get("SLURM_STEP_ID", "SLURM_STEP_NODELIST")[1]:
            raise ValueError(
                f"SLURM_NTASKS is {size}, but srun did not start this process (there is no "
                "SLURM_STEP_ID): start it by 'srun python ...', or with SLURM_NTASKS=1 for one "
                "process alone."
            )
        self.rank = self._number("SLURM_PROCID")
        name, text = self._get("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
        try:
            hosts = expand_hosts(text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        slots = list(zip(hosts, self._tasks_per_node(size, len(hosts))))
        remedy = "Start the tasks by 'srun --distribution=block', without --relative."
        port = self._port(self._number("SLURM_JOB_ID", "SLURM_JOBID", default=0))
        return self._addresses(slots, size, port, "SLURM_NODEID", remedy)

    def _tasks_per_node(self, size: int, nodes: int) -> List[int]:
        name, text = self._get("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
        if not text:
            each = self._number("SLURM_NTASKS_PER_NODE", default=-(-size // nodes))
            return [max(0, min(each, size - each * node)) for node in range(nodes)]
        counts: List[int] = []
        for part in text.split(","):
            match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
            if match is None or int(match.group(2) or 1) > _MOST_HOSTS:
                raise ValueError(f"{name} is {text!r}, not a list of counts such as '2(x3),1'.")
            counts += [int(match.group(1))] * int(match.group(2) or 1)
        if len(counts) != nodes:
            raise ValueError(f"{name} is {text!r}, but the list of nodes has {nodes}.")
        return counts

    def of_open_mpi(self) -> List[str]:
        """Addresses of the processes of `mpirun`; none if this is not one of several."""
        size = self._number("OMPI_COMM_WORLD_SIZE", default=1)
        if size == 1:
            return []
        self.rank = self._number("OMPI_COMM_WORLD_RANK")
        text = self._env.get("TENSORPACK_HOSTS", "").strip()
        if not text and self._number("OMPI_COMM_WORLD_LOCAL_SIZE", default=0) != size:
            raise ValueError(
                f"OMPI_COMM_WORLD_SIZE is {size} on several machines, and Open MPI does not say "
                "which: pass the list of 'mpirun --host' in TENSORPACK_HOSTS as well, such as "
                "-x TENSORPACK_HOSTS=node1:2,node2:2."
            )
        found = re.findall(r"([\w.-]+)(?::(\d+))?", text)  # "node1:2,node2"
        slots = [(host, int(count or 1)) for host, count in found] or [("127.0.0.1", size)]
        remedy = "Give both the same list, and start by 'mpirun --map-by slot'."
        job = self._get("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")[1]
        port = self._port(zlib.crc32(job.encode()))
        return self._addresses(slots, size, port, "OMPI_COMM_WORLD_LOCAL_RANK", remedy)

    def _addresses(
        self, slots: List[Tuple[str, int]], size: int, port: int, witness: str, remedy: str
    ) -> List[str]:
        """The addresses of `size` processes, in the order of their ranks.

        `slots` has the machines, block by block, and how many processes each has. `witness` is a
        variable that must agree for this process, if it is set; `remedy` is for the error.
        """
        machines = enumerate(slots)
        places = [(host, node, n) for node, (host, count) in machines for n in range(count)]
        if len(places) != size or not 0 <= self.rank < size:
            raise ValueError(
                f"The environment speaks of {size} processes, this one with rank {self.rank}, but "
                f"its list of hosts has room for {len(places)}: {_shorten(repr(slots))}. {remedy}"
            )
        _, node, local = places[self.rank]
        expected = node if witness == "SLURM_NODEID" else local
        given = self._number(witness, default=expected)
        if given != expected:
            raise ValueError(
                f"{witness} is {given}, but rank {self.rank} would have {expected} if the ranks "
                f"filled one machine after the other. {remedy}"
            )
        if port + max(count for _, count in slots) > 65536:
            raise ValueError(f"TENSORPACK_PORT={port} leaves too few ports: take a lower one.")
        return [f"{host}:{port + local}" for host, _, local in places]

    def _port(self, number: int) -> int:
        """The port of the first process on each machine: `TENSORPACK_PORT`, or by `number`."""
        default = _FIRST_PORT + _PORTS_OF_A_RUN * (number % _RUNS)
        port = self._number("TENSORPACK_PORT", default=default)
        if port == 0:
            raise ValueError("TENSORPACK_PORT is 0: give a port that all processes know.")
        return port

    def _get(self, *names: str) -> Tuple[str, str]:
        """The first of some variables that is set, and its value; or the first name and ""."""
        for name in names:
            if self._env.get(name, "").strip():
                return name, self._env[name].strip()
        return names[0], ""

    def _number(self, *names: str, default: Optional[int] = None) -> int:
        name, text = self._get(*names)
        if not text and default is not None:
            return default
        if not re.fullmatch(r"\d{1,18}", text):
            what = repr(text) if text else "not set"
            raise ValueError(f"{name} is {what}: it must be a number from 0 on.")
        return int(text)


def _shorten(text: str) -> str:
    return text if len(text) <= 300 else text[:300] + "..."
