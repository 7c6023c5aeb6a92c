"""A program of a group without a trainer: worker 1 adds to a variable of ps 0 on worker 0.

Both workers end when it has done so as often as told; the parameter server serves until its end.
"""

import sys
import time

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.cluster import Cluster


def say(text):
    """Prints a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(steps):
    """Runs the process; `steps` is a number as text."""
    cluster = Cluster.from_environment()
    server = tf.train.Server(cluster.as_dict(), job_name=cluster.job, task_index=cluster.index)
    say("serving")
    if cluster.job == "ps":
        server.join()
    with tf.Graph().as_default():
        _train(cluster, server, int(steps))
    say("done")


def _train(cluster, server, steps):
    with tf.device("/job:ps/task:0/cpu:0"):
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
    with tf.device("/job:worker/task:0/cpu:0"):
        step = tf.assign_add(total, 1.0)
    with tf.Session(server.target) as session:
        if cluster.index == 0:  # worker 1 waits for this: a session needs the servers of all
            session.run(total.initializer)
        while not session.run(tf.is_variable_initialized(total)):
            time.sleep(0.05)
        if cluster.index == 1:
            say("stepping")
            while session.run(step) < steps:
                time.sleep(0.01)
        say("watching")
        while session.run(total) < steps:
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
