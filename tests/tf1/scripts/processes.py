"""Processes of each start method, which see the same TensorFlow as the script."""

import multiprocessing
import os
import sys

import tensorflow as tf


def square(number):
    with tf.Graph().as_default(), tf.Session() as sess:
        return os.getpid(), int(sess.run(tf.square(number)))


if __name__ == "__main__":
    for method in sys.argv[1:]:
        with multiprocessing.get_context(method).Pool(1) as pool:
            pid, result = pool.apply(square, (3,))
        assert pid != os.getpid() and result == 9
