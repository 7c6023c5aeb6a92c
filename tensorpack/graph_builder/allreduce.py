"""Adds up and averages the gradients of several towers."""

from typing import Any, Dict, List, Sequence, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.variables import replicas

ALLREDUCE_MODES = ("nccl", "cpu", "hierarchical", "gpu")
_CPU = "/device:CPU:0"


def allreduce_grads(
    all_grads: Sequence[Sequence[Any]], average: bool, mode: str = "nccl"
) -> List[List[Any]]:
    """Returns for each tower, for each of its gradients, the sum or mean over all towers.

    Args:
      all_grads: for each tower its gradients, in the same order; each a tensor, or
        `tf.IndexedSlices`, whose sum has the slices of all towers.
      average: whether the sums are divided by the number of towers.
      mode: how tensors are added up.
        "gpu": each sum on the device of one tower, so that all have about the same to do.
        "nccl": the same; NCCL itself has given wrong sums since TensorFlow 1.15, see
        https://github.com/tensorflow/tensorflow/issues/41539.
        "hierarchical": the same in each half of the towers first, so that little crosses from
        one half to the other; with less than 4 towers it is "gpu".
        "cpu": all on the CPU.

    Raises:
      ValueError: the lists differ in length, or a gradient is None.
    """
    if mode not in ALLREDUCE_MODES:
        raise ValueError(f"mode must be one of {', '.join(ALLREDUCE_MODES)}, got {mode!r}.")
    lengths = [len(grads) for grads in all_grads]
    if len(set(lengths)) > 1:
        raise ValueError(f"Each tower must have the same gradients, but they have {lengths}.")
    count = len(all_grads)
    if count < 2:
        return [list(grads) for grads in all_grads]
    if count < 4 and mode == "hierarchical":
        mode = "gpu"
    adder = _Adder(1.0 / count if average else 1.0)
    with tf.name_scope("AllReduceGrads"):
        sums = [adder.add(mode, list(grads)) for grads in zip(*all_grads)]
    return [list(grads) for grads in zip(*sums)] if sums else [[] for _ in all_grads]


def average_grads(
    towers: Sequence[Sequence[Tuple[Any, Any]]], average: bool = True
) -> List[Tuple[Any, Any]]:
    """Returns the mean, or sum, of the gradients of each variable that the towers share, on its
    device.

    Args:
      towers: for each tower its (gradient, variable); the variables are the same.
    """
    adder = _Adder(1.0 / len(towers) if average else 1.0)
    averages = []
    with tf.name_scope("AverageGrads"):
        for pairs in zip(*replicas().align(towers)):
            var, grads = pairs[0][1], [grad for grad, _ in pairs]
            averages.append((adder.total(grads, var.device) if len(grads) > 1 else grads[0], var))
    return averages


class _Adder:
    """Adds up the gradients of one variable after the other; balances the devices' work."""

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._work: Dict[str, int] = {}  # elements that were added up on each device

    def add(self, mode: str, grads: List[Any]) -> List[Any]:
        """Returns the scaled sum for each tower."""
        if any(isinstance(grad, tf.IndexedSlices) for grad in grads):
            return [self.total(grads, _CPU)] * len(grads)
        if mode == "hierarchical":
            return self._add_by_halves(grads)
        return [self.total(grads, _CPU if mode == "cpu" else self._device(grads))] * len(grads)

    def total(self, grads: List[Any], device: str) -> Any:
        """Returns the scaled sum, on a device; of slices alone it has all slices."""
        with tf.device(device):
            if not all(isinstance(grad, tf.IndexedSlices) for grad in grads):
                return self._scaled(tf.add_n([tf.convert_to_tensor(grad) for grad in grads]))
            values = self._scaled(tf.concat([grad.values for grad in grads], 0))
            indices = tf.concat([grad.indices for grad in grads], 0)
            return tf.IndexedSlices(values, indices, grads[0].dense_shape)

    def _add_by_halves(self, grads: List[tf.Tensor]) -> List[tf.Tensor]:
        middle = len(grads) // 2
        halves = [grads[:middle], grads[middle:]]
        devices = [self._device(half) for half in halves]
        parts = []
        for half, device in zip(halves, devices):
            with tf.device(device):
                parts.append(tf.add_n(half))
        total = self.total(parts, devices[0])
        with tf.device(devices[1]):
            copy = tf.identity(total)
        return [total] * middle + [copy] * (len(grads) - middle)

    def _scaled(self, total: tf.Tensor) -> tf.Tensor:
        return total if self._factor == 1.0 else total * tf.cast(self._factor, total.dtype)

    def _device(self, grads: List[tf.Tensor]) -> str:
        """Returns the device, of those of these gradients, that has the least to do so far."""
        device = min((grad.device for grad in grads), key=lambda name: self._work.get(name, 0))
        size = grads[0].shape.num_elements() or 1
        self._work[device] = self._work.get(device, 0) + size
        return device
