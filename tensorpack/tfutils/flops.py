"""Counts the floating-point operations of a model: its convolutions and matrix products."""

from typing import Any, Callable, Dict, Iterable, List, Sequence

from tabulate import tabulate

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.checks import as_count

from .dependency import ancestors
from .inference import build_tower


def count_flops(outputs: Iterable[tf.Tensor], fed: Iterable[tf.Tensor] = ()) -> Dict[str, int]:
    """Returns the operations of convolutions and matrix products in one run, two for each
    multiply-add, by name of the op, in the order of the graph.

    Other ops, which hardly count in a network, are left out. So is what TensorFlow keeps in
    functions of their own, such as the body of a loop, `Einsum`, fused recurrent cells, and
    products of sparse tensors, which depend on how many values these have; a warning names them.

    Args:
      outputs: the tensors to compute. Gradients are tensors too.
      fed: tensors that are given; what comes before them is not counted.
    """
    outputs = list(outputs)
    fed = list(fed)
    used = set(ancestors(outputs, fed=fed)) - {each.op for each in fed}
    ops = [op for op in outputs[0].graph.get_operations() if op in used and op.type in _COUNTS]
    unknown = sorted(op.name for op in used if op.type in _NOT_COUNTED)
    if unknown:
        logger.warning(f"The operations of {', '.join(unknown)} are not counted.")
    return {op.name: 2 * _multiplications(op) for op in ops}


def describe_flops(config: Any, batch_size: int = 1) -> int:
    """Logs a table of the operations of a model for one batch, and returns their sum.

    The model is built in a graph of its own; no weights are loaded.

    Args:
      config: a `PredictConfig`; names the inputs and outputs between which operations count.
      batch_size: for the first dimension of each input that has no size.
    """
    batch_size = as_count("describe_flops", "batch_size", batch_size, least=1)
    with tf.Graph().as_default():
        tensors = [
            tf.placeholder(spec.dtype, _sized(spec.shape, batch_size), spec.name)
            for spec in config.input_signature
        ]
        inputs, outputs = build_tower(config, lambda: tensors)
        counts = count_flops(outputs, fed=inputs)
    total = sum(counts.values())
    rows = [[name, f"{count:,}", f"{count / total:.1%}"] for name, count in counts.items()]
    table = tabulate(rows, ["op", "operations", "share"], colalign=("left", "right", "right"))
    logger.info(
        f"Operations for a batch of {batch_size}, two for each multiply-add: \n"
        f"{table}\nTotal {total:,} ({total / 1e9:.3g} GFLOP)"
    )
    return total


def _sized(shape: Any, batch_size: int) -> Any:
    shape = tf.TensorShape(shape)
    if not shape.ndims or shape.as_list()[0] is not None:
        return shape
    return tf.TensorShape([batch_size, *shape.as_list()[1:]])


def _multiplications(op: tf.Operation) -> int:
    count = 1
    for size in _COUNTS[op.type](op):
        if size is None:
            raise ValueError(
                f"The operations of {op.name} ({op.type}) depend on a size that is not known; "
                f"its inputs are {', '.join(str(each.shape) for each in op.inputs)}. Give the "
                "inputs of the model sizes."
            )
        count *= size
    return count


def _sizes(tensor: tf.Tensor) -> List[Any]:
    return [None] if tensor.shape.ndims is None else tensor.shape.as_list()


# Each returns sizes whose product is the number of multiplications.


def _convolution(
    result: int, kernel: int, summed: int = -1
) -> Callable[[tf.Operation], Sequence[Any]]:
    """Each element of the result is a sum over the first axes of the kernel, by default all but the
    last. `result` and `kernel` are the inputs that have these shapes, -1 for the output.
    """

    def sizes(op: tf.Operation) -> Sequence[Any]:
        return [*_sizes(_part(op, result)), *_sizes(_part(op, kernel))[:summed]]

    return sizes


def _part(op: tf.Operation, index: int) -> tf.Tensor:
    return op.outputs[0] if index < 0 else op.inputs[index]


def _product(transposed: str) -> Callable[[tf.Operation], Sequence[Any]]:
    """Each element of the result is a sum over an axis of the first factor."""

    def sizes(op: tf.Operation) -> Sequence[Any]:
        first = _sizes(op.inputs[0])
        summed = first[-2:-1] if op.get_attr(transposed) else first[-1:]
        return [*_sizes(op.outputs[0]), *(summed or [None])]

    return sizes


_COUNTS: Dict[str, Callable[[tf.Operation], Sequence[Any]]] = {
    "BatchMatMul": _product("adj_x"),
    "BatchMatMulV2": _product("adj_x"),
    "BatchMatMulV3": _product("adj_x"),
    "Conv2D": _convolution(-1, 1),
    "Conv2DBackpropFilter": _convolution(2, -1),
    "Conv2DBackpropInput": _convolution(2, 1),
    "Conv3D": _convolution(-1, 1),
    "Conv3DBackpropFilterV2": _convolution(2, -1),
    "Conv3DBackpropInputV2": _convolution(2, 1),
    "DepthwiseConv2dNative": _convolution(-1, 1, 2),
    "DepthwiseConv2dNativeBackpropFilter": _convolution(2, -1, 2),
    "DepthwiseConv2dNativeBackpropInput": _convolution(2, 1, 2),
    "MatMul": _product("transpose_a"),
    "SparseMatMul": _product("transpose_a"),
}
_NOT_COUNTED = frozenset(
    "BlockLSTM BlockLSTMV2 Case CudnnRNN CudnnRNNV2 CudnnRNNV3 Einsum GRUBlockCell If "
    "LSTMBlockCell PartitionedCall SparseMatrixMatMul SparseMatrixSparseMatMul "
    "SparseTensorDenseMatMul StatefulPartitionedCall StatelessIf StatelessWhile While".split()
)
