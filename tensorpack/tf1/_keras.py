"""Makes `import keras` mean `tf.keras`: Keras 3, which TensorFlow 2 installs, has no graphs."""

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from ._contrib import require_keras
from ._interface import import_installed

# Public modules -> private ones whose names they have now.
_PRIVATE = {
    "backend": "backend.tensorflow_backend",
    "layers": "engine engine.base_layer engine.topology layers.advanced_activations "
    "layers.convolutional layers.core layers.embeddings layers.local layers.merge layers.noise "
    "layers.normalization layers.pooling layers.recurrent layers.wrappers",
    "losses": "objectives",
    "utils": "utils.generic_utils utils.np_utils utils.vis_utils",
}


def install() -> None:
    """Puts `tf.keras` in the place of `keras`; on TensorFlow 1 only if no Keras is installed."""
    tf: Any = importlib.import_module("tensorflow")
    is_legacy = os.environ["TF_USE_LEGACY_KERAS"] in ("true", "True", "1")
    if (tf.__version__.startswith("1.") or not is_legacy) and import_installed("keras"):
        return
    if not hasattr(tf.keras, "__version__"):
        tf.keras.__version__ = require_keras().__version__
    _put("keras", tf.keras)
    for public, names in _PRIVATE.items():
        for name in names.split():
            _put(f"keras.{name}", sys.modules[f"keras.{public}"])


def _put(name: str, module: Any) -> None:
    """Makes a module importable under a name, and the modules that it has."""
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        vars(sys.modules[parent]).setdefault(last, module)
    for child in dir(module):
        value = getattr(module, child)
        if isinstance(value, ModuleType) and value.__name__.endswith(f".{name}.{child}"):
            _put(f"{name}.{child}", value)
