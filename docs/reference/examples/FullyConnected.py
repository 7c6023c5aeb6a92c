import tensorpack as tp
from tensorpack.compat import tfv1 as tf

with tf.Graph().as_default(), tp.TowerContext("", is_training=True):
    hidden = tp.FullyConnected("hidden", tf.zeros([8, 2]), 64, activation=tf.nn.relu)
    logits = tp.FullyConnected("logits", hidden, 10)
print(logits.shape)  # (8, 10)
