"""Who runs where: the clusters of the processes that one machine has to start."""

import contextlib
import re
import socket
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from tensorpack.utils.cluster import Cluster

LOOPBACK = "127.0.0.1"
_LINE = re.compile(r"(?P<name>[\w.-]+|\[[\da-fA-F:.]+\])(?::(?P<port>\d{1,5}))?(?P<rest>(?:\s.*)?)")
_COUNT = re.compile(r"(workers|ps)=(\d{1,5})")


class Host(NamedTuple):
    """A line of a host file."""

    name: str
    port: Optional[int]  # of its first process
    workers: int
    ps: int


def read_hosts(text: str) -> List[Host]:
    """Parses a host file: lines `host[:port] [workers=N] [ps=N]`, and comments from # on.

    A line that gives neither number stands for one worker.
    """
    hosts = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        match = _LINE.fullmatch(line)
        words = match.group("rest").split() if match else []
        counts = {m.group(1): int(m.group(2)) for m in map(_COUNT.fullmatch, words) if m}
        if line and (match is None or len(counts) != len(words)):
            raise ValueError(f"line {number} is {line!r}, not 'host[:port] [workers=N] [ps=N]'")
        if match:
            counts = counts or {"workers": 1}
            port = int(match.group("port")) if match.group("port") else None
            name = match.group("name")
            hosts.append(Host(name, port, counts.get("workers", 0), counts.get("ps", 0)))
    if not any(host.workers for host in hosts):
        raise ValueError("it names no host with a worker")
    return hosts


def on_host(hosts: Sequence[Host], here: Sequence[str], port: int) -> List[Cluster]:
    """Returns the clusters of the processes of one machine.

    `hosts` are all machines, in the same order on each; `here` are the names of this one. `port` is
    that of the first process of a machine whose line gives none.
    """
    addresses: Dict[str, List[str]] = {"worker": [], "ps": []}
    mine: List[Tuple[str, int]] = []
    next_ports: Dict[str, int] = {}
    for host in hosts:
        first = next_ports.get(host.name, port) if host.port is None else host.port
        next_ports[host.name] = first + host.workers + host.ps
        jobs = ["worker"] * host.workers + ["ps"] * host.ps
        for offset, job in enumerate(jobs):
            if host.name in here:
                mine.append((job, len(addresses[job])))
            addresses[job].append(f"{host.name}:{first + offset}")
    if not mine:
        raise ValueError(
            f"this machine is {' or '.join(here)}, which the file does not name with a process: "
            "say by --host NAME which lines are its own"
        )
    workers, ps = tuple(addresses["worker"]), tuple(addresses["ps"])
    return [Cluster(workers, ps, job, index) for job, index in mine]


def names_of_this_machine() -> List[str]:
    """Returns its host name, with and without its domain."""
    name = socket.gethostname()
    return list(dict.fromkeys([name, name.partition(".")[0]]))


def on_this_machine(workers: int, ps: int, port: Optional[int] = None) -> List[Cluster]:
    """Returns the clusters of a group on this machine alone: so many workers and servers.

    They have the ports from `port` on; free ones by default.
    """
    count = workers + ps
    ports = _free_ports(count) if port is None else range(port, port + count)
    addresses = tuple(f"{LOOPBACK}:{each}" for each in ports)
    roles = [("worker", i) for i in range(workers)] + [("ps", i) for i in range(ps)]
    return [Cluster(addresses[:workers], addresses[workers:], *role) for role in roles]


def _free_ports(number: int) -> List[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("", 0))  # on all interfaces, as the servers of TensorFlow do
        return [each.getsockname()[1] for each in sockets]


def busy_ports(clusters: Sequence[Cluster]) -> List[str]:
    """Sentences about ports of processes of this machine that another program listens on."""
    found = []
    for cluster in clusters:
        port = int(cluster.address.rpartition(":")[2])
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError as error:
                found.append(f"port {port} of {cluster.name} cannot be used ({error.strerror})")
    return found
