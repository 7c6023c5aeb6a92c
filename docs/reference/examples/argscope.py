import tensorpack as tp
from tensorpack.compat import tfv1 as tf

with tf.Graph().as_default(), tp.TowerContext("", is_training=True):
    with tp.argscope(tp.Conv2D, kernel_size=3, activation=tf.nn.relu):
        out = tp.Conv2D("conv0", tf.zeros([8, 32, 32, 3]), 16)
        out = tp.Conv2D("conv1", out, 32, strides=2)
print(out.shape)  # (8, 16, 16, 32)
