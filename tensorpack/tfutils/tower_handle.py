"""Finds the tensors and variables of towers that have been built."""

from typing import Any, List, Optional, Sequence, Union

from tensorpack.compat import tfv1 as tf

from .common import get_op_tensor_name, get_tensor_of_graph
from .tower_context import BaseTowerContext

__all__ = ["TowerTensorHandle", "TowerTensorHandles"]


class TowerTensorHandle:
    """Finds tensors and variables of one finished tower.

    Args:
      context: the context under which the tower was built.
      inputs: the tensors that the tower function was called with.
      outputs: what it returned.
      input_signature: the specs of the inputs, so that they can be found by their names.
    """

    def __init__(
        self,
        context: BaseTowerContext,
        inputs: Sequence[tf.Tensor],
        outputs: Any,
        input_signature: Optional[Sequence[tf.TensorSpec]] = None,
    ) -> None:
        self._context = context
        self._inputs = list(inputs)
        self._outputs = outputs
        self._by_input_name = {}
        for spec, tensor in zip(input_signature or [], self._inputs):
            self._by_input_name[get_op_tensor_name(spec.name)[1]] = tensor

    @property
    def inputs(self) -> List[tf.Tensor]:
        """The tensors that the tower function was called with."""
        return self._inputs

    @property
    def outputs(self) -> Any:
        """What the tower function returned."""
        return self._outputs

    @property
    def is_training(self) -> bool:
        """Whether the tower was built for training."""
        return self._context.is_training

    @property
    def ns_name(self) -> str:
        """The tower's name scope."""
        return self._context.ns_name

    @property
    def vs_name(self) -> str:
        """The tower's variable scope."""
        return self._context.vs_name

    def get_tensor(self, name: str) -> tf.Tensor:
        """Returns a tensor of this tower: an input by its name in the signature, or any other by
        its own name.

        Raises:
          KeyError: the tower has no tensor of this name.
        """
        tensor_name = get_op_tensor_name(name)[1]
        if tensor_name in self._by_input_name:
            return self._by_input_name[tensor_name]
        full_name = f"{self.ns_name}/{tensor_name}" if self.ns_name else tensor_name
        try:
            return get_tensor_of_graph(self._context.graph, full_name)
        except (KeyError, ValueError) as error:
            known = ", ".join(self._by_input_name) or "none"
            raise KeyError(
                f"Tower {self.ns_name!r} has no tensor {full_name!r}. It must be made inside the "
                "tower function, "
                f"under this name. Inputs: {known}."
            ) from error

    def get_tensors(self, names: Sequence[str]) -> List[tf.Tensor]:
        """Returns `get_tensor` of each name."""
        return [self.get_tensor(name) for name in names]

    def get_variable(self, name: str) -> tf.Variable:
        """Returns the variable that this tower uses under `name`.

        Raises:
          KeyError: there is none.
        """
        full_name = f"{self.vs_name}/{name}" if self.vs_name else name
        for variable in self._context.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES):
            if variable.op.name == get_op_tensor_name(full_name)[0]:
                return variable
        raise KeyError(f"Tower {self.ns_name!r} has no variable {full_name!r}.")

    def get_variables(self, names: Sequence[str]) -> List[tf.Variable]:
        """Returns `get_variable` of each name."""
        return [self.get_variable(name) for name in names]

    def get_collection(self, key: str) -> List[Any]:
        """Returns the members of a graph collection that this tower created."""
        return self._context.get_collection_in_tower(key)

    def __getitem__(self, name: str) -> tf.Tensor:
        return self.get_tensor(name)


class TowerTensorHandles:
    """The handles of all towers that one tower function has built, in order; by index or by tower
    name.
    """

    def __init__(self, handles: Sequence[TowerTensorHandle]) -> None:
        self._handles = list(handles)

    def training(self) -> List[TowerTensorHandle]:
        """The training towers."""
        return [each for each in self._handles if each.is_training]

    def inference(self) -> List[TowerTensorHandle]:
        """The inference towers."""
        return [each for each in self._handles if not each.is_training]

    def __getitem__(self, key: Union[int, str]) -> TowerTensorHandle:
        if isinstance(key, int):
            return self._handles[key]
        for handle in self._handles:
            if handle.ns_name == key:
                return handle
        known = ", ".join(repr(each.ns_name) for each in self._handles)
        raise KeyError(f"There is no tower {key!r}; there are: {known}.")

    def __contains__(self, name: str) -> bool:
        return any(each.ns_name == name for each in self._handles)

    def __len__(self) -> int:
        return len(self._handles)
