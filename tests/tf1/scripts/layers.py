"""A small convolutional net with tf.layers."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(1)


def net(images, training, reuse=None):
    with tf.variable_scope("net", reuse=reuse):
        x = tf.layers.conv2d(images, 4, 3, padding="same", activation=tf.nn.relu, name="conv")
        x = tf.layers.batch_normalization(x, training=training, name="bn")
        x = tf.layers.max_pooling2d(x, 2, 2)
        x = tf.layers.dropout(tf.layers.flatten(x), 0.1, training=training)
        initializer = tf.variance_scaling_initializer()
        return tf.layers.dense(x, 2, kernel_initializer=initializer, name="fc")


images = tf.placeholder(tf.float32, [None, 8, 8, 1])
labels = tf.placeholder(tf.int64, [None])
logits = net(images, training=True)
tested = net(images, training=False, reuse=True)
loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
correct = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(tested, 1), labels), tf.float32))
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = tf.train.AdamOptimizer(0.01).minimize(loss)

assert sorted(each.op.name for each in tf.trainable_variables()) == [
    "net/bn/beta",
    "net/bn/gamma",
    "net/conv/bias",
    "net/conv/kernel",
    "net/fc/bias",
    "net/fc/kernel",
]
assert len(tf.global_variables("net/bn/moving")) == 2
assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2

rng = np.random.RandomState(0)
numbers = rng.randint(2, size=64)
pictures = rng.uniform(size=(64, 8, 8, 1)) + numbers[:, None, None, None]
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(150):
        sess.run(train, {images: pictures, labels: numbers})
    assert sess.run(correct, {images: pictures, labels: numbers}) > 0.9
