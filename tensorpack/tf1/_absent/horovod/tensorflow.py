"""What scripts ask Horovod about their process; `HorovodTrainer` needs nothing else of it."""

from typing import Any

from tensorpack.utils.cluster import Cluster

__all__ = ["init", "local_rank", "rank", "size"]


def init() -> None:
    """Does nothing: `HorovodTrainer` starts what it needs."""


def rank() -> int:
    """Returns the number of this worker, 0 if it was started alone."""
    return _cluster().index


def size() -> int:
    """Returns the number of workers."""
    return _cluster().num_workers


def local_rank() -> int:
    """Returns the number of this worker among those of its machine."""
    hosts = [address.rpartition(":")[0] for address in _cluster().workers]
    return hosts[: rank()].count(hosts[rank()])


def _cluster() -> Cluster:
    return Cluster.from_environment() or Cluster(("localhost:1",))


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"Horovod is not installed. What stands for it has {', '.join(__all__)}, not {name}: leave "
        "that to HorovodTrainer, or pip install horovod."
    )
