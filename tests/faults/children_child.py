"""A training with two workers, one of which does what the case says, as `test_children.py` runs it.

The step waits for data that does not come, as it does when a worker gives none any more.
"""

import sys
import time

from tensorpack.callbacks import Callback, ModelSaver, StartProcOrThread, Watchdog
from tensorpack.train import QueueInputTrainer, TrainConfig
from tensorpack.utils import logger
from tensorpack.utils.worker import make_worker
from tests.helpers import TinyModel

from . import children_workers
from .data import Flow, blocks
from .marks import mark

__all__ = ["main"]


class MarksTheRequest(Callback):
    """Says when the run is asked to end."""

    def _before_train(self):
        self.trainer.stop_token.on_request(lambda: mark(f"requested {time.monotonic()}"))


def main(name, method, log_dir):
    """Trains, with a worker that runs the function `name` of `children_workers`."""
    logger.set_logger_dir(log_dir)
    target = getattr(children_workers, name)
    workers = [
        make_worker(each, name=each.__name__, method=method)
        for each in (children_workers.work, target)
    ]
    callbacks = [
        MarksTheRequest(),
        ModelSaver(),
        StartProcOrThread(workers),
        Watchdog(timeout=3.0),
    ]
    config = TrainConfig(
        model=TinyModel(),
        dataflow=Flow(30, blocks),
        callbacks=callbacks,
        steps_per_epoch=20,
        max_epoch=100000,
    )
    QueueInputTrainer(config).train()


if __name__ == "__main__":
    main(*sys.argv[1:])
