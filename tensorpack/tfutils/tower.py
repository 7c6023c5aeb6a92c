"""A tower is one copy of the user's model, for training or for inference.

A tower function is called once for each tower, inside a `TowerContext`. Everything it needs to know
about which copy it is building it asks from `get_current_tower_context()`; what it built is found
again through handles that hold the objects, so nobody has to guess at names.
"""

from typing import Any, Callable, List, Sequence

from tensorpack.compat import tfv1 as tf

from .tower_context import BaseTowerContext, TowerContext, get_current_tower_context
from .tower_handle import TowerTensorHandle, TowerTensorHandles

__all__ = [
    "BaseTowerContext",
    "TowerContext",
    "TowerFunc",
    "TowerFuncWrapper",
    "TowerTensorHandle",
    "TowerTensorHandles",
    "get_current_tower_context",
]


class TowerFunc:
    """A function that builds a tower, together with the handles of all towers it has built.

    Args:
      tower_fn: called with one tensor for each input, inside a `TowerContext`.
      input_signature: the `tf.TensorSpec` of each input; every one needs a name.
    """

    def __init__(
        self, tower_fn: Callable[..., Any], input_signature: Sequence[tf.TensorSpec]
    ) -> None:
        self._tower_fn = tower_fn
        self._input_signature = list(input_signature)
        for spec in self._input_signature:
            if not spec.name:
                raise ValueError(
                    f"Every input of a tower function needs a name, this one has none: {spec}."
                )
        self._handles: List[TowerTensorHandle] = []

    @property
    def input_signature(self) -> List[tf.TensorSpec]:
        """The `tf.TensorSpec` of each input."""
        return self._input_signature

    @property
    def towers(self) -> TowerTensorHandles:
        """Handles of the towers built so far."""
        return TowerTensorHandles(self._handles)

    def __call__(self, *inputs: tf.Tensor) -> Any:
        context = get_current_tower_context()
        if context is None:
            raise RuntimeError("A tower function must be called inside of a TowerContext.")
        if len(inputs) != len(self._input_signature):
            names = ", ".join(spec.name for spec in self._input_signature)
            raise ValueError(
                f"The tower function was called with {len(inputs)} tensors, it takes "
                f"{len(self._input_signature)} ({names})."
            )
        outputs = self._tower_fn(*inputs)
        self._handles.append(TowerTensorHandle(context, inputs, outputs, self._input_signature))
        return outputs


TowerFuncWrapper = TowerFunc
