"""For projects that extend tensorpack: warnings of what is deprecated, and missing dependencies."""

import collections
import functools
import importlib
import os
import types
from typing import Any, Callable, Counter, Dict, Optional, Sequence, Tuple, Union

from .. import logger
from ..optional import require

_warnings: Counter[Tuple[str, str]] = collections.Counter()  # by name and text


def HIDE_DOC(func: Any) -> Any:
    """Returns its argument, which the old documentation left out."""
    return func


class NonPicklableWrapper:
    """Calls `obj`, which the package dill pickles: a lambda, for example."""

    def __init__(self, obj: Callable[..., Any]) -> None:
        self._obj = obj

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._obj(*args, **kwargs)

    def __reduce__(self) -> Tuple[Any, ...]:
        dill = require("dill")
        return dill.loads, (dill.dumps(self._obj),)


class LazyLoader(types.ModuleType):
    """Stands for the module `name` until something of it is used, then makes the module the
    value of `local_name` in `parent_module_globals`.
    """

    def __init__(self, local_name: str, parent_module_globals: Dict[str, Any], name: str) -> None:
        super().__init__(name)
        self.__dict__.update(_local_name=local_name, _globals=parent_module_globals)

    def __getattr__(self, name: str) -> Any:
        module = self._globals[self._local_name] = importlib.import_module(self.__name__)
        return getattr(module, name)


def building_rtfd() -> bool:
    """Returns whether the documentation is being built, as READTHEDOCS or DOC_BUILDING says."""
    return any(os.environ.get(name) for name in ("READTHEDOCS", "DOC_BUILDING"))


def create_dummy_class(klass: str, dependency: Union[str, Sequence[str]]) -> type:
    """Returns a class that takes the place of one whose dependency, or several, is not installed.

    Making an instance, also of a derived class, and reading an attribute raise an ImportError and
    an AttributeError that name the dependency.
    """
    message = _missing(klass, dependency)

    class Missing(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            raise ImportError(message)

        def __getattr__(cls, name: str) -> Any:
            raise AttributeError(message)

    return Missing(klass, (), {})


def create_dummy_func(func: str, dependency: Union[str, Sequence[str]]) -> Callable[..., Any]:
    """Returns a function that raises an ImportError; arguments as of `create_dummy_class`."""

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise ImportError(_missing(func, dependency))

    return missing


def _missing(name: str, dependency: Union[str, Sequence[str]]) -> str:
    modules = dependency if isinstance(dependency, str) else ",".join(dependency)
    return f"Cannot import '{modules}', therefore '{name}' is not available"


def log_deprecated(
    name: str = "", text: str = "", eos: str = "", max_num_warnings: Optional[int] = None
) -> None:
    """Warns that `name`, if there is one, should not be used any more; `text` says what to use.

    It works until the day `eos`, such as "2027-01-31". With this name and text, at most
    `max_num_warnings` are logged.
    """
    _warnings[name, text] += 1
    if max_num_warnings is not None and _warnings[name, text] > max_num_warnings:
        return
    if name:
        text = f"{name} {f'will be deprecated after {eos}' if eos else 'was deprecated'}. {text}"
    elif eos:
        text = f"{text} Legacy period ends after {eos}"
    logger.warning("%s", f"[Deprecated] {text}".rstrip())


def deprecated(
    text: str = "", eos: str = "", max_num_warnings: Optional[int] = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that makes a function warn when it is called; see `log_deprecated`."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def warned(*args: Any, **kwargs: Any) -> Any:
            log_deprecated(func.__name__, text, eos, max_num_warnings)
            return func(*args, **kwargs)

        return warned

    return decorate
