"""Flags, and a main function whose value is the exit code."""

import sys

import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("steps", 3, "how many")
flags.DEFINE_string("name", "none", "of the run")
flags.DEFINE_boolean("fast", False, "hurry")
FLAGS = flags.FLAGS


def main(argv):
    assert argv == [sys.argv[0], "rest"] and argv[0].endswith("flags.py"), argv
    assert (FLAGS.steps, FLAGS.name, FLAGS.fast) == (7, "run", True)
    assert tf.flags.FLAGS is FLAGS
    return FLAGS.steps


if __name__ == "__main__":
    tf.app.run()
