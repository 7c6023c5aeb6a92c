"""Gives methods the names of both generations of tensorpack."""

from typing import Callable


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
