"""Finds the flow that a command is given as `module:name` or `path/to/file.py:name`."""

import importlib
import importlib.util
import inspect
import os
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from .._flow import is_flow
from ..base import DataFlow
from .errors import CommandError

__all__ = ["open_flow"]

_MOST_NAMES = 12


@contextmanager
def open_flow(place: str) -> Iterator[DataFlow]:
    """Runs the user's module and takes a flow out of it, which is closed at the end.

    Args:
      place: `module:name` or `path/to/file.py:name`; the name of a flow, or of a function or class
        that makes one without arguments.

    Raises:
      CommandError: there is no such flow.
      Exception: whatever the user's code raises.
    """
    source, _, name = place.rpartition(":")
    with _loaded(source) as module:
        flow = _flow_of(_found(module, source, name), place)
        try:
            yield flow
        finally:
            getattr(flow, "close", lambda: None)()


@contextmanager
def _loaded(source: str) -> Iterator[Any]:
    if not source.endswith(".py"):
        yield _run(lambda: _import(source), source)
        return
    path = os.path.abspath(source)
    name = os.path.splitext(os.path.basename(path))[0]
    if not os.path.isfile(path):
        raise CommandError(f"There is no file {source} (seen from {os.getcwd()}).")
    if "." in name or name in sys.modules:
        raise CommandError(
            f"{source} would be the module {name!r}, which is the name of another one, or cannot "
            "be one. Rename the file."
        )
    # As where the file is run as a program: what lies beside it can be imported. And worker
    # processes that do not begin as a copy of this one find it by its name.
    folder = os.path.dirname(path)
    sys.path.insert(0, folder)
    try:
        yield _run(lambda: _import_file(name, path), source)
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
        sys.modules.pop(name, None)


def _import(name: str) -> Any:
    if not all(part.isidentifier() for part in name.split(".")):
        there = f": {name}.py" if os.path.isfile(f"{name}.py") else ""
        raise CommandError(
            f"{name!r} cannot be the name of a module. Give the path of a file with its .py{there}."
        )
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name and not name.startswith(f"{error.name}."):
            raise  # the module is there, and misses another one
        raise CommandError(
            f"There is no module {error.name} (seen from {os.getcwd()}). Give the path of a file "
            "with its .py, or a module that can be imported from here."
        ) from error


def _import_file(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _run(function: Callable[[], Any], what: str) -> Any:
    try:
        return function()
    except SystemExit as error:
        raise CommandError(
            f"{what} ended the program with code {error.code!r}. Put what is not to happen when it "
            'is imported below `if __name__ == "__main__":`.'
        ) from error


def _found(module: Any, source: str, name: str) -> Any:
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise CommandError(f"{source} has no {name!r}. It has {_candidates(module)}.")
        found = getattr(found, part)
    return found


def _candidates(module: Any) -> str:
    """The names in a module that may be meant, as text: flows, then what may make them."""
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    names = [name for name, value in public.items() if is_flow(value)]
    names += [
        name
        for name, value in public.items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    ]
    shown = ", ".join(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        shown += f" and {len(names) - _MOST_NAMES} more"
    return shown or "no flow, and no function of its own"


def _flow_of(found: Any, place: str) -> Any:
    if is_flow(found):
        return found
    if not callable(found):
        raise CommandError(
            f"{place} is a {type(found).__name__}, but a DataFlow is needed, or a function without "
            "arguments that returns one. Wrap a list in DataFromList."
        )
    _check_signature(found, place)
    made = _run(found, place)
    if not is_flow(made):
        raise CommandError(
            f"{place} returned a {type(made).__name__}, but a DataFlow is needed. Wrap a list in "
            "DataFromList, a generator function in DataFromGenerator."
        )
    return made


def _check_signature(function: Any, place: str) -> None:
    try:
        signature = inspect.signature(function)
    except ValueError:  # of some functions that are written in C, nothing is known
        return
    try:
        signature.bind()
    except TypeError as error:
        raise CommandError(
            f"{place} cannot be called without arguments ({error}). Write a function around it "
            "that gives them."
        ) from error
