"""The trainers of Horovod and BytePS, under their names; they use Horovod if it is there."""

import importlib
import importlib.util
from typing import Any, List, Optional

from tensorpack.callbacks.base import Callback
from tensorpack.tfutils.collectives import add_up_workers_by
from tensorpack.tfutils.sesscreate import NewSessionCreator
from tensorpack.utils import logger

from .collective import CollectiveTrainer, GradsAndVars


class HorovodTrainer(CollectiveTrainer):
    """Several processes that average their gradients by Horovod, where that is installed; elsewhere
    a `CollectiveTrainer`, which says so in the log.

    With Horovod, start the processes with `horovodrun` or `mpirun`, one for each GPU. How they end
    when one of them fails is then Horovod's, see `CollectiveTrainer` otherwise; and so is resuming:
    only worker 0 saves.

    Args:
      average: whether gradients are averaged over the workers; else they are added up.
      compression: None; "fp16" as in `CollectiveTrainer`; or one of `horovod.Compression`, with
        Horovod only.

    Attributes:
      hvd: the module of Horovod, None where it is not installed.
    """

    def __init__(self, average: bool = True, compression: Any = None) -> None:
        self.hvd = _horovod()
        if self.hvd is None:
            super().__init__(average=average, compression=compression)
            workers = 1 if self.cluster is None else self.cluster.num_workers
            logger.info(f"Horovod is not installed: a CollectiveTrainer of {workers} workers.")
            return
        self.hvd.init()
        super().__init__(average=average, alone=True)
        self._compression = compression
        self._worker = self.hvd.rank()
        self.is_chief = self._worker == 0
        logger.info(f"This is worker {self.hvd.rank()} of {self.hvd.size()} of Horovod.")

    def _setup_graph(self, *args: Any) -> List[Callback]:
        if self.hvd is not None and self.hvd.size() > 1:
            add_up_workers_by(lambda tensor: self.hvd.allreduce(tensor, op=self.hvd.Sum))
        return super()._setup_graph(*args)

    def mpi_enabled(self) -> bool:
        """Returns whether Horovod is used and runs on MPI."""
        return bool(self.hvd is not None and self.hvd.mpi_enabled())

    def allreduce(self, grads: GradsAndVars) -> GradsAndVars:
        """See `CollectiveTrainer`."""
        if self.hvd is None:
            return super().allreduce(grads)
        fp16 = self._compression == "fp16"
        compression = self.hvd.Compression.fp16 if fp16 else self._compression
        options = {} if compression is None else {"compression": compression}
        op = self.hvd.Average if self._average else self.hvd.Sum
        return [(self.hvd.allreduce(grad, op=op, **options), var) for grad, var in grads]

    def initialize(self, session_creator: Any = None, session_init: Any = None) -> None:
        """As the base class; with Horovod, each process of a machine has one of its GPUs."""
        if self.hvd is not None:
            session_creator = session_creator or NewSessionCreator()
            session_creator.config.gpu_options.visible_device_list = str(self.hvd.local_rank())
            with self.graph.as_default():
                self._broadcast = self.hvd.broadcast_global_variables(0)
        super().initialize(session_creator, session_init)


class BytePSTrainer(HorovodTrainer):
    """`HorovodTrainer` under another name; BytePS itself is not used."""


def _horovod() -> Optional[Any]:
    """Returns the module of Horovod, None if it is not installed; errors inside of it are raised.

    The one that `tensorpack.tf1` has for it cannot reduce anything.
    """
    is_there = importlib.util.find_spec("horovod") is not None
    module = importlib.import_module("horovod.tensorflow") if is_there else None
    return module if hasattr(module, "broadcast_global_variables") else None
