"""Default arguments for layers and functions, in force inside a `with` block of one graph.

Knows nothing about particular layers: a layer says which arguments it takes, and under which names
it keeps them, through its attribute `__argscope_spelling__`; a layer calls `add_defaults` for the
arguments of each call.
"""

import functools
import inspect
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils._words import did_you_mean
from tensorpack.utils.argtools import log_once

from .common import PerGraph
from .model_utils import get_shape_str
from .tower import in_main_training_tower

Layer = Callable[..., Any]
Defaults = Dict[Layer, Dict[str, Any]]
Parameters = Mapping[str, inspect.Parameter]

# The open scopes of each graph, innermost last. A scope holds the defaults of the scopes around it
# as well, and is never changed once it is open. A decorated function shares the defaults of the
# function inside.
_open_scopes: PerGraph = PerGraph(lambda: [{}])


@contextmanager
def argscope(layers: Union[Layer, Sequence[Layer]], **kwargs: Any) -> Iterator[None]:
    """Gives one or several layers default arguments for all calls inside the block.

    An argument that is given in a call wins over the defaults, and an inner scope over an outer
    one. Either spelling of an argument will do. The scope belongs to the default graph. ::

        with argscope([Conv2D, FullyConnected], activation=tf.nn.relu):
            x = Conv2D("conv0", x, 32, 3)
            with argscope(Conv2D, activation=None):
                x = Conv2D("conv1", x, 32, 3)      # no activation here

    A function that is no layer takes its defaults once it is decorated with
    `enable_argscope_for_function`; without that it can look them up in `get_arg_scope()`.
    """
    chosen: List[Any] = list(layers) if isinstance(layers, (list, tuple)) else [layers]
    spelled = [(inspect.unwrap(layer), _spell(layer, kwargs)) for layer in chosen]
    scopes: List[Defaults] = _open_scopes.get()
    inner = dict(scopes[-1])
    for layer, defaults in spelled:
        inner[layer] = {**inner.get(layer, {}), **defaults}
    scopes.append(inner)
    try:
        yield
    finally:
        scopes.pop()


def get_arg_scope() -> Dict[str, Dict[str, Any]]:
    """Returns the defaults in force, as a copy: layer name -> argument -> value."""
    current: Defaults = _open_scopes.get()[-1]
    return {layer.__name__: dict(defaults) for layer, defaults in current.items()}


def add_defaults(
    layer: Layer, parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Dict[str, Any]:
    """Returns the keyword arguments of a call, and the defaults in force for what it leaves out."""
    current: Defaults = _open_scopes.get()[-1]
    defaults = dict(current.get(inspect.unwrap(layer), {}))
    for name in list(parameters)[: len(args)]:
        defaults.pop(name, None)
    return {**defaults, **kwargs}


def check_arguments(
    layer_name: str,
    parameters: Parameters,
    other_names: Iterable[str],
    arguments: Iterable[str],
    got_by: str = "argscope()",
) -> None:
    """Raises TypeError unless a layer has arguments that it, or an `argscope`, was given.

    Args:
      parameters: those of the layer; no check without any.
      other_names: names that it takes in place of those of its parameters.
      arguments: the arguments, by the names of the parameters.
    """
    kinds = [each.kind for each in parameters.values()]
    if not kinds or inspect.Parameter.VAR_KEYWORD in kinds:
        return
    unknown = [name for name in arguments if name not in parameters]
    if unknown:
        known = sorted([*parameters, *other_names])
        near = "".join(did_you_mean(name, known) for name in unknown)
        hint = near or f" It takes {', '.join(known)}."
        raise TypeError(
            f"{got_by} got {', '.join(unknown)}, which {layer_name} does not take.{hint}"
        )


def parameters_of(func: Callable[..., Any]) -> Dict[str, inspect.Parameter]:
    """Returns the parameters of a function, in order.

    One that `functools.wraps` another has those of the other, and its own `**options`, if it has
    some: it decides which names reach the other one.
    """
    own = inspect.signature(func, follow_wrapped=False).parameters.values()
    options = {each.name: each for each in own if each.kind is each.VAR_KEYWORD}
    return {**inspect.signature(func).parameters, **options}


def enable_argscope_for_function(func: Layer, log_shape: bool = True) -> Layer:
    """Returns the function with the defaults of `argscope` for what a call leaves out.

    A layer is returned as it is. ::

        dense = enable_argscope_for_function(tf.layers.dense)
        with argscope(dense, activation=tf.nn.relu):
            x = dense(x, 32)

    Args:
      func: takes a tensor, or a list of tensors, first.
      log_shape: whether to log the shapes of what goes in and comes out in the main training tower.
    """
    if hasattr(func, "__argscope_spelling__"):
        return func
    name, parameters = _name_and_parameters(func)

    def call_function(*args: Any, **kwargs: Any) -> Any:
        given = add_defaults(func, parameters, args, kwargs)
        if not log_shape or not in_main_training_tower():
            return func(*args, **given)
        by_name = {**given, **dict(zip(parameters, args))}
        scope = tf.get_variable_scope().name
        shown = "/".join(each for each in (scope, by_name.get("name") or name) if each)
        inputs = next((by_name[each] for each in parameters if each in by_name), None)
        logger.detail(f"{shown} input: {get_shape_str(inputs)}")
        outputs = func(*args, **given)
        logger.detail(f"{shown} output: {get_shape_str(outputs)}")
        return outputs

    def spell(kwargs: Mapping[str, Any]) -> Dict[str, Any]:
        check_arguments(name, parameters, (), kwargs)
        return dict(kwargs)

    enabled: Any = functools.update_wrapper(call_function, func)
    enabled.__argscope_spelling__ = spell
    return enabled


def enable_argscope_for_module(module: ModuleType, log_shape: bool = True) -> None:
    """Replaces every public function of a module by `enable_argscope_for_function` of it.

    The module is changed for the whole process; functions that were imported from it before stay
    as they were. ::

        enable_argscope_for_module(tf.layers)
        with argscope(tf.layers.conv2d, padding="same"):
            x = tf.layers.conv2d(x, 32, 3)
    """
    functions = inspect.getmembers(module, inspect.isfunction)
    public = [(name, each) for name, each in functions if not name.startswith("_")]
    if not public:
        raise ValueError(f"{module!r} has no public functions to take defaults from argscope.")
    for name, function in public:
        setattr(module, name, enable_argscope_for_function(function, log_shape))


def _spell(layer: Layer, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments under the layer's own names."""
    spell = getattr(layer, "__argscope_spelling__", None)
    if spell is not None:
        return spell(kwargs)
    name, parameters = _name_and_parameters(layer)
    check_arguments(name, parameters, (), kwargs)
    log_once(
        f"argscope() has defaults for {name}, which is no layer: it takes them only if it is "
        "decorated with enable_argscope_for_function, or looks them up in get_arg_scope().",
        "warn",
    )
    return dict(kwargs)


def _name_and_parameters(func: Layer) -> Tuple[str, Parameters]:
    name = getattr(func, "__name__", None)
    if name is None or not callable(func):
        raise TypeError(
            f"argscope() needs layers such as Conv2D, or functions, got {func!r}. Define a "
            "function with a name, or pass the arguments directly."
        )
    try:
        return name, parameters_of(func)
    except ValueError:  # some functions in C have none
        return name, {}
