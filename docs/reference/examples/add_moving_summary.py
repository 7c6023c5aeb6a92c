import tensorpack as tp
from tensorpack.compat import tfv1 as tf


def build_graph(logits, label):  # as in a ModelDesc
    cost = tf.losses.sparse_softmax_cross_entropy(label, logits)
    accuracy = tf.reduce_mean(tf.cast(tf.nn.in_top_k(logits, label, 1), tf.float32))
    # Moving averages of both, under these names, in the log and the event file.
    tp.add_moving_summary(tf.identity(cost, "cost"), tf.identity(accuracy, "accuracy"))
    return cost


with tf.Graph().as_default(), tp.TowerContext("", is_training=True):
    build_graph(tf.zeros([8, 10]), tf.zeros([8], tf.int32))
