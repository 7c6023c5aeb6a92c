"""What a save of a DQN with a replay memory of 100,000 frames costs, on one TensorFlow.

    python benchmarks/save_cost.py [--frames 100000] [--new 4000] [--directory DIR]

Trains the network of `examples/DeepQNetwork` on batches from a memory of random frames, once with
`ModelSaver()` and once with `ModelSaver(asynchronous=True)`. Prints, for each save, how long the
training stood still, how long until the state was on the disk, how much time the steps lost
meanwhile, and what is on the disk afterwards; and what it costs to resume from there.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "DeepQNetwork"))

from DQNModel import Model

import tensorpack as tp
from tensorpack.compat import tfv1 as tf
from tensorpack.RL import ReplayMemory
from tensorpack.utils import logger

FRAME, HISTORY, ACTIONS, BATCH = (84, 84), 4, 4, 64
KINDS = 500  # different frames
HEAD = "saver             new  blocked  on disk  steps  slower    lost     segments"


class Memory(tp.DataFlow, tp.Callback):
    """A replay memory that gets so many new frames before each save, and no player.

    Args:
      frames: how many it has.
      new: how many come before each save.
    """

    def __init__(self, frames, new):
        self._memory = ReplayMemory(frames, FRAME, HISTORY)
        self._new = list(new)
        self._rng = np.random.RandomState(0)
        self._kinds = self._rng.randint(256, size=(KINDS, 1) + FRAME).astype(np.uint8)
        self.saved_at = []
        self.ready_at = None

    def __iter__(self):
        while True:
            yield list(self._memory.sample(BATCH, self._rng))

    def _before_train(self):
        self.ready_at = time.perf_counter()
        if self._new and not self.trainer.resumed:
            self._append(self._new[0])

    def _append(self, count):
        zero, no = np.zeros(1, np.int64), np.zeros(1, bool)
        for i in range(count):
            self._memory.append(self._kinds[i % KINDS], zero, zero, no, no)

    def _after_epoch(self):
        if self.trainer.epoch_num > 1:
            self._append(self._new[self.trainer.epoch_num - 1])

    def state_dict(self):
        state = self._memory.state_dict()
        done = state["entries"].on_done

        def on_done(refs):
            self.saved_at.append(time.perf_counter())
            done(refs)

        state["entries"].on_done = on_done
        return state

    def load_state_dict(self, state):
        self._memory.load_state_dict(state)


class Clock(tp.Callback):
    """Notes when each step ended; the first one of an epoch is not counted."""

    def __init__(self):
        self.steps = []  # (begin, end) in seconds
        self._last = None

    def _before_epoch(self):
        self._last = time.perf_counter()

    def _trigger_step(self):
        now = time.perf_counter()
        self.steps.append((self._last, now))
        self._last = now


def run(directory, memory, steps, asynchronous=False, resume="never", epochs=1):
    """Trains; returns when it began, the steps, of each save when it began and when the training
    continued, and the sizes of the segments after it.
    """
    saves, sizes, clock = [], [], Clock()

    class Saver(tp.ModelSaver):
        def _trigger(self):
            if saves:
                sizes.append(megabytes(directory.glob("segments/*")))
            start = time.perf_counter()
            super()._trigger()
            saves.append((start, time.perf_counter()))

    logger.set_logger_dir(str(directory), "keep")
    with tf.Graph().as_default():
        config = tp.TrainConfig(
            dataflow=memory,
            model=Model(ACTIONS, "Double", FRAME, HISTORY),
            callbacks=[memory, Saver(asynchronous=asynchronous), clock],
            extra_callbacks=[],
            monitors=[],
            steps_per_epoch=steps,
            max_epoch=epochs,
            resume=resume,
        )
        begin = time.perf_counter()
        tp.QueueInputTrainer(config).train()
    sizes.append(megabytes(directory.glob("segments/*")))
    return begin, clock.steps, saves, sizes


def megabytes(paths):
    """The size of files, in 10^6 bytes."""
    return sum(path.stat().st_size for path in paths) / 1e6


def rows(name, new, measured, memory):
    """The lines of the table for one run, and one about its steps.

    Args:
      name: of the kind of saver.
      new: how many frames were new at each save.
      measured: what `run` returned.
      memory: its `Memory`.
    """
    _, steps, saves, sizes = measured
    writing = list(zip(saves, memory.saved_at))
    quiet = [e - b for b, e in steps if not any(s[0] <= e and b <= d for s, d in writing)]
    usual = statistics.median(quiet)
    for count, ((start, free), done), size in zip(new, writing, sizes):
        during = [e - b for b, e in steps if free <= b < done]
        slower = statistics.median(during) / usual if during else 1.0
        lost = sum(during) - len(during) * usual
        yield (
            f"{name:12}  {count:7}  {1e3 * (free - start):7.0f}  {1e3 * (done - start):7.0f}"
            f"  {len(during):5}  {slower:6.2f}  {1e3 * lost:6.0f}  {size:11.1f}"
        )
    yield f"{name:12}  a step takes {1e3 * usual:.1f} ms when nothing is saved"


def measure(directory, args, asynchronous):
    """Measures one kind of saver in a directory of its own; yields lines."""
    new = [args.frames, args.new, args.new, args.frames]
    memory = Memory(args.frames, new)
    name = "asynchronous" if asynchronous else "synchronous"
    measured = run(directory, memory, args.steps, asynchronous, epochs=len(new))
    yield from rows(name, new, measured, memory)
    prefix = f"model-{args.steps * len(new)}"
    yield f"{name:12}  {prefix}.* has {megabytes(directory.glob(prefix + '.*')):.1f} MB"


def ready_after(directory, args, resume, epochs):
    """Seconds from `train()` until the callbacks begin."""
    memory = Memory(args.frames, [BATCH])
    begin, _, _, _ = run(directory, memory, args.steps, resume=resume, epochs=epochs)
    return memory.ready_at - begin


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=100000, help="frames in the memory")
    parser.add_argument("--new", type=int, default=4000, help="new frames at a later save")
    parser.add_argument("--steps", type=int, default=100, help="steps between two saves")
    parser.add_argument("--directory", help="on the disk that is to be measured")
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory(dir=args.directory) as folder:
        directory = Path(folder)
        for asynchronous in (False, True):
            lines += measure(directory / str(asynchronous), args, asynchronous)
        resumed = ready_after(directory / "False", args, "must", 4)
        begun = ready_after(directory / "begun", args, "never", 1)
    lines.append(f"resuming takes {1e3 * (resumed - begun):.0f} ms more than a new start")
    sys.stdout.write("\n".join([f"TensorFlow {tf.__version__}; ms, MB", HEAD, *lines, ""]))


if __name__ == "__main__":
    main()
