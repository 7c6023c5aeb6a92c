"""Turns a function of tensors into a layer: scope name, default arguments, shape log.

A layer is called as `Conv2D("conv0", x, 32, 3)`, and is also a method of `LinearWrap`.
"""

import inspect
import re
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils._origin import line_of_op
from tensorpack.tfutils.argscope import Layer, Renaming, call_logged
from tensorpack.tfutils.common import PerGraph
from tensorpack.tfutils.tower import get_current_tower_context, in_main_training_tower
from tensorpack.utils import logger
from tensorpack.utils._tracebacks import add_note

# Layers are code, like classes: each is defined once per process, when its module is imported.
LAYERS: Dict[str, "_ScopedLayer"] = {}


class VariableHolder(SimpleNamespace):
    """The variables of one layer call, as attributes by their names in the scope of the layer, such
    as `Conv2D("c", x, 8, 3).variables.W`.
    """

    def __init__(self, **variables: Any) -> None:
        super().__init__(**variables)

    def all(self) -> List[Any]:
        """Returns the variables, in the order in which they were added."""
        return list(vars(self).values())


_EXISTS = re.compile(r"Variable (\S+) already exists")

# The scopes whose shapes are not to be logged, or not again.
_silent_scopes: PerGraph[Set[str]] = PerGraph(set)
_EVERY_SCOPE = "*"


def disable_layer_logging() -> None:
    """Disables the shape log of layers in the default graph."""
    _silent_scopes.get().add(_EVERY_SCOPE)


def get_registered_layer(name: str) -> Optional["_ScopedLayer"]:
    """Returns the layer with this name, or None."""
    return LAYERS.get(name)


def layer_register(
    log_shape: bool = True,
    use_scope: Optional[bool] = True,
    *,
    spelling: Optional[Renaming] = None,
    aliases: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Any]:
    """Decorates a function `f(inputs, ...)` as a layer, registered under its own name.

    The layer opens the variable scope that it is called with, takes missing arguments from
    `argscope`, and logs the shapes of its input and output: once per scope of a graph, and only in
    the main training tower. It has the attributes `.symbolic_function`, the undecorated function,
    for use inside another layer's scope, and `.use_scope`.

    Args:
      log_shape: whether to log shapes. Calls without a scope name log nothing.
      use_scope: if True, the first argument must be a scope name. If False or None, it is optional,
        and without it no scope is opened.
      spelling: maps other names of arguments to their names in the function.
      aliases: additional names of the layer.

    Raises:
      ValueError: the name belongs to another function. The layers of this package may be
        replaced, with a warning.
    """

    def decorate(func: Callable[..., Any]) -> _ScopedLayer:
        layer = _ScopedLayer(func, log_shape, spelling)
        layer.use_scope = use_scope
        if use_scope and "scope_name" not in layer.parameters:
            first = inspect.Parameter("scope_name", inspect.Parameter.POSITIONAL_ONLY)
            parameters = [first, *layer.parameters.values()]
            layer.__signature__ = inspect.signature(func).replace(parameters=parameters)
        for name in [func.__name__, *aliases]:
            _register(name, layer)
        return layer

    return decorate


class _ScopedLayer(Layer):
    """A layer that is called with the name of its variable scope first; see `layer_register`."""

    use_scope: Optional[bool]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        scope_name = args[0] if args and isinstance(args[0], str) else None
        if scope_name is not None:
            args = args[1:]
        elif self.use_scope:
            raise TypeError(
                f"{self.__name__}() needs the name of its variable scope first, as in "
                f"{self.__name__}('name', inputs); got {args[0] if args else 'no position'!r}."
            )
        arguments = self.spell(kwargs, f"{self.__name__}()")
        inputs = self.inputs_of(args, arguments)
        if not tf.is_tensor(inputs[0] if isinstance(inputs, (list, tuple)) and inputs else inputs):
            raise ValueError(
                f"Invalid inputs to layer: {self.__name__}() takes a tensor or a list of tensors, "
                f"got {inputs!r}."
            )
        call = self.bind(args, arguments)
        return call() if scope_name is None else self._call_in_scope(call, scope_name, inputs)

    def _call_in_scope(self, call: Callable[[], Any], scope_name: str, inputs: Any) -> Any:
        with tf.variable_scope(scope_name) as scope:
            name, tower = scope.name, get_current_tower_context()
            if tower is not None and name.startswith(f"{tower.vs_name}/"):
                name = name[len(tower.vs_name) + 1 :]
            silent = _silent_scopes.get()
            logs = self.log_shape and in_main_training_tower() and not silent & {_EVERY_SCOPE, name}
            if logs:
                silent.add(name)
            try:
                return call_logged(call, name, inputs) if logs else call()
            except ValueError as error:
                _say_where(error, name)
                raise


def _register(name: str, layer: _ScopedLayer) -> None:
    other = LAYERS.get(name, layer)
    if repr(other) != repr(layer):  # a cell of a notebook that runs again defines the same
        # Old scripts define layers that came into this package later.
        if not other.__module__.startswith(f"{__package__}."):
            raise ValueError(f"The layer name {name!r} is taken by {other!r}; rename {layer!r}.")
        logger.warning(f"LinearWrap.{name} is {layer!r} now, not {other!r}.")
    LAYERS[name] = layer


def _say_where(error: ValueError, layer: str) -> None:
    """Adds to an error about a variable that exists which line has made it, and the next move."""
    match = _EXISTS.match(str(error))
    ops = [var.op for var in tf.global_variables() if match and var.op.name == match.group(1)]
    line = line_of_op(ops[0]) if ops else None
    if line is not None:
        add_note(
            error,
            f"The variables of the layer {layer!r} were made at {line}: give one of the two layers "
            "another name, or share the variables by tf.variable_scope(..., reuse=True). A model "
            "that is built again, as in a notebook, needs a graph of its own: with "
            "tf.Graph().as_default().",
        )
