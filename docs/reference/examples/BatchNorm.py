import tensorpack as tp
from tensorpack.compat import tfv1 as tf

with tf.Graph().as_default(), tp.TowerContext(
    "", is_training=True
):  # the trainer and the predictor open it
    out = tp.Conv2D("conv0", tf.zeros([8, 32, 32, 3]), 16, 3, use_bias=False)
    out = tf.nn.relu(tp.BatchNorm("bn0", out))
print(out.shape)
