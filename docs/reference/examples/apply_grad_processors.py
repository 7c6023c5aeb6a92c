import tensorpack as tp
from tensorpack.compat import tfv1 as tf


def optimizer():  # as in a ModelDesc
    return tp.apply_grad_processors(
        tf.train.AdamOptimizer(1e-3),
        [tp.GlobalNormClip(10), tp.ScaleGradient(("embedding.*", 0.1), verbose=False)],
    )


with tf.Graph().as_default():
    cost = tf.square(tf.get_variable("weight", initializer=1.0))
    optimizer().minimize(cost)
