import tensorpack as tp
from tensorpack.compat import tfv1 as tf

with tf.Graph().as_default(), tp.TowerContext(
    "", is_training=True
):  # in a predictor it does nothing
    out = tp.Dropout("dropout", tf.ones([8, 64]), rate=0.5)
