"""R15: what it costs to save a DQN with a replay memory of 100,000 frames."""

import tempfile
import time
from pathlib import Path

import numpy as np
from _contest import Contest, itself
from _programs import example, fresh

FRAME, HISTORY, ACTIONS, BATCH = (84, 84), 4, 4, 64
KINDS = 500  # different frames


def save(frames=100000, new=4000, steps=50, directory=""):
    """How long training stands still for an asynchronous save.

    The network of `examples/DeepQNetwork` is trained on batches from a memory of random frames,
    with `ModelSaver(asynchronous=True)`. All frames are new in the first save, which does not
    count, `--new` of them in the five others. `--directory` is on the disk to be measured.
    """
    with tempfile.TemporaryDirectory(dir=directory or None) as name:
        blocked, written = fresh(train, frames, steps, Path(name) / "log", [frames, *[new] * 5])
    sides = {"blocked": blocked[1:], "on disk after": written[1:]}
    what = f"asynchronous save with {new:,} new frames, training blocked"
    yield Contest(what, sides, unit="ms", judge=itself, target="<= 15")


def train(frames, steps, directory, new):
    """Trains an epoch for each of `new`, with so many new frames before it, and saves.

    Returns the milliseconds in which training stood still, and those until a save was on the disk,
    as two lists.
    """
    example("DeepQNetwork")
    import flags
    from DQNModel import Model

    import tensorpack as tp
    from tensorpack.RL import ReplayMemory
    from tensorpack.utils import logger

    begun, freed, written = [], [], []
    kinds = np.random.RandomState(0).randint(256, size=(KINDS, 1, *FRAME)).astype(np.uint8)

    class Memory(tp.DataFlow, tp.Callback):
        """A replay memory without a player."""

        def __init__(self):
            self._memory = ReplayMemory(frames, FRAME, HISTORY)

        def __iter__(self):
            rng = np.random.RandomState(0)
            while True:
                yield list(self._memory.sample(BATCH, rng))

        def _before_train(self):
            self._append(new[0])

        def _append(self, count):
            zero, no = np.zeros(1, np.int64), np.zeros(1, bool)
            for i in range(count):
                self._memory.append(kinds[i % KINDS], zero, zero, no, no)

        def _after_epoch(self):
            if self.trainer.epoch_num > 1:
                self._append(new[self.trainer.epoch_num - 1])

        def state_dict(self):
            state = self._memory.state_dict()
            entries, on_done = state["entries"], state["entries"].on_done
            entries.on_done = lambda refs: (written.append(time.perf_counter()), on_done(refs))
            return state

    class Saver(tp.ModelSaver):
        def _trigger(self):
            begun.append(time.perf_counter())
            super()._trigger()
            freed.append(time.perf_counter())

    logger.set_logger_dir(directory, "keep")
    memory = Memory()
    config = tp.TrainConfig(
        dataflow=memory,
        model=Model(ACTIONS, flags.parse(["--rom", "none.bin"]).algorithm, FRAME, HISTORY),
        callbacks=[memory, Saver(asynchronous=True)],
        extra_callbacks=[],
        monitors=[],
        steps_per_epoch=steps,
        max_epoch=len(new),
    )
    tp.QueueInputTrainer(config).train()
    return [[1e3 * (end - start) for start, end in zip(begun, ends)] for ends in (freed, written)]
