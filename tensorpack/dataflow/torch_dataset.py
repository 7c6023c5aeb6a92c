"""A flow as a dataset of PyTorch, whose passes the workers of a `DataLoader` share.

Each worker has a copy of the flow and the same seed, and yields its share of the positions.
"""

from typing import Any, Iterator

import numpy as np

from tensorpack.utils.optional import require
from tensorpack.utils.rng import SeedTree, seed_datapoints

from ._flow import is_flow, what_instead
from ._length import length_of
from ._processes.worker_loop import DatapointSeeds, seed_process
from .base import DataFlow, Dropped


def to_torch_dataset(ds: DataFlow) -> Any:
    """Returns a `torch.utils.data.IterableDataset` of a flow, for a `DataLoader`.

    A pass has each datapoint once, whatever `num_workers` is: the workers share the positions, in
    turn, as the processes of a strict `MultiProcessRunner` do. A pass begins with `reset_state()`,
    and its random streams come from the seed of the loader (`torch.manual_seed`).

    Make the batches in the flow and give the loader `batch_size=None`: then all are whole, and in
    the order of the flow, or a RuntimeError is raised if a map drops a datapoint of a batch. With a
    `batch_size` of the loader, each worker has a smaller last one.
    """
    if not is_flow(ds):
        raise TypeError(f"to_torch_dataset takes a DataFlow, but got {what_instead(ds)}")
    data = require("torch.utils.data", "torch")
    return type("FlowDataset", (_SharedPasses, data.IterableDataset), {})(ds)


class _SharedPasses:
    def __init__(self, ds: DataFlow) -> None:
        self.ds = ds
        self._passes = 0  # of this copy: a worker that is kept makes several with one seed

    def __reduce__(self) -> Any:
        return to_torch_dataset, (self.ds,)

    def __len__(self) -> int:
        return length_of(self.ds)

    def __iter__(self) -> Iterator[Any]:
        self._passes += 1
        worker = require("torch.utils.data", "torch").get_worker_info()
        if worker is None:
            self.ds.reset_state()
            return map(_usable, self.ds)
        seed = SeedTree(worker.seed - worker.id).child("pass", self._passes).integer()
        return self._share(worker.id, worker.num_workers, seed)

    def _share(self, first: int, step: int, seed: int) -> Iterator[Any]:
        seed_process(seed)
        self.ds.reset_state()
        seed_datapoints()
        iterate_share = getattr(type(self.ds), "iterate_share", DataFlow.iterate_share)
        try:
            for _, datapoint in iterate_share(self.ds, first, step, DatapointSeeds(seed)):
                if datapoint is not None:
                    yield _usable(datapoint)
        except Dropped:
            raise RuntimeError(
                "A datapoint in a batch was dropped, so the workers of the DataLoader disagree on "
                "where later batches begin. Give the loader a batch_size instead of BatchData."
            ) from None


def _usable(value: Any) -> Any:
    """Returns a datapoint with arrays that a tensor can share."""
    if isinstance(value, dict):
        return {key: _usable(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_usable, value))
    is_array = isinstance(value, np.ndarray)
    if is_array and (not value.flags.writeable or min(value.strides, default=0) < 0):
        return value.copy()
    return value
