"""Decorators for arguments and results, and code that runs only once."""

import functools
import inspect
import operator
import sys
from contextlib import suppress
from typing import Any, Callable, Dict, List, Sequence, Set, Tuple, TypeVar, Union

from . import logger

_Function = TypeVar("_Function", bound=Callable[..., Any])
_FORMATS = {"NHWC": "NHWC", "channels_last": "NHWC", "NCHW": "NCHW", "channels_first": "NCHW"}


def accepts_old_keywords(**new_names: str) -> Callable[[_Function], _Function]:
    """Decorates a function so that each keyword `old=` is passed on as the keyword `new=`.

    Takes the new name of each old keyword, as in `nr="num"`. Both at once are a TypeError.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for old, new in new_names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(
                            f"{function.__qualname__}() got both {old!r} and {new!r}, "
                            f"which are the same argument. Use {new!r}."
                        )
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def map_arg(**maps: Callable[[Any], Any]) -> Callable[[_Function], _Function]:
    """Decorator that applies functions to arguments, given or default, before the call.

    `@map_arg(shape=tuple)` calls the function with `tuple(shape)`.
    """

    def decorate(func: _Function) -> _Function:
        signature = inspect.signature(func)

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            for name, function in maps.items():
                bound.arguments[name] = function(bound.arguments[name])
            return func(*bound.args, **bound.kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


@accepts_old_keywords(user_function="func")
def memoized(func: _Function) -> _Function:
    """Decorator that computes once for each combination of hashable arguments and their types.

    Arguments and results are never released; for a method use `memoized_method`.
    """
    return functools.lru_cache(maxsize=None, typed=True)(func)  # type: ignore[return-value]


def memoized_ignoreargs(func: _Function) -> _Function:
    """Decorator that computes at the first call and returns that result from then on."""
    results: List[Any] = []

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not results:
            results.append(func(*args, **kwargs))
        return results[0]

    return wrapper  # type: ignore[return-value]


def memoized_method(func: _Function) -> _Function:
    """Decorator that computes a method once per instance and hashable arguments.

    Results, including None, are kept on the instance and released with it.
    """

    @functools.wraps(func)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Not getattr: a class with __getattr__ (a proxy) would answer for its inner object.
        results = vars(self).setdefault("_memoized_results", {}).setdefault(func.__qualname__, {})
        return _result_of(results, functools.partial(func, self), args, kwargs)

    return wrapper  # type: ignore[return-value]


def graph_memoized(func: _Function) -> _Function:
    """Decorator that computes once for each default graph and combination of hashable arguments.

    Results, including None, are kept on the graph and released with it. A call that raises is not
    remembered. TensorFlow must have been imported.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        graph = sys.modules["tensorflow"].compat.v1.get_default_graph()
        if not hasattr(graph, "_memoized_results"):  # a graph may have no __dict__
            graph._memoized_results = {}
        return _result_of(graph._memoized_results.setdefault(wrapper, {}), func, args, kwargs)

    return wrapper  # type: ignore[return-value]


def _result_of(results: Dict[Any, Any], func: _Function, args: Any, kwargs: Any) -> Any:
    key = (args, tuple(sorted(kwargs.items())))
    if key not in results:
        results[key] = func(*args, **kwargs)
    return results[key]


def call_only_once(func: _Function) -> _Function:
    """Decorator for a method; its second call on an instance is a RuntimeError.

    A call that raises counts. An overriding method may call the method that it overrides.
    """

    @functools.wraps(func)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        called = vars(self).setdefault("_called_only_once", set())  # as in `memoized_method`
        if func.__qualname__ in called:
            raise RuntimeError(
                f"{type(self).__name__}.{func.__name__}() was already called and can be called "
                "only once: create a new object."
            )
        called.add(func.__qualname__)
        return func(self, *args, **kwargs)

    return wrapper  # type: ignore[return-value]


# In this process.
_logged_messages: Set[Tuple[str, str]] = set()
_executed_lines: Set[Tuple[str, int]] = set()


def log_once(message: str, func: str = "info") -> None:
    """Logs a message once per process.

    `func` names a function of the logger: debug, info, warn, warning, error or critical.
    """
    if (func, message) not in _logged_messages:
        _logged_messages.add((func, message))
        getattr(logger, func)(message)


def execute_only_once() -> bool:
    """Returns True at the first call from a line of source code, and False at later ones."""
    frame = sys._getframe(1)
    line = (frame.f_code.co_filename, frame.f_lineno)
    is_first = line not in _executed_lines
    _executed_lines.add(line)
    return is_first


def shape2d(a: Union[int, Sequence[int]]) -> List[int]:
    """Returns `[a, a]` for an integer, and a sequence of two integers as a list."""
    with suppress(TypeError):
        return [operator.index(a)] * 2  # type: ignore[arg-type]
    shape = [operator.index(n) for n in a]  # type: ignore[union-attr]
    if len(shape) != 2:
        raise ValueError(f"A 2D shape has two numbers, got {len(shape)}: {a!r}.")
    return shape


def shape4d(a: Union[int, Sequence[int]], data_format: str = "NHWC") -> List[int]:
    """Returns a 2D shape with ones for batch and channel, in the order of a data format."""
    return [1, *shape2d(a), 1] if axis_order(data_format) == "NHWC" else [1, 1, *shape2d(a)]


@accepts_old_keywords(tfmode="keras_mode")
def get_data_format(data_format: str, keras_mode: bool = True) -> str:
    """Returns "channels_last" or "channels_first" for either spelling ("NHWC", "NCHW"); without
    `keras_mode`, the other one, see `axis_order`.
    """
    order = axis_order(data_format)
    return {"NHWC": "channels_last", "NCHW": "channels_first"}[order] if keras_mode else order


def axis_order(data_format: str, dims: int = 2) -> str:
    """Returns "NHWC" or "NCHW" for either spelling ("channels_last", "channels_first").

    With `dims=3` it is "NDHWC" or "NCDHW".
    """
    axes = "HW" if dims == 2 else "DHW"
    orders = {name.replace("HW", axes): nd.replace("HW", axes) for name, nd in _FORMATS.items()}
    if data_format not in orders:
        raise ValueError(f"Unknown data format {data_format!r}: use one of {', '.join(orders)}.")
    return orders[data_format]
