"""The environment variables of the processes of a machine: roles, shares of cores and of GPUs."""

import os
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from tensorpack.utils.cluster import Cluster
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.nvml import visible_devices
from tensorpack.utils.workers.processes import usable_cores

_THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
_GPUS = "CUDA_VISIBLE_DEVICES"


class Shares(NamedTuple):
    """What the processes of a machine divide among themselves.

    Attributes:
      threads: variables for each, which the user has not set.
      gpus: the value of CUDA_VISIBLE_DEVICES for each worker; None where there is no GPU.
      news: lines about that for the user.
    """

    threads: Mapping[str, str]
    gpus: Optional[Sequence[str]]
    news: str


def shares(workers: int) -> Shares:
    """Divides the cores and GPUs that this program may use among the workers of this machine.

    Where there are fewer GPUs than workers, several workers get the same one. Where they cannot be
    divided evenly, some are left over.
    """
    cores, devices = usable_cores(), visible_devices()
    devices = list(map(str, range(get_num_gpu()))) if devices is None else devices
    if workers < 2:
        return Shares({}, [",".join(devices)] * workers if devices else None, "")
    each = str(max(1, cores // workers))
    threads = {name: each for name in _THREADS if name not in os.environ}
    news = [f"{' = '.join(threads)} = {each}: {workers} workers on {cores} cores."] * bool(threads)
    if not devices:
        return Shares(threads, None, "\n".join(news))
    size = len(devices) // workers
    turns = range(workers)
    parts = [devices[i * size : (i + 1) * size] or [devices[i % len(devices)]] for i in turns]
    gpus = [",".join(part) for part in parts]
    news.append(f"{_GPUS} of the workers: {'; '.join(gpus)}.")
    return Shares(threads, gpus, "\n".join(news))


def environments(clusters: Sequence[Cluster], shares: Shares, attempt: int) -> List[Dict[str, str]]:
    """Returns all variables of each process of this machine: those of this program, and its own.

    `attempt` is how often the group has been restarted.
    """
    gpus = iter(shares.gpus or ())
    found = []
    for cluster in clusters:
        env = {**os.environ, **shares.threads, "PYTHONUNBUFFERED": "1"}
        env.update(TENSORPACK_RESTART=str(attempt), TF_CONFIG=cluster.as_tf_config())
        if shares.gpus is not None:  # a parameter server would take their memory
            env[_GPUS] = next(gpus) if cluster.job == "worker" else ""
        found.append(env)
    return found
