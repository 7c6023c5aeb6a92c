"""Layers: functions of tensors that take default arguments inside a `with` block of one graph, and
know their arguments by more than one name.

The layers of `tensorpack.models` derive from `Layer`; nothing here depends on a particular one.
"""

import functools
import inspect
from contextlib import contextmanager
from types import ModuleType
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Union,
)

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils._words import did_you_mean
from tensorpack.utils.argtools import log_once

from .common import PerGraph
from .model_utils import get_shape_str
from .tower import in_main_training_tower

_Function = Callable[..., Any]

# The open scopes of each graph, innermost last: function inside of the layer -> its defaults, those
# of the scopes around included. A scope does not change once it is open.
_open_scopes: PerGraph = PerGraph(lambda: [{}])


class Converted(NamedTuple):
    """A renamed argument whose value changes as well."""

    name: str
    convert: Callable[[Any], Any]


Renaming = Mapping[str, Union[str, Converted]]


class Layer:
    """A function that takes other names of its arguments, and defaults from `argscope`.

    Args:
      func: takes a tensor, or a list of tensors, first.
      log_shape: whether to log the shapes of what goes in and comes out in the main training tower.
      renaming: other name of an argument -> its name in the function.
    """

    __name__: str
    __qualname__: str
    __signature__: inspect.Signature

    def __init__(
        self, func: _Function, log_shape: bool = True, renaming: Optional[Renaming] = None
    ) -> None:
        if not callable(func) or not hasattr(func, "__name__"):
            raise TypeError(f"argscope needs layers, or functions with a name, got {func!r}.")
        functools.update_wrapper(self, func)
        self.symbolic_function = func
        self.log_shape = log_shape
        self.renaming = renaming or {}
        self.parameters = inspect.signature(func).parameters
        # What `functools.wraps` another function decides itself which names reach it.
        outer = inspect.signature(func, follow_wrapped=False).parameters.values()
        self.takes_others = inspect.Parameter.VAR_KEYWORD in [param.kind for param in outer]

    def __repr__(self) -> str:
        return f"{self.__module__}.{self.__qualname__}"

    def __reduce__(self) -> str:
        return self.__qualname__  # copied and pickled by its name, as functions are

    def __get__(self, instance: Any, owner: Any = None) -> "Layer":
        return self  # a routine to `help`

    def spell(self, arguments: Mapping[str, Any], caller: str = "argscope()") -> Dict[str, Any]:
        """Returns the arguments under their names in the function.

        Raises:
          TypeError: the function does not take one of them, or one is there by two names.
        """
        spelled = translate(self.__name__, self.renaming, arguments)
        unknown = [name for name in spelled if name not in self.parameters]
        if unknown and not self.takes_others:
            names = sorted([*self.parameters, *self.renaming])
            near = "".join(did_you_mean(name, names) for name in unknown)
            raise TypeError(
                f"{caller} got {', '.join(unknown)}, which {self.__name__} does not take."
                + (near or f" It takes {', '.join(names)}.")
            )
        return spelled

    def inputs_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Returns the first argument of a call; None without one."""
        return args[0] if args else kwargs.get(next(iter(self.parameters), ""))

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> functools.partial:
        """Returns a call of the function, with the defaults in force for what is left out."""
        defaults = dict(_open_scopes.get()[-1].get(inspect.unwrap(self), {}))
        for name in list(self.parameters)[: len(args)]:
            defaults.pop(name, None)
        return functools.partial(self.symbolic_function, *args, **{**defaults, **kwargs})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.bind(args, kwargs)
        if not self.log_shape or not in_main_training_tower():
            return call()
        name = {**call.keywords, **dict(zip(self.parameters, args))}.get("name") or self.__name__
        scope = tf.get_variable_scope().name
        inputs = self.inputs_of(args, call.keywords)
        return call_logged(call, f"{scope}/{name}" if scope else name, inputs)


def call_logged(call: Callable[[], Any], name: str, inputs: Any) -> Any:
    """Calls a layer, and logs the shapes of what goes in and comes out."""
    logger.detail(f"{name} input: {get_shape_str(inputs)}")
    outputs = call()
    logger.detail(f"{name} output: {get_shape_str(outputs)}")
    return outputs


@contextmanager
def argscope(layers: Union[_Function, Sequence[_Function]], **kwargs: Any) -> Iterator[None]:
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
    functions: List[Any] = list(layers) if isinstance(layers, (list, tuple)) else [layers]
    spelled = []
    for func in functions:
        layer = _layer_in(func)
        spelled.append((inspect.unwrap(func), (layer or Layer(func)).spell(kwargs)))
        if layer is None:
            advice = "decorate it with enable_argscope_for_function, or look in get_arg_scope()."
            log_once(f"argscope() alone gives {func.__name__} no defaults: {advice}", "warn")
    scopes = _open_scopes.get()
    scope = dict(scopes[-1])
    for func, defaults in spelled:
        scope[func] = {**scope.get(func, {}), **defaults}
    scopes.append(scope)
    try:
        yield
    finally:
        scopes.pop()


def get_arg_scope() -> Dict[str, Dict[str, Any]]:
    """Returns the defaults in force, as a copy: layer name -> argument -> value."""
    scope = _open_scopes.get()[-1]
    return {func.__name__: dict(defaults) for func, defaults in scope.items()}


def enable_argscope_for_function(func: _Function, log_shape: bool = True) -> _Function:
    """Returns the function with the defaults of `argscope` for what a call leaves out.

    A layer is returned as it is. ::

        dense = enable_argscope_for_function(tf.layers.dense)
        with argscope(dense, activation=tf.nn.relu):
            x = dense(x, 32)

    Args:
      func: takes a tensor, or a list of tensors, first.
      log_shape: whether to log the shapes of what goes in and comes out in the main training tower.
    """
    return Layer(func, log_shape) if _layer_in(func) is None else func


def enable_argscope_for_module(module: ModuleType, log_shape: bool = True) -> None:
    """Replaces every public function of a module by `enable_argscope_for_function` of it.

    The module is changed for the whole process; functions that were imported from it before stay
    as they were.
    """
    for name, func in inspect.getmembers(module, inspect.isfunction):
        if not name.startswith("_"):
            setattr(module, name, enable_argscope_for_function(func, log_shape))


def translate(layer_name: str, renaming: Renaming, arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns arguments under their internal names."""
    translated: Dict[str, Any] = {}
    for name, value in arguments.items():
        target = renaming.get(name, name)
        if isinstance(target, Converted):
            value = target.convert(value)
            target = target.name
        if target in translated:
            raise TypeError(
                f"{layer_name}() got two names of the argument {target!r} in {sorted(arguments)}. "
                "Pass only one."
            )
        translated[target] = value
    return translated


def _layer_in(func: _Function) -> Optional[Layer]:
    """Returns the layer that a function is, or decorates."""
    inner = inspect.unwrap(func, stop=lambda f: isinstance(f, Layer))
    return inner if isinstance(inner, Layer) else None
