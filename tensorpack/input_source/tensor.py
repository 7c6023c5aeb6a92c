"""Inputs that are ops already: the user's own, or constants to try a model with."""

from typing import Callable, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.utils import logger

from .base import FeedfreeInput


class TensorInput(FeedfreeInput):
    """Tensors that a function of the user's makes, such as those of a queue that the user fills.

    Args:
      get_tensor_fn: takes nothing and returns a list with a tensor for each input of the model;
        called once for each tower, in its scopes.
      size: how many steps make one pass over the data; None if that has no meaning.
    """

    def __init__(
        self, get_tensor_fn: Callable[[], Sequence[tf.Tensor]], size: Optional[int] = None
    ) -> None:
        super().__init__()
        if not callable(get_tensor_fn):
            raise TypeError(
                f"get_tensor_fn is a function that returns tensors, got "
                f"{type(get_tensor_fn).__name__}."
            )
        if size is not None and size <= 0:
            raise ValueError(f"size is a number of steps, at least 1, or None, got {size}.")
        self.get_tensor_fn = get_tensor_fn
        self._given_size = None if size is None else int(size)

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        return self.get_tensor_fn()

    def _size(self) -> int:
        return super()._size() if self._given_size is None else self._given_size


class DummyConstantInput(TensorInput):
    """Zeros that never change: how fast would the training be if data cost nothing?

    `shapes` has a fully defined shape for each input of the model.
    """

    def __init__(self, shapes: Sequence[Sequence[int]]) -> None:
        super().__init__(self._zeros)
        self.shapes = [list(shape) for shape in shapes]
        logger.warning("Using dummy input for debug!")

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        if len(self.shapes) != len(input_signature):
            raise ValueError(
                f"DummyConstantInput has {len(self.shapes)} shapes for {len(input_signature)} "
                f"inputs ({', '.join(spec.name for spec in input_signature)}): give one for each."
            )
        self._specs = list(input_signature)

    def _zeros(self) -> List[tf.Tensor]:
        tower = get_current_tower_context()
        suffix = f"-{tower.name}" if tower is not None and tower.name else ""
        return [
            tf.zeros(shape, spec.dtype, name=f"dummy-{spec.name}{suffix}")
            for spec, shape in zip(self._specs, self.shapes)
        ]
