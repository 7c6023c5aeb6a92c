import tensorpack as tp
from tensorpack.compat import tfv1 as tf

with tf.Graph().as_default(), tp.TowerContext("", is_training=True):
    out = tp.Conv2D("conv0", tf.zeros([8, 32, 32, 3]), 16, 3, strides=2, activation=tf.nn.relu)
print(out.shape, out.variables.W.shape, out.variables.b.shape)  # (8, 16, 16, 16) ...
