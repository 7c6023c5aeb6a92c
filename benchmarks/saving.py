"""R15: what it costs to save and to resume a DQN with a replay memory of 100,000 frames."""

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from _contest import Contest, difference, itself
from _programs import example, fresh

FRAME, HISTORY, ACTIONS, BATCH = (84, 84), 4, 4, 64
KINDS = 500  # different frames


def save(frames=100000, new=4000, steps=100, directory=""):
    """How long the training stands still for a save, and how long until its state is on the disk.

    The network of `examples/DeepQNetwork` is trained on batches from a memory of random frames,
    with `ModelSaver()` and with `ModelSaver(asynchronous=True)`. All frames are new in the first
    save, `--new` of them in the second and the third. "lost" is how much longer the steps take
    until the state is on the disk. `--directory` is on the disk that is to be measured.
    """
    ms = {"unit": "ms", "judge": itself}
    with tempfile.TemporaryDirectory(dir=directory or None) as name:
        folder = Path(name)
        for kind in ("synchronous", "asynchronous"):
            saves = fresh(measure, folder / kind, frames, [frames, new, new], steps, kind)
            for what, rows, target in (
                (f"a save with {frames:,} new frames", saves[:1], ""),
                (f"a save with {new:,} new frames", saves[1:], "<= 15"),
            ):
                blocked, on_disk, lost, megabytes = map(list, zip(*rows))
                told = {"blocked": blocked, "on disk after": on_disk, "lost": lost}
                note = f"{kind}, {statistics.median(megabytes):.0f} MB"
                wanted = target if kind == "asynchronous" else ""
                yield Contest(f"{what}, training blocked", told, target=wanted, note=note, **ms)
        resumed = fresh(ready_after, folder / "synchronous", frames, steps, "must", 4)
        begun = fresh(ready_after, folder / "begun", frames, steps, "never", 1)
    sides = {"resume": [resumed], "new start": [begun]}
    yield Contest("resuming beyond a new start", sides, unit="ms", judge=difference)


def measure(directory, frames, new, steps, kind):
    """For each save: ms that training was blocked, until it was on the disk, and that steps lost
    meanwhile, and MB that are on the disk afterwards.
    """
    memory = make_memory(frames, new)
    _, steps, saves, sizes = train(
        directory, memory, steps, kind == "asynchronous", epochs=len(new)
    )
    writing = list(zip(saves, memory.saved_at))
    quiet = [e - b for b, e in steps if not any(s[0] <= e and b <= d for s, d in writing)]
    usual, rows = statistics.median(quiet), []
    for ((start, free), done), megabytes in zip(writing, sizes):
        lost = sum(e - b - usual for b, e in steps if free <= b < done)
        rows.append([1e3 * (free - start), 1e3 * (done - start), 1e3 * lost, megabytes])
    return rows


def ready_after(directory, frames, steps, resume, epochs):
    """Milliseconds from `train()` until the callbacks begin."""
    memory = make_memory(frames, [BATCH] * epochs)
    begin, _, _, _ = train(directory, memory, steps, resume=resume, epochs=epochs)
    return 1e3 * (memory.ready_at - begin)


def make_memory(frames, new):
    """A replay memory that gets so many new frames before each save, and no player."""
    import tensorpack as tp
    from tensorpack.RL import ReplayMemory

    class Memory(tp.DataFlow, tp.Callback):
        def __init__(self):
            self._memory = ReplayMemory(frames, FRAME, HISTORY)
            self._rng = np.random.RandomState(0)
            self._kinds = self._rng.randint(256, size=(KINDS, 1) + FRAME).astype(np.uint8)
            self.saved_at = []

        def __iter__(self):
            while True:
                yield list(self._memory.sample(BATCH, self._rng))

        def _before_train(self):
            self.ready_at = time.perf_counter()
            if not self.trainer.resumed:
                self._append(new[0])

        def _append(self, count):
            zero, no = np.zeros(1, np.int64), np.zeros(1, bool)
            for i in range(count):
                self._memory.append(self._kinds[i % KINDS], zero, zero, no, no)

        def _after_epoch(self):
            if self.trainer.epoch_num > 1:
                self._append(new[self.trainer.epoch_num - 1])

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

    return Memory()


def train(directory, memory, steps, asynchronous=False, resume="never", epochs=1):
    """Trains; returns when it began, begin and end of each step but the first of an epoch, of each
    save when it began and when the training continued, and the sizes of the segments after it.
    """
    example("DeepQNetwork")
    import flags
    from DQNModel import Model

    import tensorpack as tp
    from tensorpack.utils import logger

    saves, sizes, times = [], [], []

    class Saver(tp.ModelSaver):
        def _trigger(self):
            if saves:
                sizes.append(segments(directory))
            start = time.perf_counter()
            super()._trigger()
            saves.append((start, time.perf_counter()))

    class Clock(tp.Callback):
        def _before_epoch(self):
            self._last = time.perf_counter()

        def _trigger_step(self):
            now = time.perf_counter()
            times.append((self._last, now))
            self._last = now

    logger.set_logger_dir(directory, "keep")
    algorithm = flags.parse(["--rom", "none.bin"]).algorithm
    config = tp.TrainConfig(
        dataflow=memory,
        model=Model(ACTIONS, algorithm, FRAME, HISTORY),
        callbacks=[memory, Saver(asynchronous=asynchronous), Clock()],
        extra_callbacks=[],
        monitors=[],
        steps_per_epoch=steps,
        max_epoch=epochs,
        resume=resume,
    )
    begin = time.perf_counter()
    tp.QueueInputTrainer(config).train()
    return begin, times, saves, [*sizes, segments(directory)]


def segments(directory):
    """The size of the files of the memory, in 10^6 bytes."""
    return sum(path.stat().st_size for path in Path(directory).glob("segments/*")) / 1e6
