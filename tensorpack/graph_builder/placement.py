"""Spreads variables over several devices."""

from typing import Callable, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_names

_VARIABLE_OPS = frozenset("AutoReloadVariable VarHandleOp Variable VariableV2".split())


class LeastLoadedDeviceSetter:
    """A function for `tf.device`: variables go to the device that has the fewest elements so far.

    Where an op asks for a part of a device itself, as by an inner `tf.device`, it gets that.

    Args:
      worker_device: of all other ops, what `tf.device` takes.
      ps_devices: names of the devices of the variables.
    """

    def __init__(
        self,
        worker_device: Union[str, Callable[[tf.Operation], str]],
        ps_devices: Sequence[str],
    ) -> None:
        self.worker_device = worker_device
        self.ps_devices = as_names(self, "ps_devices", ps_devices)
        self._sizes = [0] * len(self.ps_devices)

    def place_with_balance(self, op: tf.Operation) -> str:
        """Returns the device of a new variable, and counts its elements there, if known."""
        index = self._sizes.index(min(self._sizes))
        shape = tf.TensorShape(op.get_attr("shape"))
        self._sizes[index] += shape.num_elements() or 0
        return self.ps_devices[index]

    def __call__(self, op: tf.Operation) -> str:
        """Returns the device of an op."""
        if op.type in _VARIABLE_OPS:
            device = self.place_with_balance(op)
        elif callable(self.worker_device):
            device = self.worker_device(op)
        else:
            device = self.worker_device
        if op.device:
            spec = tf.DeviceSpec.from_string(device)
            spec.merge_from(tf.DeviceSpec.from_string(op.device))
            device = spec.to_string()
        return device
