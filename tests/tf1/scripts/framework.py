"""Parts of tf.contrib beside layers: framework, data, training, distributions, signal."""

import tensorflow as tf
import tensorflow.contrib.layers as layers
from tensorflow.contrib.distributions import Normal
from tensorflow.contrib.framework import arg_scope, nest
from tensorflow.python.framework import ops
from tensorflow.python.ops import array_ops, control_flow_ops

framework = tf.contrib.framework
with tf.variable_scope("a"):
    v = framework.model_variable("v", [2], initializer=tf.ones_initializer())
    with arg_scope([layers.fully_connected], weights_initializer=layers.xavier_initializer()):
        out = layers.fully_connected(array_ops.zeros([1, 3]), 2)
step = framework.get_or_create_global_step()
assert framework.get_variables("a/v") == [v] and framework.get_global_step() is step
assert [each.op.name for each in framework.get_variables_by_suffix("weights")] == [
    "a/fully_connected/weights"
]
assert nest.flatten({"x": [1, (2, 3)]}) == [1, 2, 3] and framework.nest.flatten([4]) == [4]
assert ops.get_default_graph() is tf.get_default_graph() is v.graph

doubled = tf.data.Dataset.range(6).apply(tf.contrib.data.map_and_batch(lambda x: x * 2, 3))
batch = doubled.make_one_shot_iterator().get_next()
train = tf.contrib.training.create_train_op(
    tf.reduce_sum(out) + tf.reduce_sum(v), tf.train.GradientDescentOptimizer(0.5), step
)
optimize = layers.optimize_loss(tf.reduce_sum(v), step, 0.5, "SGD")
recall, update = tf.contrib.metrics.streaming_recall_at_thresholds(
    tf.constant([0.2, 0.8]), tf.constant([True, True]), [0.5]
)
chosen = control_flow_ops.cond(tf.constant(True), lambda: 1, lambda: 2)
assert isinstance(chosen, ops.Tensor) and framework.local_variable(0, name="l") is not None
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    assert sess.run(batch).tolist() == [0, 2, 4]
    assert abs(sess.run(Normal(0.0, 1.0).prob(0.0)) - 0.39894) < 1e-4
    assert sess.run(tf.contrib.signal.frame([1, 2, 3], 2, 1)).tolist() == [[1, 2], [2, 3]]
    sess.run(train)
    assert sess.run([v, step])[0].tolist() == [0.5, 0.5] and sess.run(step) == 1
    sess.run([optimize, update])
    assert sess.run(v).tolist() == [0, 0] and abs(sess.run(recall)[0] - 0.5) < 1e-6
