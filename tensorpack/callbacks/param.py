"""Hyper-parameters: variables of the graph or attributes of an object that callbacks can set."""

from typing import Any, Optional, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_op_tensor_name
from tensorpack.tfutils.variables import replicas
from tensorpack.tfutils.varmanip import fit_value
from tensorpack.utils.checks import check_kind

__all__ = ["GraphVarParam", "HyperParam", "ObjAttrParam", "as_hyper_param"]


class HyperParam:
    """Something that a `HyperParamSetter` can set."""

    in_checkpoint = False  # whether the model's checkpoints have it, known after `setup_graph`

    def setup_graph(self) -> None:
        """Called while ops may be added to the graph."""

    def set_value(self, v: float) -> None:
        """Sets the value."""
        raise NotImplementedError(f"{type(self).__name__} must override set_value().")

    def get_value(self) -> float:
        """Returns the present value."""
        raise NotImplementedError(f"{type(self).__name__} must override get_value().")

    @property
    def readable_name(self) -> str:
        """Its name in the log and in `hyper.txt`."""
        raise NotImplementedError(f"{type(self).__name__} must override readable_name.")


class GraphVarParam(HyperParam):
    """A variable of the graph, such as the learning rate, of the given shape; `()` is a scalar."""

    def __init__(self, name: str, shape: Sequence[int] = ()) -> None:
        self.name = get_op_tensor_name(name)[0]
        self.shape = list(shape)
        self.var: Optional[tf.Variable] = None

    def setup_graph(self) -> None:
        """Finds the variable, and adds the op that sets it; a ValueError if there is none of this
        shape.
        """
        self.var = self._find()
        self.in_checkpoint = any(var is self.var for var in tf.global_variables())
        dtype = self.var.dtype.base_dtype
        with tf.device(self.var.device):
            self._value = tf.placeholder(dtype, self.var.shape, name="new_value")
        ops = []
        for var in [self.var, *replicas().copies_of(self.var)]:
            with tf.device(var.device):
                ops.append(var.assign(self._value, read_value=False))
        self._assign = tf.group(*ops, name="set_value")

    def _find(self) -> tf.Variable:
        for var in tf.global_variables() + tf.local_variables():
            if var.op.name == self.name:
                if var.shape.as_list() != self.shape:
                    raise ValueError(
                        f"The variable {self.name} has shape {var.shape.as_list()}, not "
                        f"{self.shape}: give GraphVarParam(name, shape=...)."
                    )
                return var
        raise ValueError(
            f"The graph has no variable named {self.name!r}: create it in build_graph() or in "
            "optimizer(), with tf.get_variable(..., trainable=False)."
        )

    def set_value(self, v: float) -> None:
        """Sets the variable in the default session; an error if its dtype lacks the number."""
        tf.get_default_session().run(self._assign, {self._value: fit_value(v, self.var)})

    def get_value(self) -> float:
        return tf.get_default_session().run(self.var)

    @property
    def readable_name(self) -> str:
        return self.name


class ObjAttrParam(HyperParam):
    """An attribute of a Python object, which must exist when it is first set or read. In the log it
    has its own name, unless a `readable_name` is given.
    """

    def __init__(self, obj: Any, attrname: str, readable_name: Optional[str] = None) -> None:
        self.obj = obj
        self.attrname = attrname
        self._readable_name = attrname if readable_name is None else readable_name

    def set_value(self, v: float) -> None:
        self.get_value()  # a misspelled name must not create a new attribute
        setattr(self.obj, self.attrname, v)

    def get_value(self) -> float:
        return getattr(self.obj, self.attrname)

    @property
    def readable_name(self) -> str:
        return self._readable_name


def as_hyper_param(param: Union[HyperParam, str]) -> HyperParam:
    """Returns a `HyperParam`; a string is the name of a variable."""
    if isinstance(param, str):
        return GraphVarParam(param)
    return check_kind("param", param, HyperParam, " or the name of a variable")
