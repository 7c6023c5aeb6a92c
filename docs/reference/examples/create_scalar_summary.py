import tensorpack as tp
from tensorpack.compat import tfv1 as tf


def build_graph():  # as in a ModelDesc
    rate = tf.get_variable("learning_rate", initializer=0.01, trainable=False)
    tp.create_scalar_summary("learning_rate", rate)  # a scalar of this name after each epoch


with tf.Graph().as_default():
    build_graph()
