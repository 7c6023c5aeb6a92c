"""Variables are spread over devices by their sizes."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import LeastLoadedDeviceSetter
from tensorpack.tfutils.devices import tower_device


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_go_to_the_least_loaded_device(use_resource):
    setter = LeastLoadedDeviceSetter("/device:GPU:0", ["/device:CPU:1", "/device:CPU:2"])
    with tf.device(setter), tf.variable_scope("", use_resource=use_resource):
        sizes = [("a", 4), ("b", 3), ("c", 2), ("d", 1), ("e", 1)]
        variables = [tf.get_variable(name, [size]) for name, size in sizes]
        worker = tf.constant(1)
    assert [each.op.device[-1] for each in variables] == ["1", "2", "2", "1", "1"]
    assert worker.op.device == "/device:GPU:0"


def test_what_an_op_asks_for_counts():
    setter = LeastLoadedDeviceSetter("/job:worker/task:1/device:GPU:0", ["/job:ps/task:0"])
    with tf.device(setter), tf.device("/device:CPU:3"):
        variable = tf.get_variable("v", [2])
        queue = tf.FIFOQueue(2, [tf.int32])
    assert variable.op.device == "/job:ps/task:0/device:CPU:3"
    assert queue.queue_ref.op.device == "/job:worker/task:1/device:CPU:3"


def test_a_variable_of_unknown_size_counts_nothing():
    setter = LeastLoadedDeviceSetter(tower_device(-1), ["/device:CPU:1", "/device:CPU:2"])
    unknown = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=tf.TensorShape(None)).op
    assert setter.place_with_balance(unknown) == setter.place_with_balance(unknown)
