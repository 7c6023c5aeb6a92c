"""The clusters of the processes of a group, and whether their ports are free."""

import contextlib
import socket
from typing import List, Optional, Sequence

from tensorpack.utils.cluster import Cluster

LOOPBACK = "127.0.0.1"


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
