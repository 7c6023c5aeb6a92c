"""Makes `import keras` mean the Keras that TensorFlow 1 programs know, which is that of `tf.keras`.

Keras 3, which TensorFlow 2 installs, has neither graphs nor sessions.
"""

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from ._contrib import require_keras
from ._interface import import_installed

__all__ = ["install"]

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
    """Puts `tf.keras`, with its modules, in the place of `keras`.

    An installed Keras stays where it is that of `tf.keras`, or of a TensorFlow 1.
    """
    tf: Any = importlib.import_module("tensorflow")
    is_legacy = os.environ["TF_USE_LEGACY_KERAS"] in ("true", "True", "1")
    if tf.__version__.startswith("1.") or not is_legacy:
        try:
            import_installed("keras")
            return
        except ModuleNotFoundError as error:
            if error.name != "keras":
                raise
    if not hasattr(tf.keras, "__version__"):
        tf.keras.__version__ = require_keras().__version__
    _put("keras", tf.keras)
    for public, names in _PRIVATE.items():
        for name in names.split():
            _alias(name, sys.modules[f"keras.{public}"])


def _put(name: str, module: Any) -> None:
    """Makes a module importable under a name, and the modules that it has."""
    sys.modules[name] = module
    for each in dir(module):
        inner = getattr(module, each)
        if isinstance(inner, ModuleType) and inner.__name__.endswith(f".{name}.{each}"):
            _put(f"{name}.{each}", inner)


def _alias(name: str, module: Any) -> None:
    """Names a module of Keras also `keras.{name}`."""
    parent, _, last = f"keras.{name}".rpartition(".")
    sys.modules[f"keras.{name}"] = module
    vars(sys.modules[parent]).setdefault(last, module)
