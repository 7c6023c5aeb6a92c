"""Whole flows in worker processes, whose datapoints come to the consumer through shared memory."""

import itertools
from typing import Any, Iterable, Iterator, Optional, Sequence

from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_count
from tensorpack.utils.workers.worker_errors import WorkerDied, WorkerFailed  # noqa: F401

from ._flow import length_or_none
from ._processes.channel import Limits
from ._processes.flows import ProcessFlow
from ._processes.pool import WorkerPool
from ._processes.start_method import choose_start_method, is_worker
from ._processes.worker_loop import draw_seed, run_flow
from .base import DataFlow, RNGDataFlow

_GIB = 2**30


class MultiProcessRunner(ProcessFlow):
    """Runs a flow in several processes, and yields a mixture of what they make.

    Each process repeats the whole flow for ever, with its own random streams. A pass is as many
    datapoints of the mixture as the flow has, and the next pass continues it; without a length a
    pass has no end. With several processes the order differs from run to run, and a pass may have
    some datapoints twice and lack others, which is right for training on shuffled data and wrong
    for anything that must see each datapoint once: that is `MultiProcessMapData` with
    `strict=True`, also for whole batches. One process keeps the order of the flow.

    It has no state. A run that is resumed makes the data of one process again from the seed, if
    one was fixed; several processes start over, with other data.

    **Memory.** Arrays are read-only views of shared memory, and are not copied on their way to
    TensorFlow. The memory is reused when the last array that views it is gone in this process: copy
    what a process that you fork is to keep. A consumer that keeps many arrays gets copies.

    Whatever can be pickled can be sent, and comes as what it was.

    **Processes** are started by `reset_state`, by the first pass or by `start_processes`, and end
    with `close`, with the flow itself, or with this process, however that ends. A flow with
    processes inside of this one runs in each of them, without more processes. An exception in a
    process, or its death, is raised by the iteration; then all processes are ended, and the next
    pass starts new ones.
    """

    @accepts_old_keywords(nr_prefetch="num_prefetch", nr_proc="num_proc")
    def __init__(
        self,
        ds: DataFlow,
        num_prefetch: int,
        num_proc: int = 1,
        buffer_bytes: int = _GIB,
        start_method: Optional[str] = None,
    ) -> None:
        """
        Args:
          ds: the flow. It is not iterated in this process.
          num_prefetch: how many datapoints may wait for the consumer, of all processes together;
            at least one of each.
          num_proc: the number of processes.
          buffer_bytes: how many bytes may wait, at most; a single datapoint may have more.
          start_method: of `multiprocessing`. By default "fork" while this process has no TensorFlow
            session and no other thread that works, and else "forkserver", which needs a flow that
            can be pickled.
        """
        super().__init__(ds, num_proc, buffer_bytes, start_method)
        num_prefetch = as_count(self, "num_prefetch", num_prefetch)
        self._mixed = self.num_proc  # so many passes at a time, in one
        self._limits = Limits.of(num_prefetch, self._buffer_bytes, self.num_proc)

    def reset_state(self) -> None:
        """Gives the processes new random streams, and starts them if there are none."""
        RNGDataFlow.reset_state(self)
        if is_worker():
            self.ds.reset_state()
        self._pools.restart()
        self.start_processes()

    def _without_processes(self) -> DataFlow:
        return self.ds

    def _begin(self) -> Iterator[Any]:
        length = length_or_none(self)
        rounds: Iterable[Any] = itertools.repeat(None) if length is None else range(length)
        with self._pools.sharing:
            pool = self._pools.take(self._make_pool, alone=False)
            if not pool.has_begun:
                pool.begin([draw_seed(self.rng) for _ in range(self.num_proc)])
        for _ in rounds:
            _, (_, datapoint) = pool.exchange()
            yield datapoint
            datapoint = None  # the pool may wait for its memory

    def _make_pool(self) -> WorkerPool:
        return WorkerPool(
            run_flow,
            [(env, self.ds) for env in self.environments or [{}] * self.num_proc],
            ("ds", self.ds),
            self._limits,
            choose_start_method(self._start_method),
            f"{type(self).__name__} of {type(self.ds).__name__}",
        )


class MultiProcessRunnerZMQ(MultiProcessRunner):
    """`MultiProcessRunner` with the arguments of the one on ZMQ: `hwm` is its `num_prefetch`."""

    @accepts_old_keywords(nr_proc="num_proc")
    def __init__(
        self,
        ds: DataFlow,
        num_proc: int = 1,
        hwm: int = 50,
        buffer_bytes: int = _GIB,
        start_method: Optional[str] = None,
    ) -> None:
        super().__init__(ds, hwm, num_proc, buffer_bytes, start_method)


class PrefetchOnGPUs(MultiProcessRunnerZMQ):
    """Runs a flow in a process for each GPU, which sees no other one."""

    def __init__(self, ds: DataFlow, gpus: Sequence[int], pipedir: Any = None) -> None:
        """Each of the numbers `gpus` is `CUDA_VISIBLE_DEVICES` of a process; no pipe is made."""
        self.gpus = [int(gpu) for gpu in gpus]
        super().__init__(ds, num_proc=len(self.gpus))
        self.environments = [{"CUDA_VISIBLE_DEVICES": str(gpu)} for gpu in self.gpus]


MultiProcessPrefetchData = PrefetchData = MultiProcessRunner
PrefetchDataZMQ = MultiProcessRunnerZMQ
