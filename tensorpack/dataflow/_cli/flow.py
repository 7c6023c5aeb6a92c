"""Finds the flow that a command is given as `module:name` or `path/to/file.py:name`."""

import importlib
import importlib.util
import os
import sys
from contextlib import contextmanager
from typing import Any, Iterator

from .._flow import is_flow, what_instead
from ..base import DataFlow
from . import CommandError


@contextmanager
def open_flow(place: str) -> Iterator[DataFlow]:
    """Runs the user's module and takes a flow out of it, which is closed at the end.

    The name is that of a flow, or of a function or class that makes one without arguments.
    """
    source, _, name = place.rpartition(":")
    with loaded_source(source) as module:
        found = module
        for part in name.split("."):
            if not hasattr(found, part):
                known = [each for each in vars(module) if not each.startswith("_")]
                raise CommandError(f"{source} has no {name!r}. It has {', '.join(known[:12])}.")
            found = getattr(found, part)
        flow = found if is_flow(found) or not callable(found) else found()
        if not is_flow(flow):
            raise CommandError(f"{place} does not give a DataFlow but {what_instead(flow)}")
        try:
            yield flow
        finally:
            getattr(flow, "close", lambda: None)()


@contextmanager
def loaded_source(source: str) -> Iterator[Any]:
    """Imports a module, or runs a file as one, and gives it; a file is forgotten at the end."""
    if not source.endswith(".py"):
        yield _import(source)
        return
    path = os.path.abspath(source)
    name = os.path.splitext(os.path.basename(path))[0]
    if not os.path.isfile(path):
        raise CommandError(f"There is no file {source} (seen from {os.getcwd()}).")
    if "." in name or name in sys.modules:
        raise CommandError(
            f"{source} would be the module {name!r}, which is the name of another one, or not a "
            "valid name. Rename the file."
        )
    # As in a program, the file can import what lies beside it; and spawned worker processes find
    # it by its name.
    folder = os.path.dirname(path)
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)
        yield module
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
        sys.modules.pop(name, None)


def _import(name: str) -> Any:
    try:
        if all(part.isidentifier() for part in name.split(".")):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name and not name.startswith(f"{error.name}."):
            raise  # the module is there, and misses another one
    raise CommandError(
        f"There is no module {name} (seen from {os.getcwd()}). Give the path of a file with its "
        ".py, or a module that can be imported from here."
    )
