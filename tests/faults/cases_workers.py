"""Cases in which a worker process of a callback or of a dataflow dies, fails or hangs.

The names are `worker_ACTION` and `KIND_ACTION` for each kind of dataflow with processes; an action
is a function of `worker_actions`. The workers load no TensorFlow.
"""

import faulthandler
import time
from functools import partial

from tensorpack.callbacks import Callback, ModelSaver, StartProcOrThread, Watchdog
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import MapData
from tensorpack.dataflow._processes import pool as pool_module
from tensorpack.dataflow.process_map import MultiProcessMapData
from tensorpack.dataflow.processes import MultiProcessRunner
from tensorpack.train import QueueInputTrainer, TrainConfig
from tensorpack.utils.workers.worker import Worker
from tests.dataflow import process_functions as functions
from tests.helpers import TinyModel

from . import worker_actions
from .data import Flow, blocks
from .marks import mark
from .training import CASES, FOR_EVER, STEPS

KINDS = ("mixture", "map")  # of dataflows with processes


class MarksTheRequest(Callback):
    """Says when the run is asked to end."""

    def _before_train(self):
        self.trainer.stop_token.on_request(lambda: mark(f"requested {time.monotonic()}"))


def _train(flow, *callbacks):
    config = TrainConfig(
        model=TinyModel(),
        dataflow=flow,
        callbacks=[MarksTheRequest(), ModelSaver(), *callbacks],
        steps_per_epoch=STEPS,
        max_epoch=FOR_EVER,
    )
    QueueInputTrainer(config).train()


def _with_workers(action, method):
    """Has two workers beside the training, whose step waits for data that does not come."""
    workers = [
        Worker(each, name=each.__name__, method=method) for each in (worker_actions.work, action)
    ]
    _train(Flow(30, blocks), StartProcOrThread(workers), Watchdog(timeout=3.0))


def _flow(kind, function):
    if kind == "map":
        return MultiProcessMapData(functions.Endless(), 2, function, strict=True)
    return MultiProcessRunner(MapData(functions.Endless(), function), 8, 2)


def _with_flow(kind, action):
    """Trains on data of two workers, one of which calls the action at the 300th datapoint."""
    pool_module._WARN_SECONDS = 2.0
    _train(MapData(_flow(kind, functions.At(300, action)), functions.ones))


def _after_a_session(kind):
    """Starts processes beside the threads of a session, and says how."""
    faulthandler.dump_traceback_later(100, exit=True)
    with tf.Session() as sess:
        sess.run(tf.reduce_sum(tf.ones([1000, 1000]) @ tf.ones([1000, 1000])))
        flow = _flow(kind, functions.tenfold)
        going = iter(flow)
        numbers = [next(going)[0] for _ in range(50)]
        if kind == "map":
            mark(f"in order {numbers == [10 * i for i in range(50)]}")
        kinds = {worker.process._start_method for worker in flow._pools._all[0]._workers}
        mark(f"started as {sorted(kinds)}")
        flow.close()
    mark("done")


for name in worker_actions.__all__:
    action = getattr(worker_actions, name)
    CASES[f"worker_{name}"] = partial(_with_workers, action, "spawn")
    CASES[f"worker_{name}_forkserver"] = partial(_with_workers, action, "forkserver")
    CASES.update({f"{kind}_{name}": partial(_with_flow, kind, action) for kind in KINDS})
CASES.update({f"{kind}_after_a_session": partial(_after_a_session, kind) for kind in KINDS})
