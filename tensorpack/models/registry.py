"""Turns a function of tensors into a layer: scope name, default arguments, shape log.

A layer is called as `Conv2D("conv0", x, 32, 3)`, and is also a method of `LinearWrap`.
"""

import functools
import inspect
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils._origin import line_of_caller, line_of_op
from tensorpack.tfutils.argscope import add_defaults, check_arguments, parameters_of
from tensorpack.tfutils.common import PerGraph
from tensorpack.tfutils.model_utils import get_shape_str
from tensorpack.tfutils.tower import get_current_tower_context, in_main_training_tower
from tensorpack.utils import logger
from tensorpack.utils._tracebacks import add_note

from ._legacy_names import Renaming, translate

Layer = Any  # a function that carries `.symbolic_function` and `.use_scope`

# Layers are code, like classes: each is defined once per process, when its module is imported.
LAYERS: Dict[str, Layer] = {}


class VariableHolder:
    """The variables of one layer call, as attributes by their names in the scope of the layer, such
    as `Conv2D("c", x, 8, 3).variables.W`.
    """

    def __init__(self, **variables: Any) -> None:
        vars(self).update(variables)

    def __getattr__(self, name: str) -> Any:
        known = ", ".join(sorted(vars(self))) or "none"
        raise _UnknownVariable(f"the layer has no variable {name!r}; it has: {known}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self):
            raise AttributeError(f"variable {name!r} of a layer is already set")
        vars(self)[name] = value

    def all(self) -> List[Any]:
        """Returns the variables, in the order in which they were added."""
        return list(vars(self).values())


class _UnknownVariable(AttributeError, KeyError):
    """An AttributeError, for `hasattr`, and a KeyError, which old scripts catch."""

    __str__ = Exception.__str__


_TAKEN = re.compile(r"Variable (\S+) already exists")

# The scopes whose shapes are not to be logged, or not again.
_silent_scopes: PerGraph[Set[str]] = PerGraph(set)
_EVERY_SCOPE = "*"


def disable_layer_logging() -> None:
    """Disables the shape log of layers in the default graph."""
    _silent_scopes.get().add(_EVERY_SCOPE)


def get_registered_layer(name: str) -> Optional[Layer]:
    """Returns the layer with this name, or None."""
    return LAYERS.get(name)


def layer_register(
    log_shape: bool = True,
    use_scope: Optional[bool] = True,
    *,
    spelling: Optional[Renaming] = None,
    aliases: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Layer]:
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

    def decorate(function: Callable[..., Any]) -> Layer:
        layer = _make_layer(function, log_shape, use_scope, spelling or {})
        for name in [function.__name__, *aliases]:
            _register(name, layer)
        return layer

    return decorate


def _register(name: str, layer: Layer) -> None:
    taken = LAYERS.get(name)
    # Running a notebook cell again replaces the definition by itself.
    if taken is not None and _origin(taken) != _origin(layer):
        # Old scripts define layers that came into this package later.
        if not taken.__module__.startswith(f"{__package__}."):
            raise ValueError(
                f"The layer name {name!r} is taken by {_origin(taken)}; rename {_origin(layer)}."
            )
        logger.warning(f"LinearWrap.{name} is {_origin(layer)} now, not {_origin(taken)}.")
    LAYERS[name] = layer


def _origin(layer: Layer) -> str:
    return f"{layer.__module__}.{layer.__qualname__}"


def _make_layer(
    function: Callable[..., Any], log_shape: bool, use_scope: Optional[bool], spelling: Renaming
) -> Layer:
    layer_name = function.__name__
    parameters = parameters_of(function)

    def call_layer(*args: Any, **kwargs: Any) -> Any:
        scope_name, args = _split_scope_name(layer_name, use_scope, args)
        given = translate(layer_name, spelling, kwargs)
        check_arguments(layer_name, parameters, spelling, given, f"{layer_name}()")
        inputs = _find_inputs(layer_name, parameters, args, given)
        call = functools.partial(function, *args, **add_defaults(layer, parameters, args, given))
        return call() if scope_name is None else _call_in_scope(call, scope_name, inputs, log_shape)

    def spell(kwargs: Mapping[str, Any]) -> Dict[str, Any]:
        translated = translate(layer_name, spelling, kwargs)
        check_arguments(layer_name, parameters, spelling, translated)
        return translated

    layer: Layer = functools.update_wrapper(call_layer, function)
    layer.symbolic_function = function
    layer.use_scope = use_scope
    layer.__argscope_spelling__ = spell
    if use_scope and "scope_name" not in parameters:  # no signature can say that it is optional
        first = inspect.Parameter("scope_name", inspect.Parameter.POSITIONAL_ONLY, annotation=str)
        shown = [first, *parameters.values()]
        layer.__signature__ = inspect.signature(function).replace(parameters=shown)
    return layer


def _split_scope_name(
    layer_name: str, use_scope: Optional[bool], args: Tuple[Any, ...]
) -> Tuple[Optional[str], Tuple[Any, ...]]:
    """Separates the scope name from the other positional arguments."""
    if args and isinstance(args[0], str):
        return args[0], args[1:]
    if use_scope:
        got = f"{type(args[0]).__name__} {args[0]!r}" if args else "no positional argument"
        raise TypeError(
            f"{layer_name}() needs the name of its variable scope first, as in "
            f"{layer_name}('name', inputs); got {got}."
        )
    return None, args


def _find_inputs(
    layer_name: str, parameters: Mapping[str, Any], args: Tuple[Any, ...], given: Mapping[str, Any]
) -> Any:
    """Returns the input of the layer, a tensor or a list of tensors; None if it is missing."""
    inputs = args[0] if args else given.get(next(iter(parameters), ""))
    if inputs is None and not args:
        return None  # the call raises Python's own error about the missing argument
    first = inputs[0] if isinstance(inputs, (list, tuple)) and inputs else inputs
    if not tf.is_tensor(first):
        raise ValueError(
            f"Invalid inputs to layer: {layer_name}() takes a tensor or a list of tensors, got "
            f"{inputs!r}."
        )
    return inputs


def _call_in_scope(call: Callable[[], Any], scope_name: str, inputs: Any, log_shape: bool) -> Any:
    with tf.variable_scope(scope_name) as scope:
        tower = get_current_tower_context()
        prefix = f"{tower.vs_name}/" if tower is not None and tower.vs_name else ""
        shown_name = scope.name[len(prefix) if scope.name.startswith(prefix) else 0 :]
        silent = _silent_scopes.get()
        logs = log_shape and in_main_training_tower() and not silent & {_EVERY_SCOPE, shown_name}
        if logs:
            silent.add(shown_name)
            logger.detail(f"{shown_name} input: {get_shape_str(inputs)}")
        try:
            outputs = call()
        except ValueError as error:
            _say_where(error, shown_name)
            raise
        if logs:
            logger.detail(f"{shown_name} output: {get_shape_str(outputs)}")
        return outputs


def _say_where(error: ValueError, layer: str) -> None:
    """Adds to an error about a variable that is there already who made it, and makes it again."""
    taken = _TAKEN.match(str(error))
    made = [each for each in tf.global_variables() if taken and each.op.name == taken.group(1)]
    lines = [line_of_op(made[0].op) if made else None, line_of_caller()]
    if None not in lines:
        add_note(
            error,
            f"The variables of the layer {layer!r} were made at {lines[0]}, and are made again at "
            f"{lines[1]}: give one of the two layers another name, or share the variables by "
            "tf.variable_scope(..., reuse=True). A model that is built again, as in a notebook, "
            "needs a graph of its own: with tf.Graph().as_default().",
        )
