"""Inputs that are ops already: the user's own, or constants to try a model with."""

from typing import Callable, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import Callback
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.utils import logger
from tensorpack.utils.checks import as_count_or_none, as_list

from .base import FeedfreeInput, PositionNotKept

_READS = {"IteratorGetNext", "IteratorGetNextSync", "PyFunc", "PyFuncStateless", "EagerPyFunc"}


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
        self.get_tensor_fn = get_tensor_fn
        self._pass_size = as_count_or_none(self, "size", size)
        what = "TensorInput cannot continue where it was: it reads tf.data, or calls Python."
        self._position = PositionNotKept(what, "Use a QueueInput of a DataFlow.", False)

    def _get_callbacks(self) -> List[Callback]:
        return [self._position]

    def _get_input_tensors(self) -> Sequence[tf.Tensor]:
        values = as_list(self, "get_tensor_fn()", self.get_tensor_fn())
        tensors = [x if hasattr(x, "op") else tf.convert_to_tensor(x) for x in values]
        self._position.has_one |= any(op.type in _READS for op in ancestors(tensors))
        return tensors

    def _size(self) -> int:
        return super()._size() if self._pass_size is None else self._pass_size


class DummyConstantInput(TensorInput):
    """Zeros that never change: how fast would the training be if data cost nothing?

    `shapes` has a fully defined shape for each input of the model.
    """

    def __init__(self, shapes: Sequence[Sequence[int]]) -> None:
        super().__init__(self._zeros)
        self.shapes = [list(shape) for shape in shapes]
        logger.warn("Using dummy input for debug!")

    def _setup(self, input_signature: List[tf.TensorSpec]) -> None:
        self._specs = list(input_signature)

    def _zeros(self) -> List[tf.Tensor]:
        tower = get_current_tower_context()
        suffix = f"-{tower.name}" if tower is not None and tower.name else ""
        return [
            tf.zeros(shape, spec.dtype, name=f"dummy-{spec.name}{suffix}")
            for spec, shape in zip(self._specs, self.shapes)
        ]
