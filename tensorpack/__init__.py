"""Trains TensorFlow graphs.

Nothing is loaded before it is used: `import tensorpack` reads the table of the public names and
nothing more, so `tensorpack.dataflow` works where TensorFlow is not installed. `from tensorpack
import *` gives every public name and, with them, loads TensorFlow.
"""

import sys
from importlib import import_module
from typing import Any, List

from tensorpack._old_modules import Package
from tensorpack._public_names import HOMES, MODULES
from tensorpack._version import __version__ as __version__

__all__ = sorted([*HOMES, *MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    """Loads the owner of a public name when the name is first used (PEP 562)."""
    if name not in MODULES and name not in HOMES:
        raise AttributeError(f"tensorpack has no public name {name!r}.{_advice(name)}")
    if name in MODULES:
        return import_module(MODULES[name])
    return getattr(import_module(f"tensorpack.{HOMES[name]}"), name)


def _advice(name: str) -> str:
    if name.startswith("_"):  # programs ask for such names without knowing them
        return ""
    return import_module("tensorpack.utils._words").did_you_mean(name, __all__)


def __dir__() -> List[str]:
    return list(__all__)


__path__.append(f"{__path__[0]}/_addresses")  # `tensorpack.libinfo`, under its old name
sys.modules[__name__].__class__ = Package  # its modules answer for names that they once had
