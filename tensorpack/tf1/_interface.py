"""Puts the version 1 interface of TensorFlow 2 in the place of `tensorflow`, in this process."""

import importlib
import operator
import os
import sys
import warnings
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from operator import attrgetter
from types import ModuleType
from typing import Any, Dict, Optional

from tensorpack.utils.optional import missing

from . import FOLDER
from ._contrib import ContribFinder, require_keras
from ._replaced import advice

_FROM_KERAS = ("tensorflow.layers", "tensorflow.keras", "tensorflow.nn.rnn_cell")
# Where private modules of TensorFlow had names that are now elsewhere -> where version 1 has them.
# Scripts import some from there, and tf-slim most of them.
_MOVED = {
    "framework.ops.IndexedSlices": "IndexedSlices",
    "framework.ops.Tensor": "Tensor",
    "ops.array_ops.stack": "stack",
    "ops.array_ops.unstack": "unstack",
    "ops.control_flow_ops.Assert": "Assert",
    "ops.control_flow_ops.case": "case",
    "ops.control_flow_ops.cond": "cond",
    "ops.control_flow_ops.while_loop": "while_loop",
    "ops.variable_scope.variable": "Variable",
    "pywrap_tensorflow.NewCheckpointReader": "train.NewCheckpointReader",
}
# What numpy has dropped since: other names of Python's types, and names that it changed.
_PYTHON_TYPES = (bool, int, float, complex, object, str)
_NUMPY_RENAMES = {
    "float_": "float64",
    "complex_": "complex128",
    "string_": "bytes_",
    "unicode_": "str_",
    "Inf": "inf",
    "infty": "inf",
    "NaN": "nan",
    "product": "prod",
}


def install() -> None:
    """Imports the installed TensorFlow; if it is a TensorFlow 2, puts version 1 in its place.

    With it come names that current versions of private modules and of numpy lack, such as `np.int`.
    """
    # Where tf.layers and tf.nn.rnn_cell come from; read while TensorFlow is loaded.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # as where `compat` loads it
    installed = import_installed("tensorflow")
    if installed is None:
        raise missing("tensorflow")
    if installed.__version__.startswith("1."):
        return
    v1: Any = importlib.import_module("tensorflow.compat.v1")
    verbosity = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.ERROR)  # the call warns about itself
    v1.disable_v2_behavior()
    v1.logging.set_verbosity(verbosity)
    if find_spec("tf_keras") is None:
        absent = _NeedsKeras("tf_keras")
        v1.layers = v1.keras = v1.nn.rnn_cell = absent
        sys.modules.update(dict.fromkeys(_FROM_KERAS, absent))
    module = _Version1("tensorflow", v1.__doc__)
    vars(module).update({name: getattr(v1, name) for name in dir(v1)})
    for name in ("__name__", "__package__", "__file__", "__spec__", "__loader__", "compat"):
        setattr(module, name, getattr(installed, name))
    module.__path__ = [entry for entry in (*v1.__path__, *installed.__path__) if entry]
    sys.modules["tensorflow"] = module
    for name, value in vars(module).items():
        # One that is loaded lazily has no name yet; it is found by `__path__`.
        if isinstance(value, ModuleType) and f".v1.{name}" in vars(value).get("__name__", ""):
            sys.modules.setdefault(f"tensorflow.{name}", value)
    sys.meta_path.append(ContribFinder())
    _restore_private_names(v1)
    _restore_numpy_names()
    # Once for each layer of the script, to name classes of Keras. -W comes first.
    gone = ".* is deprecated and will be removed in a future version"
    warnings.filterwarnings("ignore", gone, UserWarning, append=True)


def import_installed(name: str) -> Optional[ModuleType]:
    """Imports a package as if `FOLDER` were not on `sys.path`; returns None where there is none."""
    spec = PathFinder.find_spec(name, [entry for entry in sys.path if entry != FOLDER])
    if spec is None or spec.loader is None:
        return None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return sys.modules[name]  # TensorFlow 1.15 puts another one there


def _restore_private_names(v1: Any) -> None:
    for old, new in _MOVED.items():
        home, _, name = old.rpartition(".")
        module = importlib.import_module(f"tensorflow.python.{home}")
        if not hasattr(module, name):
            setattr(module, name, attrgetter(new)(v1))


def _restore_numpy_names() -> None:
    names = vars(importlib.import_module("numpy"))
    old: Dict[str, Any] = {kind.__name__: kind for kind in _PYTHON_TYPES}
    old["asscalar"] = operator.methodcaller("item")
    old.update({name: names[new] for name, new in _NUMPY_RENAMES.items()})
    names.update({name: value for name, value in old.items() if name not in names})


class _Version1(ModuleType):
    """What `import tensorflow` gives: the names of version 1, and TensorFlow's own modules."""

    def __getattr__(self, name: str) -> Any:
        """Returns a module that has been imported, or `contrib`; an error says what to use."""
        if name == "contrib":
            return importlib.import_module("tensorflow.contrib")
        if f"tensorflow.{name}" in sys.modules:
            return sys.modules[f"tensorflow.{name}"]
        raise AttributeError(advice(f"tf.{name}"))


class _NeedsKeras(ModuleType):
    """Stands for `tf.layers`, `tf.keras` and `tf.nn.rnn_cell` where tf-keras is not installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # asked of any module
            raise AttributeError(name)
        return getattr(require_keras(), name)
