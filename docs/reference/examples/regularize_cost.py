import tensorpack as tp
from tensorpack.compat import tfv1 as tf

with tf.Graph().as_default(), tp.TowerContext("", is_training=True):
    tp.FullyConnected("fc0", tf.zeros([8, 4]), 10)
    # The weights of layers whose names begin with fc, not their biases.
    decay = tp.regularize_cost("fc.*/W", tp.l2_regularizer(1e-4), name="weight_decay")
print(decay)
