"""Tests of the count of operations."""

import pytest

from tensorpack import PredictConfig
from tensorpack.compat import tfv1 as tf
from tensorpack.models import Conv2D, FullyConnected
from tensorpack.tfutils import count_flops, describe_flops

KERNEL = 3 * 3 * 4  # multiplications for an element of a 3 x 3 convolution of 4 channels
IMAGE = 2 * 8 * 8  # pixels in two images


def image(channels=4):
    return tf.ones([2, 8, 8, channels])


def convolution(x, **options):
    return tf.nn.conv2d(x, tf.ones([3, 3, 4, 5]), strides=[1, 1, 1, 1], padding="SAME", **options)


@pytest.mark.parametrize(
    "make, multiplications",
    [
        (lambda: convolution(image()), IMAGE * 5 * KERNEL),
        (
            lambda: tf.nn.conv2d_transpose(
                image(5), tf.ones([3, 3, 4, 5]), [2, 16, 16, 4], [1, 2, 2, 1]
            ),
            IMAGE * 5 * KERNEL,
        ),
        (
            lambda: tf.nn.depthwise_conv2d(image(), tf.ones([3, 3, 4, 2]), [1] * 4, "SAME"),
            IMAGE * 8 * 9,
        ),
        (
            lambda: tf.nn.conv3d(
                tf.ones([2, 4, 8, 8, 3]), tf.ones([2, 2, 2, 3, 5]), [1] * 5, "SAME"
            ),
            2 * 4 * 8 * 8 * 5 * 2 * 2 * 2 * 3,
        ),
        (lambda: tf.matmul(tf.ones([6, 7]), tf.ones([7, 8])), 6 * 7 * 8),
        (lambda: tf.matmul(tf.ones([7, 6]), tf.ones([7, 8]), transpose_a=True), 6 * 7 * 8),
        (lambda: tf.matmul(tf.ones([3, 6, 7]), tf.ones([3, 8, 7]), adjoint_b=True), 3 * 6 * 7 * 8),
        (lambda: tf.matmul(tf.ones([3, 7, 6]), tf.ones([3, 7, 8]), adjoint_a=True), 3 * 6 * 7 * 8),
        (lambda: tf.sparse_matmul(tf.ones([6, 7]), tf.ones([8, 7]), transpose_b=True), 6 * 7 * 8),
        (lambda: tf.nn.relu(image()), 0),
    ],
)
def test_two_for_each_multiplication(make, multiplications):
    assert sum(count_flops([make()]).values()) == 2 * multiplications


def test_it_counts_as_tensorflow_does():
    x = tf.matmul(tf.reshape(convolution(image()), [2, 320]), tf.ones([320, 10]))
    options = tf.profiler.ProfileOptionBuilder(tf.profiler.ProfileOptionBuilder.float_operation())
    counted = tf.profiler.profile(x.graph, options=options.with_empty_output().build())
    assert sum(count_flops([x]).values()) == counted.total_float_ops


def test_gradients_cost_as_much_again_for_each_of_their_two_products():
    x = tf.placeholder(tf.float32, [2, 8, 8, 4])
    kernel = tf.get_variable("kernel", [3, 3, 4, 5])
    depthwise = tf.get_variable("depthwise", [3, 3, 5, 1])
    y = tf.nn.conv2d(x, kernel, strides=[1, 1, 1, 1], padding="SAME")
    y = tf.nn.depthwise_conv2d(y, depthwise, [1] * 4, "SAME")
    forward = sum(count_flops([y]).values())
    all_of_it = count_flops([y, *tf.gradients(tf.reduce_sum(y), [x, kernel, depthwise])])
    assert sum(all_of_it.values()) == 3 * forward
    assert len(all_of_it) == 6


def test_only_what_is_between_the_inputs_and_the_outputs_counts():
    first = tf.matmul(tf.ones([2, 3]), tf.ones([3, 4]), name="first")
    second = tf.matmul(first, tf.ones([4, 5]), name="second")
    tf.matmul(second, tf.ones([5, 6]), name="third")
    assert count_flops([second]) == {"first": 48, "second": 80}
    assert count_flops([second], fed=[first]) == {"second": 80}


def test_an_unknown_size_is_named():
    x = tf.placeholder(tf.float32, [None, 4])
    with pytest.raises(ValueError, match=r"product \(MatMul\).*\(None, 4\)|product \(MatMul\).*\?"):
        count_flops([tf.matmul(x, tf.ones([4, 5]), name="product")])
    x = tf.placeholder(tf.float32)
    with pytest.raises(ValueError, match="not known"):
        count_flops([tf.matmul(x, tf.ones([4, 5]))])


def test_products_of_sparse_tensors_are_said_to_be_missing(log_lines):
    """How many multiplications they need depends on the data."""
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 3])
    y = tf.sparse_tensor_dense_matmul(sparse, tf.matmul(tf.ones([3, 4]), tf.ones([4, 5])))
    assert list(count_flops([y]).values()) == [2 * 3 * 4 * 5]
    assert log_lines == [("warn", f"The operations of {y.op.name} are not counted.")]


def test_what_is_not_counted_is_said(log_lines):
    y = tf.einsum("ij,jk->ik", tf.ones([2, 3]), tf.ones([3, 4]), name="sum")
    einsum = [op.name for op in y.graph.get_operations() if op.type == "Einsum"]
    count_flops([y])
    assert log_lines == [("warn", f"The operations of {n} are not counted.") for n in einsum]


def network(x):
    x = Conv2D("conv", x, 5, 3)
    FullyConnected("fc", tf.reshape(x, [-1, 8 * 8 * 5]), 10)


TABLE = """Operations for a batch of 2, two for each multiply-add: \n\
op             operations    share
-----------  ------------  -------
conv/Conv2D        46,080    78.3%
fc/MatMul          12,800    21.7%
Total 58,880 (5.89e-05 GFLOP)"""


def test_the_table_of_a_model(log_lines):
    signature = [tf.TensorSpec([None, 8, 8, 4], tf.float32, "x")]
    config = PredictConfig(
        tower_func=network, input_signature=signature, output_names=["fc/output"]
    )
    assert describe_flops(config, batch_size=2) == 2 * (IMAGE * 5 * KERNEL + 2 * 320 * 10)
    assert log_lines[-1] == ("info", TABLE)
    assert tf.get_default_graph().get_operations() == []
    with pytest.raises(ValueError, match="batch_size"):
        describe_flops(config, batch_size=0)
