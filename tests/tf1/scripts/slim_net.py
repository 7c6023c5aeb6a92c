"""A net with slim: scopes of arguments, losses, the training op, weights from a checkpoint."""

import os
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib.framework.python.ops import add_arg_scope
from tensorflow.contrib.layers.python.layers import utils
from tensorflow.contrib.slim.nets import alexnet
from tensorflow.python import pywrap_tensorflow

tf.set_random_seed(1)


@add_arg_scope
def halved(x, factor=0.5):
    return x * factor


def net(images):
    regularizer = slim.l2_regularizer(1e-4)
    with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=regularizer):
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm):
            x = slim.repeat(images, 2, slim.conv2d, 4, [3, 3], scope="conv")
        x = slim.flatten(slim.max_pool2d(x, [2, 2]))
        with slim.arg_scope([halved], factor=0.25):
            x = halved(x)
        return slim.fully_connected(x, 2, activation_fn=None, scope="fc")


assert tf.contrib.slim.conv2d is slim.conv2d and tf.contrib.layers.conv2d is slim.conv2d
assert callable(alexnet.alexnet_v2) and callable(utils.smart_cond)

images = tf.placeholder(tf.float32, [16, 8, 8, 1])
labels = tf.placeholder(tf.int64, [16])
logits = net(images)
tf.losses.softmax_cross_entropy(slim.one_hot_encoding(labels, 2), logits)
assert len(slim.losses.get_regularization_losses()) == 3
loss = tf.losses.get_total_loss()
train = slim.learning.create_train_op(loss, tf.train.AdamOptimizer(0.01))
assert [each.op.name for each in slim.get_model_variables("conv/conv_1")] == [
    "conv/conv_1/weights",
    "conv/conv_1/BatchNorm/beta",
    "conv/conv_1/BatchNorm/moving_mean",
    "conv/conv_1/BatchNorm/moving_variance",
]

rng = np.random.RandomState(0)
numbers = rng.randint(2, size=16)
fed = {images: rng.uniform(size=(16, 8, 8, 1)) + numbers[:, None, None, None], labels: numbers}
folder = tempfile.mkdtemp()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    losses = [sess.run(train, fed) for _ in range(60)]
    assert losses[-1] < 0.5 * losses[0], losses
    kernel = sess.run("fc/weights:0")
    path = tf.train.Saver().save(sess, os.path.join(folder, "model"))

assert np.array_equal(pywrap_tensorflow.NewCheckpointReader(path).get_tensor("fc/weights"), kernel)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    restored = slim.get_variables_to_restore(exclude=["conv"])
    slim.assign_from_checkpoint_fn(path, restored, ignore_missing_vars=True)(sess)
    assert np.array_equal(sess.run("fc/weights:0"), kernel)
tf.gfile.DeleteRecursively(folder)
