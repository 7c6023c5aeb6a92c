"""Gives methods, and the contents of modules, the names of both generations of tensorpack."""

from importlib import import_module
from typing import Any, Callable

__all__ = ["give_both_names", "names_from", "owner_of"]


def give_both_names(
    cls: type, name: str, old_name: str, convert: Callable[[Callable], Callable] = lambda f: f
) -> None:
    """Defines a method by both names if the nearest class defines only one.

    The names are bound class by class, not one in terms of the other: `super()` in an override
    then reaches the base class by either name, and never comes back to the override. `convert`
    makes the method called `name` of one that was written as `old_name`.
    """
    owner = owner_of(cls, name, old_name)
    if old_name not in vars(owner):
        setattr(cls, old_name, vars(owner)[name])
    elif name not in vars(owner):
        setattr(cls, name, convert(vars(owner)[old_name]))


def owner_of(cls: type, *names: str) -> type:
    """Returns the nearest class that defines one of the names: `cls` or one it derives from."""
    return next(base for base in cls.__mro__ if any(name in vars(base) for name in names))


def names_from(module: str, *homes: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a module where scripts look for names that others now define.

    Args:
      module: its `__name__`.
      homes: the modules beside it that define the names, in their `__all__`.
    """
    package = module.rpartition(".")[0]

    def find(name: str) -> Any:
        if not name.startswith("__"):
            for home in homes:
                found = import_module(f"{package}.{home}")
                if name in vars(found).get("__all__", ()):
                    return getattr(found, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find
