"""What the processes of a group get on this machine: addresses, cores and GPUs."""

import contextlib
import json
import os
import random
import socket
from typing import Dict, List, Sequence

from tensorpack.utils._words import LAUNCHED_BY, command_line
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.nvml import visible_devices
from tensorpack.utils.workers.processes import usable_cores

_THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
_PORTS = range(20000, 32768)  # below those that Linux gives to connections


def on_this_machine(workers: int, ps: int, port: int = 0) -> List[Cluster]:
    """Returns the clusters of a group on this machine alone: so many workers and servers.

    They have the ports from `port` on, by default free ones. OSError if a port is in use.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(workers + ps)]
        for number, listener in enumerate(sockets):
            if port:  # usable at once after a run that had it
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(("", port + number))  # on all interfaces, as TensorFlow's servers do
            else:
                _bind_free(listener)
        addresses = tuple(f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets)
    roles = [("worker", i) for i in range(workers)] + [("ps", i) for i in range(ps)]
    return [Cluster(addresses[:workers], addresses[workers:], *role) for role in roles]


def _bind_free(listener: socket.socket) -> None:
    """Binds to a port that stays free for the seconds until TensorFlow takes it.

    One of those that the system gives to connections could be gone by then.
    """
    for port in random.SystemRandom().sample(_PORTS, 100):
        with contextlib.suppress(OSError):
            return listener.bind(("", port))
    return listener.bind(("", 0))


def environments(clusters: Sequence[Cluster]) -> List[Dict[str, str]]:
    """Returns all variables of each process: those of this program, and its own.

    Cores and GPUs are divided evenly among the workers; some may be left over. With fewer GPUs than
    workers, several get the same one. Numbers of threads that the user has set stay.
    """
    workers, devices = clusters[0].num_workers, visible_devices()
    devices = list(map(str, range(get_num_gpu()))) if devices is None else devices
    names = [name for name in _THREADS if name not in os.environ] if workers > 1 else []
    shared = dict.fromkeys(names, str(max(1, usable_cores() // workers)))
    shared.update({"PYTHONUNBUFFERED": "1", LAUNCHED_BY: json.dumps(command_line())})
    envs = [{**os.environ, **shared} for _ in clusters]
    for number, (env, cluster) in enumerate(zip(envs, clusters)):
        env["TF_CONFIG"] = cluster.as_tf_config()
        if devices:  # a parameter server would take their memory
            size = len(devices) // workers
            gpus = devices[number * size : (number + 1) * size] or [devices[number % len(devices)]]
            env["CUDA_VISIBLE_DEVICES"] = ",".join(gpus) if cluster.job == "worker" else ""
    return envs
