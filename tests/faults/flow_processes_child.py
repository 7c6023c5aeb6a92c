"""A training on data from worker processes, one of which does what the case says, as
`test_flow_processes.py` runs it.
"""

import faulthandler

from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import MapData
from tensorpack.dataflow._processes import pool as pool_module
from tensorpack.dataflow.process_map import MultiProcessMapData
from tensorpack.dataflow.processes import MultiProcessRunner
from tensorpack.train import QueueInputTrainer, TrainConfig
from tensorpack.utils import logger
from tests.dataflow import process_functions as functions
from tests.helpers import TinyModel

from . import children_workers
from .marks import mark

__all__ = ["train", "use_after_a_session"]


class MarksSteps(Callback):
    """Says that steps are made."""

    def _after_run(self, ctx, run_values):
        if self.trainer.global_step == 3:
            mark("training")


def train(kind, name, log_dir):
    """Trains; a worker calls the function `name` of `children_workers` at the 300th datapoint."""
    logger.set_logger_dir(log_dir)
    pool_module._WARN_SECONDS = 2.0
    action = getattr(children_workers, name)
    ds = MapData(functions.Endless(), functions.At(300, action))
    if kind == "map":
        flow = MultiProcessMapData(functions.Endless(), 2, functions.At(300, action))
    else:
        flow = MultiProcessRunner(ds, 8, 2, strict=kind == "strict")
    config = TrainConfig(
        model=TinyModel(),
        dataflow=MapData(flow, functions.ones),
        callbacks=[ModelSaver(), MarksSteps()],
        steps_per_epoch=20,
        max_epoch=100000,
    )
    QueueInputTrainer(config).train()


def use_after_a_session(kind):
    """Starts processes beside the threads of a session, and says how."""
    faulthandler.dump_traceback_later(100, exit=True)
    with tf.Session() as sess:
        sess.run(tf.reduce_sum(tf.ones([1000, 1000]) @ tf.ones([1000, 1000])))
        if kind == "map":
            flow = MultiProcessMapData(functions.Endless(), 2, functions.tenfold)
        else:
            ds = MapData(functions.Endless(), functions.tenfold)
            flow = MultiProcessRunner(ds, 8, 2, strict=kind == "strict")
        going = iter(flow)
        found = [next(going)[0] for _ in range(50)]
        if kind == "strict":
            mark(f"in order {found == [10 * i for i in range(50)]}")
        kinds = {type(each.worker).__name__ for each in flow._pools._all[0]._members}
        mark(f"started as {sorted(kinds)}")
        flow.close()
    mark("done")
