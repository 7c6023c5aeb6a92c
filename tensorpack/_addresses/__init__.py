"""Old names of modules, in folders that the packages add to their `__path__`.

Each has the names that scripts expect at that address, or all of the module where these are now.
"""

from importlib import import_module
from typing import Any, Callable, List, Tuple

__all__ = ["moved_to"]


def moved_to(home: str) -> Tuple[Callable[[str], Any], List[str]]:
    """Returns `__getattr__` and `__all__` of a module whose names are in the module `home` now."""
    module = import_module(home)
    names: List[str] = module.__all__

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(
                f"module {home!r}, where the names of this one are, has no {name!r}"
            )
        return getattr(module, name)

    return find, names
