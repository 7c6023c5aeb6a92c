"""Saves checkpoints in a real process, for tests that break the saves: `saving_child.py MODE`.

`nursery`: imports TensorFlow once, then forks a process for each directory that it reads a line
of. That one saves three checkpoints, prints `READY pid`, waits for the file `go` beside the
directory, and makes the saves of `LATER`, each with its result in a line. `END status` is last.

`limited DIRECTORY`: trains three epochs with a `ModelSaver`; in the second one the system lets no
file grow as large as a checkpoint.
"""

import os
import resource
import sys
import time

from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointStore
from tests.callbacks.driver import MiniTrainer

EARLIER = [(1, 1), (2, 2), (3, 3)]  # step, and the value of all variables
LATER = [(4, 4), (5, 5), (5, 50)]


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Model:
    """Two variables, full of the same number."""

    def __init__(self):
        with tf.Graph().as_default():
            value = tf.placeholder(tf.float32, [])
            one = tf.get_variable("one", [200], initializer=tf.zeros_initializer())
            two = tf.get_variable("two", [3, 5], initializer=tf.zeros_initializer())
            assign = [tf.assign(each, tf.fill(each.shape, value)).op for each in (one, two)]
            self._saver = tf.train.Saver([one, two], max_to_keep=0)
            # One thread: a fault that happens once in each is not to hit every save.
            one_thread = tf.ConfigProto(
                inter_op_parallelism_threads=1,
                intra_op_parallelism_threads=1,
                use_per_session_threads=True,
            )
            self._session = tf.Session(config=one_thread)
        self._set = lambda number: self._session.run(assign, {value: number})

    def save(self, store, step, number):
        self._set(number)
        store.save(step, self._write)

    def _write(self, prefix):
        with self._session.graph.as_default():
            self._saver.save(self._session, prefix, write_meta_graph=False, write_state=False)


def save_all(directory):
    model, store = Model(), CheckpointStore(directory, max_to_keep=2)
    for step, number in EARLIER:
        model.save(store, step, number)
    say("READY", os.getpid())
    go = os.path.join(os.path.dirname(directory), "go")
    while not os.path.exists(go):
        time.sleep(0.005)
    for step, number in LATER:
        try:
            model.save(store, step, number)
        except (OSError, tf.errors.OpError) as error:
            say("FAILED", step, number, type(error).__name__)
        else:
            say("SAVED", step, number)


def nursery():
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            save_all(line.strip())
            os._exit(0)
        say("END", os.waitpid(pid, 0)[1])


class Limit(Callback):
    def _before_epoch(self):
        soft = 100 if self.epoch_num == 2 else resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))


def limited(directory):
    with tf.Graph().as_default():
        tf.get_variable("weight", [1000])
        MiniTrainer([Limit(), ModelSaver(checkpoint_dir=directory)], max_epoch=3).train()


if __name__ == "__main__":
    nursery() if sys.argv[1] == "nursery" else limited(sys.argv[2])
