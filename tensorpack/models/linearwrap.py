"""A sequence of layers as a chain of method calls, and a layer for use in it."""

from types import ModuleType
from typing import Any, Callable

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils._words import did_you_mean

from ._legacy_names import RENAMED
from .registry import LAYERS, layer_register


class LinearWrap:
    """Holds a tensor and applies layers to it, one after another::

        logits = (
            LinearWrap(image)
            .Conv2D("conv0", 32, 3, activation=tf.nn.relu)
            .MaxPooling("pool0", 2)
            .tf.nn.relu()
            .apply(tf.reshape, [-1, 288])
            .FullyConnected("fc", 10)()
        )

    Every registered layer is a method, and `tf` leads to the functions of TensorFlow; both are
    given the tensor as their first argument and return a new LinearWrap around the result. Calling
    the wrap gives the tensor.

    Args:
      tensor: what to start from; a tensor, or whatever the first layer takes.
    """

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Callable[..., "LinearWrap"]:
        if name.startswith("_") or name not in LAYERS:
            methods = [method for method in vars(LinearWrap) if not method.startswith("_")]
            raise AttributeError(
                f"LinearWrap has no method {name!r}, and there is no layer of this name."
                f"{did_you_mean(name, [*methods, *LAYERS])} "
                "Other functions are applied with .apply(func, ...)."
            )
        layer = LAYERS[name]

        def apply_layer(*args: Any, **kwargs: Any) -> "LinearWrap":
            if args and isinstance(args[0], str):
                return LinearWrap(layer(args[0], self._tensor, *args[1:], **kwargs))
            return LinearWrap(layer(self._tensor, *args, **kwargs))

        return apply_layer

    @property
    def tf(self) -> "_Functions":
        """The functions of `tf.compat.v1`, applied to the tensor."""
        return _Functions(tf, self._tensor)

    def apply(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> "LinearWrap":
        """Returns a wrap around `func(tensor, *args, **kwargs)`."""
        return LinearWrap(func(self._tensor, *args, **kwargs))

    def apply2(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> "LinearWrap":
        """Returns a wrap around `func(args[0], tensor, *args[1:], **kwargs)`."""
        return LinearWrap(func(args[0], self._tensor, *args[1:], **kwargs))

    def print_tensor(self) -> "LinearWrap":
        """Logs the name, shape and dtype of the tensor, and returns this wrap."""
        logger.info(str(self._tensor))
        return self

    def tensor(self) -> Any:
        """Returns the tensor."""
        return self._tensor

    __call__ = tensor


class _Functions:
    """A module, or submodule, whose functions are applied to a tensor."""

    def __init__(self, module: ModuleType, tensor: Any) -> None:
        self._module = module
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        func = getattr(self._module, name)
        if isinstance(func, ModuleType):
            return _Functions(func, self._tensor)

        def apply_function(*args: Any, **kwargs: Any) -> LinearWrap:
            return LinearWrap(func(self._tensor, *args, **kwargs))

        return apply_function


@layer_register(log_shape=False, use_scope=None, spelling=RENAMED["ConcatWith"])
def ConcatWith(inputs: tf.Tensor, tensor: Any, dim: int) -> tf.Tensor:
    """Concatenates `inputs` with other tensors; for use in a `LinearWrap` chain.

    Args:
      inputs: the first tensor.
      tensor: one tensor, or a list of tensors, appended in this order.
      dim: the axis to concatenate along.
    """
    others = list(tensor) if isinstance(tensor, (list, tuple)) else [tensor]
    return tf.concat([inputs, *others], dim)
