"""A flow as a dataset of PyTorch, whose passes the ranks and the workers of a `DataLoader` share.

Each of them has a copy of the flow and the same seed, and yields its share of the positions.
"""

from typing import Any, Iterator, Optional, Tuple

import numpy as np

from tensorpack.utils.checks import check_integers
from tensorpack.utils.optional import require
from tensorpack.utils.rng import SeedTree, seed_datapoints, streams_from

from ._flow import is_flow, what_instead
from ._length import length_of
from ._processes.worker_loop import DatapointSeeds, check_shared_order, seed_process
from .base import DataFlow, Dropped, share_of


def to_torch_dataset(
    ds: DataFlow, *, num_replicas: int = 1, rank: int = 0, seed: Optional[int] = None
) -> Any:
    """Returns a `torch.utils.data.IterableDataset` of a flow, for a `DataLoader`.

    A pass has each datapoint once, whatever `num_workers` is: the workers share the positions, in
    turn, as the processes of a strict `MultiProcessRunner` do. A pass begins with `reset_state()`,
    so a `FixedSizeData` yields the first datapoints each time.

    Make the batches in the flow and give the loader `batch_size=None`: then all are whole, and in
    the order of the flow, or a RuntimeError is raised if a map drops a datapoint of a batch. With a
    `batch_size` of the loader, each worker has a smaller last one.

    Args:
      num_replicas, rank: as of a `DistributedSampler`: a rank yields every `num_replicas`-th
        position, beginning with its own number. The first ranks may have one more than the others.
      seed: of the random streams, the same on all ranks; call `set_epoch(epoch)` of the dataset
        before a pass, for other ones. None is 0 for several ranks, else the seed of the loader.
    """
    if not is_flow(ds):
        raise TypeError(f"to_torch_dataset takes a DataFlow, but got {what_instead(ds)}")
    check_integers("to_torch_dataset", num_replicas=num_replicas, rank=rank)
    if not 0 <= rank < num_replicas:
        raise ValueError(f"to_torch_dataset: rank={rank} is not in range({num_replicas}).")
    seed = 0 if seed is None and num_replicas > 1 else seed
    root = None if seed is None else SeedTree(seed)
    kind = type("FlowDataset", (_SharedPasses, require("torch.utils.data").IterableDataset), {})
    return kind(ds, (rank, num_replicas), root)


class _SharedPasses:
    def __init__(self, ds: DataFlow, share: Tuple[int, int], root: Optional[SeedTree]) -> None:
        self.ds = ds
        self._share, self._root = share, root
        self._passes = 0  # of this copy: a worker that is kept makes several with one seed

    def __reduce__(self) -> Any:
        return to_torch_dataset, (self.ds,), vars(self)

    def __len__(self) -> int:
        first, step = self._share
        return len(range(first, length_of(self.ds), step))

    def set_epoch(self, epoch: int) -> None:
        """Gives the next pass the random streams of an epoch, which is counted from 0."""
        self._passes = epoch

    def __iter__(self) -> Iterator[Any]:
        worker, root = require("torch.utils.data").get_worker_info(), self._root
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        if root is None and worker is None:  # each pass draws another one, as a loader does
            self._passes, root = 0, SeedTree(int(require("torch").randint(2**62, ())))
        elif root is None:
            root = SeedTree(worker.seed - worker.id)
        self._passes += 1
        seed = root.child("pass", self._passes).integer()
        rank, ranks = self._share
        return self._pass(rank + ranks * number, ranks * count, seed, worker is not None)

    def _pass(self, first: int, step: int, seed: int, in_worker: bool) -> Iterator[Any]:
        before: Any = DatapointSeeds(seed)
        if in_worker:
            seed_process(seed)
            self.ds.reset_state()
            seed_datapoints()
            check_shared_order(self.ds, step)
        else:
            before = bool  # what else this process draws is not seeded here
            with streams_from(seed):
                self.ds.reset_state()
                check_shared_order(self.ds, step)
        block = None if step == 1 else 1  # all can fill up for what is dropped
        try:
            for _, datapoint in share_of(self.ds, first, step, before, block):
                if datapoint is not None:
                    yield _usable(datapoint)
        except Dropped:
            raise RuntimeError(
                "A datapoint in a batch was dropped, so ranks, or workers of the loader, disagree "
                "on where later batches begin. Give the loader a batch_size instead of BatchData."
            ) from None


def _usable(value: Any) -> Any:
    """Returns a datapoint with arrays that a tensor can share."""
    if isinstance(value, dict):
        return {key: _usable(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_usable, value))
    if not isinstance(value, np.ndarray) or (
        value.dtype.isnative and value.flags.writeable and min(value.strides, default=0) >= 0
    ):
        return value
    return value.astype(value.dtype.newbyteorder("="), order="C")
