"""`tensorflow.contrib` on TensorFlow 2: what tf-slim and TensorFlow still have of it.

A package of contrib is put together from modules, its homes, which are asked for a name in order.
What TensorFlow moved out of contrib without a change is found by the table of its own upgrade tool.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence, Tuple

from tensorpack.utils.optional import require

from ._replaced import advice, is_gone

_ROOT = "tensorflow.contrib"

# Packages of contrib -> the modules that have their names.
_HOMES: Dict[str, Tuple[str, ...]] = {
    "": (),
    "distributions": ("tensorflow.distributions",),
    "framework": ("tf_slim.ops.arg_scope", "tf_slim.ops.variables", "tf_slim.ops.framework_ops"),
    "framework.variables": ("tf_slim.ops.variables",),
    "keras": ("tensorflow.keras",),
    "layers": ("tf_slim.layers",),
    "losses": ("tf_slim.losses",),
    "metrics": ("tf_slim.metrics",),
    "rnn": ("tensorpack.tf1._cells", "tensorflow.nn.rnn_cell"),
    "rnn.core_rnn_cell": ("tensorflow.nn.rnn_cell",),
    "signal": ("tensorflow.signal",),
    "slim": ("tf_slim",),
    "training": ("tf_slim.training.training", "tf_slim.training.evaluation"),
}

# Names that moved, beside those of TensorFlow's table.
_MOVED = {
    f"tf.contrib.framework.{name}": f"tf.train.{name}"
    for name in ("init_from_checkpoint", "list_variables", "load_checkpoint")
}
# Moved by the table, but to functions with other arguments.
_CHANGED = ("tf.contrib.summary.",)


class ContribFinder(MetaPathFinder, Loader):
    """Finds `tensorflow.contrib` and its packages; comes last on `sys.meta_path`."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[Any]] = None, target: Any = None
    ) -> Optional[ModuleSpec]:
        """Returns the spec of a package of contrib, None for a module that is not TensorFlow's; the
        error about one that is gone from TensorFlow says what to use instead.
        """
        package, _, name = fullname.partition(".")
        if package != "tensorflow":
            return None
        if fullname.startswith(_ROOT) and _homes(_package(fullname)) is not None:
            return spec_from_loader(fullname, self, is_package=True)
        if is_gone(f"tf.{name}"):
            # Under its own name, the error of a 'from package import name' would be swallowed.
            raise ModuleNotFoundError(advice(f"tf.{name}"), name="tensorflow")
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Contrib(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        for home in _homes(_package(module.__name__)) or ():
            _load(home)


class _Contrib(ModuleType):
    """A package of contrib, or contrib itself; finds its names when they are used."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [name for name in dir(self) if not name.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(name)
        package = _package(self.__name__)
        try:
            value = _find(package, name)
        except LookupError:
            dotted = ".".join(["tf.contrib", *filter(None, [package]), name])
            raise AttributeError(advice(dotted)) from None
        setattr(self, name, value)
        return value

    def __dir__(self) -> List[str]:
        homes = _homes(_package(self.__name__)) or ()
        return sorted({name for home in homes for name in dir(_load(home))})


def _package(fullname: str) -> str:
    """Returns the public package that a module lies in, such as "layers", or "" for contrib.

    The private modules were `contrib.NAME.python.GROUP...`; GROUP is "ops", "layers" or the like.
    """
    parts = fullname.split(".")[2:]
    return ".".join(parts[:1] + parts[3:] if parts[1:2] == ["python"] else parts)


def _homes(package: str) -> Optional[Tuple[str, ...]]:
    """Returns the homes of a package; None if there is no such package any more."""
    if package in _HOMES:
        return _HOMES[package]
    if any(name.startswith(f"tf.contrib.{package}.") for name in _moved()):
        return ()
    parent, _, name = package.rpartition(".")
    for home in (parent and _homes(parent)) or ():
        if hasattr(_load(home), "__path__") and find_spec(f"{home}.{name}"):
            return (f"{home}.{name}",)
    return None


def _find(package: str, name: str) -> Any:
    """Returns what a package of contrib has under a name."""
    for home in _homes(package) or ():
        if hasattr(_load(home), name):
            return getattr(_load(home), name)
    dotted = f"{package}.{name}" if package else name
    if _homes(dotted) is not None:
        return importlib.import_module(f"{_ROOT}.{dotted}")
    value: Any = sys.modules["tensorflow"]
    try:
        for part in _moved()[f"tf.contrib.{dotted}"].split(".")[1:]:
            value = getattr(value, part)
    except AttributeError:
        raise LookupError(dotted) from None
    return value


def _moved() -> Dict[str, str]:
    """Returns the names of contrib that TensorFlow has elsewhere -> their new names."""
    table = importlib.import_module("tensorflow.tools.compatibility.all_renames_v2")
    renames = {**table.manual_symbol_renames, **_MOVED}
    return {name: new for name, new in renames.items() if not name.startswith(_CHANGED)}


def _load(home: str) -> ModuleType:
    """Imports a home; an error says how to install what is missing."""
    if home.startswith("tf_slim"):
        require_keras()
        # batch_norm loads this by an address that tf-keras does not have.
        normalization = importlib.import_module("tf_keras.src.legacy_tf_layers.normalization")
        sys.modules.setdefault("tf_keras.legacy_tf_layers.normalization", normalization)
        return require(home, "tf-slim")
    return importlib.import_module(home)


def require_keras() -> ModuleType:
    """Imports tf-keras; an error says how to install it."""
    return importlib.import_module("tensorpack.compat").load_keras()  # TensorFlow is loaded by now
