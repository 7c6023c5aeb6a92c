"""The user's model: its inputs, the graph it builds, and its optimizer."""

from collections import namedtuple
from typing import Any, List, Optional, Sequence, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import InputSource
from tensorpack.input_source.base import build_or_reuse_placeholder
from tensorpack.models.regularize import regularize_cost_from_collection
from tensorpack.tfutils.common import PerGraph, as_signature
from tensorpack.tfutils.gradproc import FilterNoneGrad
from tensorpack.tfutils.tower import get_current_tower_context
from tensorpack.utils.checks import check_kind


class InputDesc(namedtuple("InputDesc", ["type", "shape", "name"])):
    """Describes one input of a model, in the spelling of 2017 (`tf.TensorSpec` is the later one).

    Attributes:
      type: the `tf.DType`.
      shape: a tuple; None where a dimension varies, or in its place where all may.
      name: the input's name.
    """

    def __new__(cls, type: Any, shape: Optional[Sequence[Any]], name: str) -> "InputDesc":
        dims = None if shape is None else tuple(shape)
        return super().__new__(cls, tf.as_dtype(type), dims, name)

    def build_placeholder(self, prefix: str = "") -> tf.Tensor:
        """Creates a placeholder, outside any name scope."""
        with tf.name_scope(None):
            return tf.placeholder(self.type, shape=self.shape, name=prefix + self.name)

    def build_placeholder_reuse(self) -> tf.Tensor:
        """Returns the default graph's placeholder of this name; creates it on the first call."""
        return build_or_reuse_placeholder(tf.TensorSpec(self.shape, self.type, self.name))


InputVar = InputDesc  # its name before 0.2


class ModelDescBase:
    """Inputs and graph of a model; `ModelDesc` adds a single cost and an optimizer.

    Override `inputs` and `build_graph`; or, as in 2017, `_get_inputs` and `_build_graph`, which the
    defaults of the former call.
    """

    def inputs(self) -> List[Any]:
        """Override to return one named `tf.TensorSpec` or placeholder per input."""
        return self._get_inputs()

    def _get_inputs(self) -> List[Any]:
        """The 2017 spelling of `inputs`: a list of `InputDesc`."""
        raise NotImplementedError(
            f"{type(self).__name__} must override inputs() and return a tf.TensorSpec(shape, "
            "dtype, name) per input."
        )

    def build_graph(self, *inputs: tf.Tensor) -> Any:
        """Override to build the graph from one tensor per input.

        Called once per tower, inside a `TowerContext`. A `ModelDesc` returns the scalar cost if
        `self.training`; other return values are ignored.

        In the spelling of 2017 a trainer of the user calls it with one list of tensors, or with an
        `InputSource`; it returns None then.
        """
        tensors: Any = inputs[0] if _is_of_2017(inputs) else inputs
        if isinstance(tensors, InputSource):
            tensors = tensors.get_input_tensors()
        return self._build_graph(list(tensors))

    def _build_graph(self, inputs: List[tf.Tensor]) -> None:
        """The 2017 spelling of `build_graph`: one list of tensors; sets `self.cost`."""
        raise NotImplementedError(f"{type(self).__name__} must override build_graph(*inputs).")

    def get_input_signature(self) -> List[tf.TensorSpec]:
        """Returns the `tf.TensorSpec` of each input, see `as_signature`; calls `inputs` once."""
        if "_input_signature" not in self.__dict__:
            with tf.Graph().as_default():  # for placeholders created in inputs()
                self._input_signature = as_signature(self.inputs())
        return self._input_signature

    def get_inputs_desc(self) -> List[InputDesc]:
        """Returns the inputs in the spelling of 2017."""
        specs = self.get_input_signature()
        shapes = [spec.shape.as_list() if spec.shape.ndims is not None else None for spec in specs]
        return [InputDesc(spec.dtype, shape, spec.name) for spec, shape in zip(specs, shapes)]

    @property
    def input_names(self) -> List[str]:
        """The inputs' names, in order."""
        return [spec.name for spec in self.get_input_signature()]

    @property
    def in_spelling_of_2017(self) -> bool:
        """Whether the model overrides `_build_graph` instead of `build_graph`."""
        return type(self)._build_graph is not ModelDescBase._build_graph

    @property
    def training(self) -> bool:
        """Whether the tower under construction is for training; for use in `build_graph`.

        A model that sets it, as scripts for 0.9 do, reads what it has set.
        """
        return vars(self)["training"] if "training" in vars(self) else _in_training_tower()

    @training.setter
    def training(self, value: Any) -> None:
        vars(self)["training"] = value


class ModelDesc(ModelDescBase):
    """A model with one scalar cost and one optimizer.

    Override `inputs`, `build_graph`, which returns the cost, and `optimizer`. In the spelling of
    2017 `_build_graph` sets `self.cost`, and the collection `REGULARIZATION_LOSSES` is added to it;
    in the later spelling the returned cost is used as it is.
    """

    cost: Optional[tf.Tensor] = None

    def build_graph(self, *inputs: tf.Tensor) -> Any:
        """Override to build the graph and return its scalar cost; see the base class."""
        self.cost = None  # that of another tower
        super().build_graph(*inputs)
        if _is_of_2017(inputs) or not _in_training_tower():
            return None
        has_cost = self.cost is not None or type(self)._get_cost is not ModelDesc._get_cost
        return self.get_cost() if has_cost else None

    def get_cost(self) -> tf.Tensor:
        """Returns the cost of `_build_graph` plus the regularization losses of the graph."""
        cost = self._get_cost()
        if not tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES):
            return cost
        losses = tf.cast(regularize_cost_from_collection(), cost.dtype)
        return tf.add(cost, losses, name="cost_with_regularizer")

    def _get_cost(self) -> tf.Tensor:
        return self.cost

    def get_cost_and_grad(self) -> Tuple[tf.Tensor, List[Any]]:
        """Returns the cost of `_build_graph` and its (gradient, variable) pairs, without variables
        that it does not reach. For use in the training tower, by a trainer of the user.
        """
        cost = self.get_cost()
        grads = self.get_optimizer().compute_gradients(
            cost, var_list=tf.trainable_variables(), colocate_gradients_with_ops=True
        )
        return cost, FilterNoneGrad().process(grads)

    def optimizer(self) -> tf.train.Optimizer:
        """Override to return the `tf.train.Optimizer`. Called once per graph."""
        return self._get_optimizer()

    def _get_optimizer(self) -> tf.train.Optimizer:
        """The 2017 spelling of `optimizer`."""
        raise NotImplementedError(f"{type(self).__name__} must override optimizer().")

    def get_optimizer(self) -> tf.train.Optimizer:
        """Returns the optimizer of the default graph; creates it on the first call."""

        def make() -> tf.train.Optimizer:
            name = f"what {type(self).__name__}.optimizer() returns"
            return check_kind(name, self.optimizer(), tf.train.Optimizer, " of tf.compat.v1.train")

        return self.__dict__.setdefault("_optimizers", PerGraph(make)).get()


def _in_training_tower() -> bool:
    context = get_current_tower_context()
    if context is None:
        raise RuntimeError(
            "ModelDesc.training is defined only while a tower is built, in build_graph()."
        )
    return context.is_training


def _is_of_2017(inputs: Sequence[Any]) -> bool:
    """Whether `build_graph` was called as in 2017, with one list or source."""
    return len(inputs) == 1 and isinstance(inputs[0], (list, tuple, InputSource))
