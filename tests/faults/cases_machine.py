"""Cases in which the machine has no file, no thread or no shared memory left, and a long one."""

import multiprocessing
import os
import resource
from functools import partial

from tensorpack.callbacks import Callback, ScalarPrinter
from tensorpack.tfutils.sesscreate import NewSessionCreator

from .cases_disk import fill
from .marks import mark
from .training import CASES, At, case, train


def no_more_files(_=None):
    """Has every attempt to open a file fail from here on.

    Descriptors are given from the lowest free one on, and none as high as the limit.
    """
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    mark("no files")


@case
def no_files_for_the_session():
    class Hungry(NewSessionCreator):
        def create_session(self):
            no_more_files()
            return super().create_session()

    train(session_creator=Hungry())


def no_more_threads(_=None):
    """Has every attempt to start a thread fail; the user of this process is not root."""
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    mark("no threads")


CASES["no_threads_before_the_training"] = partial(train, None, At("before_train", no_more_threads))
CASES["no_files_in_a_step"] = partial(train, None, At("trigger_step", no_more_files, step=30))


@case
def no_shared_memory():
    fill("/dev/shm")
    train()
    mark("done")


@case
def no_shared_memory_for_a_lock():
    def locks(_):
        multiprocessing.get_context("spawn").Lock()

    fill("/dev/shm")
    train(None, At("before_train", locks))


class Memory(Callback):
    """Marks how much the memory grew, and whether the graph did.

    Takes the least that was used in the first half of each 10 000 steps from `WARM` on. Before
    that, the allocators of TensorFlow 1.15 still take some more for their threads, and once in some
    50 000 steps they do so later, by 1 to 2 MB at once: so the least growth from one to the next
    counts, for a leak grows each time.
    """

    WARM, WINDOW, WINDOWS = 60000, 10000, 6

    def __init__(self):
        self._used = [[] for _ in range(self.WINDOWS)]

    def _before_train(self):
        self._size = self._operations()

    def _operations(self):
        assert self.graph.finalized
        return len(self.graph.get_operations())

    def _trigger_step(self):
        number, step = divmod(self.global_step - self.WARM, self.WINDOW)
        if number >= 0 and step < self.WINDOW // 2 and step % 100 == 0:
            self._used[number].append(_resident())

    def _after_train(self):
        least = [min(used) for used in self._used]
        grown = min(after - before for before, after in zip(least, least[1:])) / 1e6
        mark(f"grown by {grown:.3f} MB in {self.WINDOW} steps")
        mark(f"operations added: {self._operations() - self._size}")


def _resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@case
def long_run():
    train(None, Memory(), steps_per_epoch=1000, max_epoch=115, monitors=[ScalarPrinter()])
