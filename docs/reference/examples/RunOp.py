from classifier import train

import tensorpack as tp
from tensorpack.compat import tfv1 as tf


def log_rate():
    rate = [each for each in tf.global_variables() if each.op.name == "learning_rate"][0]
    return tf.print("the learning rate is", rate)


train([tp.RunOp(log_rate, run_as_trigger=True)])  # after each epoch
