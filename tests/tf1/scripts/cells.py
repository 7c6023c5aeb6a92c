"""Recurrent cells of tf.nn.rnn_cell and tf.contrib.rnn, unrolled both ways."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn
from tensorflow.contrib.rnn import LSTMStateTuple

tf.set_random_seed(1)
batch, length, size = 4, 3, 5
cell = rnn.MultiRNNCell([rnn.BasicLSTMCell(size), rnn.DropoutWrapper(rnn.GRUCell(size), 1.0)])
assert cell.state_size == (LSTMStateTuple(size, size), size)

x = tf.placeholder(tf.float32, [batch, length, 2])
state = cell.zero_state(batch, tf.float32)
dynamic, last = tf.nn.dynamic_rnn(cell, x, initial_state=state, scope="rnn")
with tf.variable_scope("", reuse=True):
    static, _ = rnn.static_rnn(cell, tf.unstack(x, axis=1), state, scope="rnn")
lstm = tf.nn.rnn_cell.LSTMCell(size, use_peepholes=True)
both, _ = tf.nn.bidirectional_dynamic_rnn(lstm, lstm, x, dtype=tf.float32)

fast = rnn.MultiRNNCell(
    [rnn.LSTMBlockCell(size, use_peephole=True), rnn.GRUBlockCell(size), rnn.GRUBlockCellV2(size)]
)
faster, _ = tf.nn.dynamic_rnn(fast, x, dtype=tf.float32, scope="fast")
gradients = tf.gradients(tf.reduce_sum(faster), tf.trainable_variables("fast"))

names = [each.op.name[len("fast/multi_rnn_cell/") :] for each in tf.trainable_variables("fast")]
assert set(names) == {
    *(f"cell_0/lstm_cell/{each}" for each in ["kernel", "bias"]),
    *(f"cell_0/lstm_cell/w_{each}_diag" for each in "ifo"),
    *(f"cell_1/gru_cell/{each}" for each in ["w_ru", "b_ru", "w_c", "b_c"]),
    *(f"cell_2/gru_cell/gates/{each}" for each in ["kernel", "bias"]),
    *(f"cell_2/gru_cell/candidate/{each}" for each in ["kernel", "bias"]),
}, names
names = [each.op.name for each in tf.trainable_variables("rnn")]
assert names == [
    "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel",
    "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/bias",
    "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel",
    "rnn/multi_rnn_cell/cell_1/gru_cell/gates/bias",
    "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/kernel",
    "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/bias",
], names
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    fed = {x: np.random.RandomState(0).normal(size=(batch, length, 2))}
    a, b, c, end = sess.run([dynamic, tf.stack(static, 1), both, last], fed)
    assert all(each.any() for each in sess.run(gradients, fed))
    np.testing.assert_allclose(a, b, atol=1e-6)
    np.testing.assert_allclose(a[:, -1], end[1], atol=1e-6)
    assert c[0].shape == c[1].shape == (batch, length, size)
