"""Saves checkpoints in real processes, for tests that break the saves.

Imports TensorFlow once, then forks a process for each directory that it reads a line of. That one
saves three checkpoints, prints `READY pid`, waits for the file `go` beside the directory, and makes
the saves of `LATER`, each with its result in a line. `END status` is last.
"""

import os
import sys
import time

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointStore

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


if __name__ == "__main__":
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            save_all(line.strip())
            os._exit(0)
        say("END", os.waitpid(pid, 0)[1])
