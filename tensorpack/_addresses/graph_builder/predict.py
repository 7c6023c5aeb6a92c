"""`tensorpack.graph_builder.predict` of older versions; see `tensorpack.predict`."""

from typing import Any, Callable

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import InputSource
from tensorpack.tfutils.devices import tower_device
from tensorpack.tfutils.tower import TowerContext

__all__ = ["SimplePredictBuilder"]


class SimplePredictBuilder:
    """Builds one tower that predicts, in a name scope, a variable scope and on a device."""

    def __init__(self, ns_name: str = "", vs_name: str = "", device: Any = 0) -> None:
        self._ns_name, self._vs_name, self._device = ns_name, vs_name, device

    def build(self, input: InputSource, tower_fn: Callable[..., Any]) -> Any:
        """Returns what `tower_fn` returns for the tensors of an input, which is set up."""
        with tf.name_scope(None), tf.device(tower_device(self._device)):
            with TowerContext(self._ns_name, is_training=False, vs_name=self._vs_name):
                return tower_fn(*input.get_input_tensors())
