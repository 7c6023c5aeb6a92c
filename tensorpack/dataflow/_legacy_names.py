"""Accepts the names of 2017, so that the flows themselves use only the later ones."""

import functools
from typing import Any, Callable


def accepts_old_keywords(**new_names: str) -> Callable[[Callable], Callable]:
    """Decorates a function so that each keyword `old=` is passed on as the keyword `new=`.

    Takes the new name of each old keyword, as in `nr="num"`. Both at once are a TypeError.
    """

    def decorate(function: Callable) -> Callable:
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

        return call

    return decorate


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
