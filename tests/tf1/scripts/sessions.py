"""A line by gradient descent: placeholders, a session, a saver, summaries, collections."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf.set_random_seed(1)
tf.logging.set_verbosity(tf.logging.ERROR)

x = tf.placeholder(tf.float32, [None], name="x")
y = tf.placeholder(tf.float32, [None], name="y")
w = tf.Variable(0.0, name="w")
b = tf.get_variable("b", [], initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.squared_difference(w * x + b, y))
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, global_step=step)
tf.summary.scalar("loss", loss)
merged = tf.summary.merge_all()
saver = tf.train.Saver(max_to_keep=1)

assert isinstance(x.shape[0], tf.Dimension) and x.shape[0].value is None
assert [each.op.name for each in tf.trainable_variables()] == ["w", "b"]
assert type(w).__name__ == "RefVariable"  # not a resource
assert not tf.executing_eagerly()

folder = tempfile.mkdtemp()
config = tf.ConfigProto(allow_soft_placement=True)
with tf.Session(config=config) as sess:
    sess.run(tf.initialize_all_variables())
    writer = tf.summary.FileWriter(folder, sess.graph)
    data = np.linspace(-1, 1, 32).astype(np.float)
    for _ in range(100):
        summary, now, _ = sess.run([merged, step, train], {x: data, y: 3 * data + 2})
        writer.add_summary(summary, now)
    writer.close()
    path = saver.save(sess, os.path.join(folder, "model"), global_step=step)
    assert path.endswith("model-100"), path
    assert abs(w.eval() - 3) < 1e-3 and abs(sess.run(b) - 2) < 1e-3

with tf.Session() as sess:
    saver.restore(sess, tf.train.latest_checkpoint(folder))
    assert abs(sess.run(w) - 3) < 1e-3
assert len(tf.gfile.Glob(os.path.join(folder, "events*"))) == 1
assert dict(tf.train.list_variables(folder)) == {"w": [], "b": [], "global_step": []}
tf.gfile.DeleteRecursively(folder)
